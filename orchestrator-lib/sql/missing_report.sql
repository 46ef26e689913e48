-- Which definitions have transactions, parked or left by the dead, that no living retry node can
-- run, how many (counted up to 10,000 of a kind, so that the question stays cheap) and when the
-- first one's lifetime ends. Orphans count before they are parked: nobody else looks at them.
-- $1 region, $2 cluster, $3 service
with able as materialized (
    select distinct unnest(o.capabilities) as definition from ringsaga.owner o
    where o.region = $1 and o.cluster = $2 and o.service = $3
        and o.dead_at is null and o.lease_until > statement_timestamp() and o.retry_node
),
lost as materialized (
    select d.id from ringsaga.definition d
    where not d.id = any(array(select definition from able))
),
dead as materialized (
    select o.incarnation from ringsaga.owner o
    where o.region = $1 and o.cluster = $2 and o.service = $3 and o.dead_at is not null
),
orphan as materialized (
    select found.definition, count(*) as transactions, min(found.expires_at) as first_expires_at
    from dead cross join lateral (
        select t.definition, t.expires_at from ringsaga.transaction t
        where t.owner = dead.incarnation and t.state = 'running'
            and t.definition = any(array(select id from lost))
        limit 10000
    ) found
    group by found.definition
),
kind as (
    select lost.id, parked.transactions, parked.first_expires_at
    from lost cross join lateral (
        select count(*) as transactions, min(found.expires_at) as first_expires_at
        from (
            (select t.expires_at from ringsaga.transaction t
            where t.region = $1 and t.cluster = $2 and t.service = $3 and t.definition = lost.id
                and t.definition > 0
                and t.state = 'paused' and t.waiting_on is null
            limit 10000)
            union all
            (select t.expires_at from ringsaga.transaction t
            where t.region = $1 and t.cluster = $2 and t.service = $3 and t.definition = lost.id
                and t.definition > 0
                and t.state = 'paused' and t.waiting_on is not null
            limit 10000)
        ) found
    ) parked
    where parked.transactions > 0
    union all
    select definition, transactions, first_expires_at from orphan
)
select d.saga, d.version, sum(kind.transactions)::bigint as transactions,
    min(kind.first_expires_at) as first_expires_at
from kind join ringsaga.definition d on d.id = kind.id
group by d.saga, d.version
order by d.saga, d.version
