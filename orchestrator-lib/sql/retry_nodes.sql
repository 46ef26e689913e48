-- Whether a service has a living retry node; and when it has none, how many transactions wait for
-- one: parked, waiting for a target, or left by a dead process (counted up to 10,000 of a kind, so
-- that the question stays cheap).
-- $1 region, $2 cluster, $3 service
with present as materialized (
    select exists (
        select from ringsaga.owner
        where region = $1 and cluster = $2 and service = $3
            and dead_at is null and lease_until > statement_timestamp() and retry_node
    ) as retry_node
)
select retry_node, case when retry_node then 0 else (
    select count(*) from (
        (select 1 from ringsaga.transaction t
        where t.region = $1 and t.cluster = $2 and t.service = $3
            and t.state = 'paused' and t.waiting_on is null and t.slot >= 0
        limit 10000)
        union all
        (select 1 from ringsaga.transaction t
        where t.region = $1 and t.cluster = $2 and t.service = $3
            and t.state = 'paused' and t.waiting_on is not null and t.slot >= 0
        limit 10000)
        union all
        (select 1 from ringsaga.owner o join ringsaga.transaction t on t.owner = o.incarnation
        where o.region = $1 and o.cluster = $2 and o.service = $3 and o.dead_at is not null
            and t.state = 'running'
        limit 10000)
    ) found
) end as waiting
from present
