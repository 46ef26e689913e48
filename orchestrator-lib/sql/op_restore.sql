-- An operator puts an unfortunate transaction back where it stood: longer lifetime, direction and
-- place kept, due at once. "restore" takes the disabled, terminated and quarantined,
-- "retry-compensation" those whose compensation failed for good. The pause since it last moved
-- counts neither as idle nor as attempts. Whoever checked that the open step (or every open one
-- of its group) was not applied takes the doubt away.
-- $1 id, $2 region, $3 cluster, $4 epoch seen, $5 actor, $6 reason, $7 action,
-- $8 lifetime from now in ms, $9 the open step is known not to be applied
with seen as materialized (
    select * from ringsaga.transaction t
    where t.id = $1 and t.region is not distinct from $2 and t.cluster is not distinct from $3
    for update
),
done as (
    update ringsaga.transaction t
    set state = 'paused', owner = null, due_at = statement_timestamp(), settled_at = null,
        expires_at = greatest(t.expires_at,
            statement_timestamp() + $8::bigint * interval '1 millisecond'),
        progressed_at = statement_timestamp(),
        epoch = t.epoch + 1, attempts = 0, deaths = 0, waiting_on = null,
        doubt = t.doubt and not $9::boolean
    from seen
    where t.id = seen.id and seen.epoch = $4 and case $7
        when 'restore' then seen.state in ('disabled', 'terminated', 'quarantined')
        else seen.state = 'terminated' and seen.direction = 'compensating' end
    returning t.id, t.epoch, t.direction, t.seq
),
known as (
    update ringsaga.step s set doubt = false
    from done
    where $9::boolean and s.transaction = done.id and s.direction = done.direction
        and s.outcome in ('refused', 'paused')
        and (s.seq = done.seq or done.direction = 'forward' and s.seq > done.seq)
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction, detail)
    select $5, $6, $7, id, case when $9::boolean then '{"not_applied":true}' end from done
)
select epoch from done
