-- A batch of writes: the record of what happened and the intent of what comes, in one statement.
-- The guard is an UPDATE that locks the row and feeds the log: one that only read would let a
-- process write that lost the row a moment ago. The caller sorts by id and sends a transaction at
-- most once: UPDATE … FROM with a row twice drops one without a word.
-- "is not distinct from" serves no index: rows must be found by id, and on a table that was empty
-- when the plan was made a scan of all running rows looked cheaper.
moved as (
    update ringsaga.transaction t set
        state = l.state,
        owner = case when l.state = 'running' then t.owner end,
        direction = l.direction,
        seq = l.seq,
        attempts = coalesce(l.attempts, t.attempts),
        doubt = coalesce(l.doubt, t.doubt),
        deaths = case when l.recorded then 0 else t.deaths end,
        waiting_on = l.waiting_on,
        due_at = case when l.state = 'paused'
            then least(t.expires_at, clock_timestamp() + l.after * interval '1 millisecond') end,
        settled_at = case when l.state not in ('running', 'paused') then clock_timestamp() end,
        progressed_at = case when l.state = 'paused' or l.e_outcome = 'paused' then t.progressed_at
            else clock_timestamp() end,
        opened_at = case when l.direction = t.direction and l.seq = t.seq then t.opened_at
            else clock_timestamp() end,
        epoch = t.epoch + case when l.handed_back then 1 else 0 end,
        last_write = l.number
    from line l
    where t.id = l.id and t.epoch = l.epoch and t.nonce = l.nonce
        and t.state is not distinct from 'running'
        and t.direction = l.from_direction and t.seq = l.from_seq
        and (l.seen is null or t.wake_seq = l.seen) and t.last_write < l.number
    returning t.id, l.n, l.epoch, l.result, l.error, l.step, l.e_direction, l.e_seq, l.e_outcome,
        l.e_class, l.e_doubt, l.e_result, l.e_error, l.e_attempts, l.e_started, l.e_ended,
        t.wake_seq, l.step is not null and exists (
            select from ringsaga.step s where s.transaction = l.id
                and s.direction = l.e_direction and s.seq = l.e_seq
        ) as replaces
),
-- Only the holder of the fence writes records of a transaction, so what this statement does not
-- see is not there. ("on conflict" would cost a lock and a second mark in the log a record.)
logged as (
    insert into ringsaga.step (transaction, direction, seq, name, outcome, class, doubt,
        result, error, attempts, started_at, ended_at, epoch, recorded_at)
    select id, e_direction, e_seq, step, e_outcome, e_class, e_doubt, e_result, e_error,
        e_attempts, e_started, e_ended, epoch, clock_timestamp()
    from moved
    where step is not null and not replaces
),
-- A success is written once and never replaced; of failures and pauses the last is kept.
replaced as (
    update ringsaga.step s set
        name = m.step, outcome = m.e_outcome, class = m.e_class, doubt = m.e_doubt,
        result = m.e_result, error = m.e_error, attempts = m.e_attempts,
        started_at = m.e_started, ended_at = m.e_ended, epoch = m.epoch,
        recorded_at = clock_timestamp()
    from moved m
    where m.replaces and s.transaction = m.id and s.direction = m.e_direction
        and s.seq = m.e_seq and s.outcome <> 'done'
),
-- A payload that holds no result holds null, and what was said of an earlier pause goes.
explained as (
    update ringsaga.payload p set result = coalesce(m.result, p.result), error = m.error
    from moved m
    where (m.result is not null or m.error is not null) and p.transaction = m.id
        and (m.result <> 'null' or m.error is not null or p.error is not null)
)
