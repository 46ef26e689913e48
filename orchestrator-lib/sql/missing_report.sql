-- Which definitions have parked transactions that no living retry node can run, how many (counted
-- up to 10,000 each, so that the question stays cheap) and when the first one's lifetime ends.
-- $1 region, $2 cluster, $3 service
with able as materialized (
    select distinct unnest(o.capabilities) as definition from ringsaga.owner o
    where o.region = $1 and o.cluster = $2 and o.service = $3
        and o.dead_at is null and o.lease_until > statement_timestamp() and o.retry_node
)
select d.saga, d.version, sum(parked.transactions)::bigint as transactions,
    min(parked.first_expires_at) as first_expires_at
from ringsaga.definition d cross join lateral (
    select count(*) as transactions, min(found.expires_at) as first_expires_at
    from (
        (select t.expires_at from ringsaga.transaction t
        where t.region = $1 and t.cluster = $2 and t.service = $3 and t.definition = d.id
            and t.definition > 0
            and t.state = 'paused' and t.waiting_on is null
        limit 10000)
        union all
        (select t.expires_at from ringsaga.transaction t
        where t.region = $1 and t.cluster = $2 and t.service = $3 and t.definition = d.id
            and t.definition > 0
            and t.state = 'paused' and t.waiting_on is not null
        limit 10000)
    ) found
) parked
where not d.id = any(array(select definition from able)) and parked.transactions > 0
group by d.saga, d.version
order by d.saga, d.version
