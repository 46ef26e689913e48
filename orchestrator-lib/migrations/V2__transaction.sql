-- One run of a saga. The hot row is narrow: it is rewritten at every step; payloads and the log
-- stand apart. Fillfactor 70 leaves room for rewritten rows on their page.
create table ringsaga.transaction (
    id uuid primary key,
    region text not null,
    cluster text not null,
    service text not null,
    token bigint not null,
    -- A coarse place on the ring, 0 to 1023, by which the indexes are built.
    slot smallint not null generated always as (((token >> 54) + 512)::smallint) stored,
    -- No foreign keys on this path: every start would lock the same row of ringsaga.definition, and
    -- nothing there is ever removed.
    definition integer not null,
    state text not null,
    direction text not null,
    seq bigint not null,
    -- Whether some attempt of the open intent may have been applied.
    doubt boolean not null,
    attempts bigint not null,
    -- Deaths of owners blamed on it since its last recorded outcome.
    deaths integer not null,
    -- Raised by every claim; with the nonce it is the right to write.
    epoch bigint not null,
    nonce uuid,
    owner bigint,
    -- Number of the claim's last write: a re-send is recognised by nonce and number.
    last_write bigint not null,
    wake_seq bigint not null,
    -- The target that a breaker holds it back from.
    waiting_on text,
    due_at timestamptz,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    progressed_at timestamptz not null,
    settled_at timestamptz,
    constraint state_is_known check (state in ('running', 'paused', 'completed', 'compensated',
        'terminated', 'disabled', 'quarantined')),
    constraint direction_is_known check (direction in ('forward', 'compensating')),
    constraint running_has_an_owner check ((state = 'running') = (owner is not null)),
    constraint parked_has_a_due_time check ((state = 'paused') = (due_at is not null)),
    constraint settled_has_a_time
        check ((state in ('running', 'paused')) = (settled_at is null)),
    constraint owned_or_due check (num_nonnulls(owner, due_at, settled_at) = 1),
    constraint due_within_the_lifetime check (due_at <= expires_at),
    constraint only_parked_waits check (waiting_on is null or state = 'paused')
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02);

-- One index a branch of the claim, each of its own; a branch with OR would use none of them.
-- "slot >= 0" and "definition > 0" are always true. They name the index: a statement that says the
-- one can't use an index that asks for the other, and without statistics (a fresh table) the
-- planner would otherwise take a wrong one and read every parked row.
create index transaction_due on ringsaga.transaction
    (region, cluster, service, slot, due_at)
    where state = 'paused' and waiting_on is null and slot >= 0;
create index transaction_owned on ringsaga.transaction (owner, slot)
    where state = 'running';
create index transaction_waiting on ringsaga.transaction
    (region, cluster, service, waiting_on, slot, due_at)
    where state = 'paused' and waiting_on is not null and slot >= 0;
-- The sweeper asks for each definition it can run, so that rows of others never stand in its way.
create index transaction_overdue on ringsaga.transaction
    (region, cluster, service, definition, due_at)
    where state = 'paused' and waiting_on is null and definition > 0;
-- Probes: rows that wait for a target and whose backoff has passed.
create index transaction_probe on ringsaga.transaction
    (region, cluster, service, definition, due_at)
    where state = 'paused' and waiting_on is not null and definition > 0;
-- What people look for: the unfortunate ones, newest first by id.
create index transaction_unsettled on ringsaga.transaction (region, cluster, service, state, id)
    where state in ('terminated', 'disabled', 'quarantined');

-- What is wide and rarely written. Values are JSON text and opaque to the store.
create table ringsaga.payload (
    transaction uuid primary key,
    input text not null,
    input_digest bytea not null,
    key text not null,
    result text,
    error text
);

-- The record of each step. A success is written once and never replaced; of failures and pauses
-- the last is kept.
create table ringsaga.step (
    transaction uuid not null,
    direction text not null check (direction in ('forward', 'compensating')),
    seq bigint not null,
    name text not null,
    outcome text not null check (outcome in ('done', 'refused', 'skipped', 'paused')),
    class text check (class in ('transient', 'business', 'persistent', 'unknown')),
    doubt boolean not null,
    result text,
    error text,
    attempts bigint not null,
    started_at timestamptz not null,
    ended_at timestamptz not null,
    epoch bigint not null,
    recorded_at timestamptz not null,
    primary key (transaction, direction, seq)
);

-- Keys of starts, kept until their transaction is purged. Nothing crosses region and cluster, so
-- they are part of the key.
create table ringsaga.idempotency (
    region text not null,
    cluster text not null,
    service text not null,
    saga text not null,
    key text not null,
    transaction uuid not null,
    input_digest bytea not null,
    created_at timestamptz not null default now(),
    primary key (region, cluster, service, saga, key)
);

-- Signals, children's ends, cancels. The unique id makes a sender's repeat harmless.
create table ringsaga.wake (
    id uuid primary key,
    transaction uuid not null,
    kind text not null,
    body text not null,
    created_at timestamptz not null default now()
);
create index wake_of_transaction on ringsaga.wake (transaction);

-- What operators did, written in the same database transaction as the deed.
create table ringsaga.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null default now(),
    actor text not null,
    reason text not null,
    action text not null,
    transaction uuid,
    detail text
);
create index audit_of_transaction on ringsaga.audit (transaction, id);
