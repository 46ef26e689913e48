-- Whether a service has open transactions, and whether a living retry node could continue them.
-- $1 region, $2 cluster, $3 service
select
    exists (
        select from ringsaga.owner
        where region = $1 and cluster = $2 and service = $3
            and dead_at is null and lease_until > statement_timestamp() and retry_node
    ) as retry_node,
    exists (
        select from ringsaga.transaction
        where region = $1 and cluster = $2 and service = $3
            and state = 'paused' and waiting_on is null and slot >= 0
    ) as waiting
