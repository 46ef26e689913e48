-- What happened, only ever added to: the demo's verdict is computed from it.
create table if not exists entry (
    id bigint generated always as identity primary key,
    transaction uuid not null,
    order_id text not null,
    kind text not null check (kind in ('charge', 'refund')),
    customer text not null,
    -- Paid by the customer; negative when it is paid back.
    amount_cents bigint not null,
    created_at timestamptz not null default now()
);
create index if not exists entry_of_transaction on entry (transaction);
