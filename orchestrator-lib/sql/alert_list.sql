-- Alerts with their deliveries, newest first: undelivered ones, or all. One that no notifier has
-- seen yet comes with a null hook.
-- $1 region, $2 cluster, $3 delivered ones, too, $4 at most so many
select a.id, a.at, a.kind, a.region, a.cluster, a.service, a.transaction, a.saga, a.version,
    a.step, a.text, d.hook, coalesce(d.attempts, 0) as attempts, d.due_at, d.delivered_at,
    d.given_up_at, d.error
from ringsaga.alert a
left join ringsaga.alert_delivery d on d.alert = a.id
where a.region = $1 and a.cluster = $2 and a.key > ''
    and ($3::boolean or a.spread_at is null
        or d.alert is not null and d.delivered_at is null)
order by a.at desc, a.id, d.hook limit $4::bigint
