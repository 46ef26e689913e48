-- An operator gives one transaction a retry policy of its own (null: the definition's again). Who
-- runs it now keeps the policy that it was claimed with, and is not disturbed.
-- $1 id, $2 region, $3 cluster, $4 epoch seen, $5 actor, $6 reason, $7 policy as JSON
with seen as materialized (
    select * from ringsaga.transaction t
    where t.id = $1 and t.region is not distinct from $2 and t.cluster is not distinct from $3
    for update
),
done as (
    update ringsaga.transaction t
    set epoch = t.epoch + case when seen.state = 'running' then 0 else 1 end
    from seen
    where t.id = seen.id and seen.epoch = $4 and seen.state not in ('completed', 'compensated')
    returning t.id, t.epoch
),
kept as (
    update ringsaga.payload p set retry = $7 from done where p.transaction = done.id
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction, detail)
    select $5, $6, 'policy', id, coalesce($7::text, '{}') from done
)
select epoch from done
