-- A batch travels as one array of rows instead of one array a column: thirty arrays cost the server
-- more than the writes themselves. A type is a contract with running binaries and never changes:
-- who needs another column adds a type of the next number.
create type ringsaga.write_1 as (
    id uuid, epoch bigint, nonce uuid, number bigint,
    from_direction text, from_seq bigint,
    -- Wake-ups seen; null: not asked.
    seen bigint,
    state text, direction text, seq bigint,
    -- Due after so many ms; parked only.
    after bigint,
    -- Null: as they are.
    attempts bigint, doubt boolean,
    waiting_on text, handed_back boolean,
    -- An outcome was recorded.
    recorded boolean,
    result text, error text,
    -- The entry of the log; step null: none.
    step text, e_direction text, e_seq bigint, e_outcome text, e_class text, e_doubt boolean,
    e_result text, e_error text, e_attempts bigint, e_started timestamptz, e_ended timestamptz
);
create type ringsaga.start_1 as (
    id uuid, token bigint, saga text, definition integer, key text, input text,
    -- In ms.
    lifetime bigint,
    -- Null: not claimed.
    nonce uuid
);

-- A page holds a second version of each of its rows, so that steps stay on it (HOT).
alter table ringsaga.transaction set (fillfactor = 50);

-- The same rules in one expression: a statement reads the text of each constraint anew, and every
-- step writes this row. "not valid" as the old ones held for every row that is there.
alter table ringsaga.transaction
    drop constraint state_is_known,
    drop constraint running_has_an_owner,
    drop constraint parked_has_a_due_time,
    drop constraint settled_has_a_time,
    drop constraint owned_or_due,
    drop constraint only_parked_waits,
    add constraint owned_or_due_or_settled check (case state
        when 'running' then owner is not null and num_nonnulls(due_at, settled_at, waiting_on) = 0
        when 'paused' then due_at is not null and num_nonnulls(owner, settled_at) = 0
        else settled_at is not null and num_nonnulls(owner, due_at, waiting_on) = 0
            and state in ('completed', 'compensated', 'terminated', 'disabled', 'quarantined')
    end) not valid;

-- Kept with the key already.
alter table ringsaga.payload alter column input_digest drop not null;
