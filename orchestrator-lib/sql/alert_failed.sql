-- The hook does not have them: tried again later, or given up. Only by the lease that tried.
-- A pause that the hook asked for holds all its calls back.
-- $1 region, $2 cluster, $3 hook, $4 alerts, $5 lease, $6 error, $7 again after ms,
-- $8 given up after so many attempts, $9 the hook asks for a pause of ms (null: it does not)
with failed as (
    update ringsaga.alert_delivery d
    set error = $6, lease = null,
        due_at = statement_timestamp() + $7::bigint * interval '1 millisecond',
        given_up_at = case when d.attempts >= $8::integer then statement_timestamp() end
    where d.hook = $3 and d.alert = any($4::uuid[]) and d.lease = $5 and d.delivered_at is null
    returning d.alert, d.given_up_at
),
held as (
    update ringsaga.alert_pace p
    set free_at = greatest(p.free_at,
        statement_timestamp() + $9::bigint * interval '1 millisecond')
    where p.region = $1 and p.cluster = $2 and p.hook = $3 and $9::bigint is not null
)
select count(*) filter (where given_up_at is not null) as given_up from failed
