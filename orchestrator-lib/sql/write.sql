-- A batch of writes: the record of what happened and the intent of what comes, in one statement.
-- The guard is an UPDATE that locks the row and feeds the log: one that only read would let a
-- process write that lost the row a moment ago. Rows that somebody else holds are skipped and come
-- back in no line of the answer; the caller sends them again alone. The caller sorts by id and
-- sends a transaction at most once: UPDATE … FROM with a row twice drops one without a word.
-- "is not distinct from" serves no index: rows must be found by id, and on a table that was empty
-- when the plan was made a scan of all running rows looked cheaper.
-- $1 ids, $2 epochs, $3 nonces, $4 numbers, $5 from directions, $6 from seqs, $7 wake-ups seen
-- (null: not asked), $8 states, $9 directions, $10 seqs, $11 due after ms (parked only),
-- $12 attempts (null: as they are), $13 doubt (null: as it is), $14 waiting on, $15 handed back,
-- $16 an outcome was recorded, $17 results, $18 errors, then the entries (step null: none):
-- $19 steps, $20 directions, $21 seqs, $22 outcomes, $23 classes, $24 doubts, $25 results,
-- $26 errors, $27 attempts, $28 started, $29 ended
with input as materialized (
    select * from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::bigint[], $5::text[],
        $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::bigint[],
        $12::bigint[], $13::boolean[], $14::text[], $15::boolean[], $16::boolean[], $17::text[],
        $18::text[], $19::text[], $20::text[], $21::bigint[], $22::text[], $23::text[],
        $24::boolean[], $25::text[], $26::text[], $27::bigint[], $28::timestamptz[],
        $29::timestamptz[])
    with ordinality as i(id, epoch, nonce, number, from_direction, from_seq, seen, state,
        direction, seq, after, attempts, doubt, waiting_on, handed_back, recorded, result, error,
        step, e_direction, e_seq, e_outcome, e_class, e_doubt, e_result, e_error, e_attempts,
        e_started, e_ended, n)
),
locked as materialized (
    select i.*, t.epoch as t_epoch, t.nonce as t_nonce, t.last_write as t_last_write,
        t.state as t_state, t.direction as t_direction, t.seq as t_seq, t.wake_seq as t_wake_seq
    from input i join ringsaga.transaction t on t.id = i.id
    for update of t skip locked
),
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
        progressed_at = case when l.state = 'paused' then t.progressed_at
            else clock_timestamp() end,
        opened_at = case when l.direction = t.direction and l.seq = t.seq then t.opened_at
            else clock_timestamp() end,
        epoch = t.epoch + case when l.handed_back then 1 else 0 end,
        last_write = l.number
    from locked l
    where t.id = l.id and t.epoch = l.epoch and t.nonce = l.nonce
        and t.state is not distinct from 'running'
        and t.direction = l.from_direction and t.seq = l.from_seq
        and (l.seen is null or t.wake_seq = l.seen) and t.last_write < l.number
    returning l.*, t.wake_seq as now_wake_seq
),
logged as (
    insert into ringsaga.step as s (transaction, direction, seq, name, outcome, class, doubt,
        result, error, attempts, started_at, ended_at, epoch, recorded_at)
    select id, e_direction, e_seq, step, e_outcome, e_class, e_doubt, e_result, e_error,
        e_attempts, e_started, e_ended, epoch, clock_timestamp()
    from moved
    where step is not null
    on conflict (transaction, direction, seq) do update set
        name = excluded.name, outcome = excluded.outcome, class = excluded.class,
        doubt = excluded.doubt, result = excluded.result, error = excluded.error,
        attempts = excluded.attempts, started_at = excluded.started_at,
        ended_at = excluded.ended_at, epoch = excluded.epoch, recorded_at = excluded.recorded_at
    where s.outcome <> 'done'
),
explained as (
    update ringsaga.payload p set result = coalesce(m.result, p.result), error = m.error
    from moved m
    where p.transaction = m.id and (m.result is not null or m.error is not null)
)
select n, 'done' as verdict, now_wake_seq as wake_seq from moved
union all
select n, case
        when t_nonce = nonce and t_last_write = number then 'already'
        when t_epoch = epoch and t_nonce = nonce and t_state = 'running'
            and t_direction = from_direction and t_seq = from_seq
            and t_wake_seq <> seen then 'woken'
        else 'lost'
    end, t_wake_seq
from locked
where not (t_epoch = epoch and t_nonce = nonce and t_state = 'running'
    and t_direction = from_direction and t_seq = from_seq and t_last_write < number
    and (seen is null or t_wake_seq = seen))
