-- Where a session is held, and what the database saw. A session that has no name passes freely.
create schema gate;

-- Each version of a row, in the order of the commits on that row: the number is taken while the
-- row is locked. What was rolled back is not in it.
create table gate.history (
    n bigint generated always as identity primary key,
    at timestamptz not null default clock_timestamp(),
    session text not null,
    xid bigint not null default txid_current(),
    kind text not null,
    old jsonb,
    new jsonb not null
);

create function gate.witness() returns trigger language plpgsql as $$
begin
    insert into gate.history (session, kind, old, new)
    values (coalesce(current_setting('gate.session', true), ''), tg_table_name,
        case when tg_op = 'UPDATE' then to_jsonb(old) end, to_jsonb(new));
    return null;
end $$;

-- Whoever holds the gate's lock holds the session; the store's own limit on locks does not count.
create function gate.pass() returns trigger language plpgsql set lock_timeout = 0 as $$
declare
    session text := coalesce(current_setting('gate.session', true), '');
begin
    if session <> '' then
        perform pg_advisory_xact_lock_shared(ascii(session), tg_argv[0]::integer);
    end if;
    return null;
end $$;

do $$
declare
    watched text;
begin
    foreach watched in array array['transaction', 'step', 'owner', 'wake', 'audit', 'idempotency'] loop
        execute format('create trigger witness after insert or update on ringsaga.%I
            for each row execute function gate.witness()', watched);
    end loop;
end $$;

-- 0: the snapshot is taken and nothing is locked. 1: everything is changed and nothing committed.
create trigger gate_0 before update on ringsaga.transaction
    for each statement execute function gate.pass('0');
create trigger gate_1 after update on ringsaga.transaction
    for each statement execute function gate.pass('1');
create trigger gate_2 before update on ringsaga.owner
    for each statement execute function gate.pass('2');
create trigger gate_3 after update on ringsaga.owner
    for each statement execute function gate.pass('3');
create trigger gate_4 before insert on ringsaga.idempotency
    for each statement execute function gate.pass('4');
create trigger gate_5 after insert on ringsaga.idempotency
    for each statement execute function gate.pass('5');
