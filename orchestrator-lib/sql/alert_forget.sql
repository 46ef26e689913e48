-- Removes alerts that nobody looks for any more, with their deliveries, and what remembers them.
-- $1 region, $2 cluster, $3 older than so many ms
with gone as (
    delete from ringsaga.alert a
    where a.region = $1 and a.cluster = $2 and a.key > ''
        and a.at < (select statement_timestamp() - $3::bigint * interval '1 millisecond')
    returning a.id
),
unremembered as (
    delete from ringsaga.alert_raised r
    where r.at < (select statement_timestamp() - $3::bigint * interval '1 millisecond')
)
select count(*) as alerts from gone
