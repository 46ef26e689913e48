create table if not exists stock (
    sku text primary key,
    available bigint not null check (available >= 0)
);
-- What happened, only ever added to: the demo's verdict is computed from it.
create table if not exists movement (
    id bigint generated always as identity primary key,
    transaction uuid not null,
    order_id text not null,
    kind text not null check (kind in ('reserve', 'confirm', 'release')),
    sku text not null,
    -- Taken out of stock; negative when it is put back.
    quantity bigint not null,
    created_at timestamptz not null default now()
);
create index if not exists movement_of_transaction on movement (transaction);
