-- Makes the deliveries of new alerts: one for each hook that wants the kind. An alert that no hook
-- wants is done with that.
-- $1 region, $2 cluster, $3 at most so many, $4 hooks, $5 kinds (hook and kind by place), $6 kinds
-- that this binary knows: others are left to a newer one
with fresh as materialized (
    select a.id, a.kind, a.at from ringsaga.alert a
    where a.region = $1 and a.cluster = $2 and a.spread_at is null
        and a.kind = any($6::text[])
    order by a.at limit $3::bigint
    for update skip locked
),
deliveries as (
    insert into ringsaga.alert_delivery (alert, hook, region, cluster, due_at)
    select fresh.id, wanted.hook, $1, $2, fresh.at
    from fresh join unnest($4::text[], $5::text[]) as wanted(hook, kind)
        on wanted.kind = fresh.kind
    on conflict (alert, hook) do nothing
)
update ringsaga.alert a set spread_at = statement_timestamp()
from fresh where a.id = fresh.id
