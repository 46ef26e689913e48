-- An operator did a step by hand: its record becomes "done" with a result and the evidence, and the
-- transaction goes on from there. The step is the open one, or one of its group that was tried (a
-- record of it stands beyond the open one). Its name must be the operator's: a record under
-- another name would stop the transaction. The row's doubt stays: it may be another member's.
-- $1 id, $2 region, $3 cluster, $4 epoch seen, $5 actor, $6 reason, $7 step, $8 result, $9 reference,
-- $10 lifetime from now in ms, for those that are not paused
with seen as materialized (
    select t.* from ringsaga.transaction t
    where t.id = $1 and t.region is not distinct from $2 and t.cluster is not distinct from $3
    for update
),
open as materialized (
    select seen.id, seen.direction, seen.seq from seen
    where $7 = coalesce(
        (select d.steps[seen.seq + 1] from ringsaga.definition d where d.id = seen.definition),
        (select s.name from ringsaga.step s
        where s.transaction = seen.id and s.seq = seen.seq limit 1))
    union all
    select s.transaction, s.direction, s.seq from seen join ringsaga.step s
        on s.transaction = seen.id and s.direction = seen.direction and s.seq > seen.seq
    where seen.direction = 'forward' and s.name = $7 and s.outcome in ('paused', 'refused')
    limit 1
),
done as (
    update ringsaga.transaction t
    set state = 'paused', owner = null, due_at = case when seen.state = 'paused'
            then least(t.expires_at, statement_timestamp()) else statement_timestamp() end,
        settled_at = null, waiting_on = null,
        expires_at = case when seen.state = 'paused' then t.expires_at
            else greatest(t.expires_at,
                statement_timestamp() + $10::bigint * interval '1 millisecond') end,
        progressed_at = statement_timestamp(), epoch = t.epoch + 1, attempts = 0, deaths = 0
    from seen join open on open.id = seen.id
    where t.id = seen.id and seen.epoch = $4
        and seen.state in ('paused', 'disabled', 'terminated', 'quarantined')
    returning t.id, t.epoch, open.direction, open.seq
),
recorded as (
    insert into ringsaga.step as s (transaction, direction, seq, name, outcome, class, doubt,
        result, error, attempts, started_at, ended_at, epoch, recorded_at)
    select id, direction, seq, $7, 'done', null, false, $8, 'done by hand by ' || $5 || ': ' || $9,
        0, statement_timestamp(), statement_timestamp(), epoch, statement_timestamp()
    from done
    on conflict (transaction, direction, seq) do update set
        outcome = 'done', class = null, doubt = false, result = excluded.result,
        error = excluded.error, ended_at = excluded.ended_at, epoch = excluded.epoch,
        recorded_at = excluded.recorded_at
    where s.outcome <> 'done'
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction, detail)
    select $5, $6, 'skip', id, json_build_object('step', $7::text, 'direction', direction,
        'reference', $9::text, 'result', $8::json)::text
    from done
)
select epoch from done
