-- The participant's barrier: one row a transaction, step and direction, written in the same
-- database transaction as the effect. Whoever inserts the row has the right to the effect; a
-- second call finds it and gets the stored answer. A compensation that comes first leaves the
-- action's row behind, so that a late action finds it taken.
create table if not exists barrier (
    transaction uuid not null,
    step text not null,
    direction text not null check (direction in ('forward', 'compensating')),
    -- JSON text; null in a row that only blocks.
    answer text,
    -- Calls that found the row and changed nothing.
    repeats bigint not null default 0,
    created_at timestamptz not null default now(),
    primary key (transaction, step, direction)
);
