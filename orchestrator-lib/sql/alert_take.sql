-- Takes what is due for one hook, oldest first, under a lease, and counts the attempt; nothing
-- while the hook's pace forbids a call. Pace is kept here, so that all notifiers share it.
-- $1 region, $2 cluster, $3 hook, $4 at most so many, $5 lease, $6 its length in ms,
-- $7 ms between two calls of the hook
with due as materialized (
    select d.alert from ringsaga.alert_delivery d
    where d.region = $1 and d.cluster = $2 and d.hook = $3
        and d.delivered_at is null and d.given_up_at is null
        and d.due_at <= (select statement_timestamp())
    order by d.due_at limit $4::bigint
    for update skip locked
),
permit as (
    insert into ringsaga.alert_pace as p (region, cluster, hook, free_at)
    select $1, $2, $3, statement_timestamp() + $7::bigint * interval '1 millisecond'
    where exists (select from due)
    on conflict (region, cluster, hook) do update set free_at = excluded.free_at
        where p.free_at <= statement_timestamp()
    returning p.hook
),
taken as (
    update ringsaga.alert_delivery d
    set attempts = d.attempts + 1, lease = $5,
        due_at = statement_timestamp() + $6::bigint * interval '1 millisecond'
    from due
    where d.alert = due.alert and d.hook = $3 and exists (select from permit)
    returning d.alert, d.attempts
)
select a.id, a.at, a.kind, a.region, a.cluster, a.service, a.transaction, a.saga, a.version,
    a.step, a.text, taken.attempts
from taken join ringsaga.alert a on a.id = taken.alert
order by a.at, a.id
