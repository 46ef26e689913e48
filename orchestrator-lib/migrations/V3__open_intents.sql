-- Timers and deadlines count from when the open intent was stored. Binaries of before this leave
-- the column alone; nothing that they can run reads it.
alter table ringsaga.transaction add column opened_at timestamptz not null default now();

-- An operator's retry policy for one transaction, as JSON.
alter table ringsaga.payload add column retry text;

-- The transaction that started this one, and the step that waits for its end.
alter table ringsaga.transaction add column parent uuid, add column parent_step text;

-- Wake-ups are read in the order in which they came; times of one database transaction are equal.
alter table ringsaga.wake add column n bigint generated always as identity;

-- A child's end and its parent's wake-up are one commit, whichever statement ended the child. The
-- condition is on the row, so that a transaction without parent pays for nothing.
create function ringsaga.tell_parent() returns trigger language plpgsql as $$
begin
    -- The row first: a message without its count, or a count without its message, would be one
    -- that nobody looks for.
    update ringsaga.transaction t
    set wake_seq = t.wake_seq + 1, waiting_on = null,
        due_at = case when t.state = 'paused'
            then least(t.expires_at, statement_timestamp()) end
    where t.id = new.parent and t.state in ('running', 'paused');
    if found then
        insert into ringsaga.wake (id, transaction, kind, body)
        select gen_random_uuid(), new.parent, 'child', concat('{"step":', to_json(new.parent_step),
            ',"state":', to_json(new.state), ',"result":', coalesce(p.result, 'null'),
            ',"error":', coalesce(to_json(p.error)::text, 'null'), '}')
        from ringsaga.payload p
        where p.transaction = new.id;
    end if;
    return null;
end
$$;
create trigger child_ended after update of state on ringsaga.transaction for each row
    when (new.parent is not null and new.state in ('completed', 'compensated')
        and new.state is distinct from old.state)
    execute function ringsaga.tell_parent();
