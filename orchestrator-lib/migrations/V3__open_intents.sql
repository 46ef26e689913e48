-- Timers and deadlines count from when the open intent was stored. Binaries of before this leave
-- the column alone; nothing that they can run reads it.
alter table ringsaga.transaction add column opened_at timestamptz not null default now();

-- An operator's retry policy for one transaction, as JSON; and the transaction that started this
-- one, with the step that waits for its end.
alter table ringsaga.payload
    add column retry text,
    add column parent uuid,
    add column parent_step text;
create index payload_of_parent on ringsaga.payload (parent) where parent is not null;

-- Wake-ups are read in the order in which they came; times of one database transaction are equal.
alter table ringsaga.wake add column n bigint generated always as identity;
