-- Death is written once: only where it is not written and the lease is over. Rows that somebody
-- renews or buries at this moment are skipped; the next look sees them.
-- $1 region, $2 cluster, $3 service, $4 incarnation that asks
with late as materialized (
    select incarnation from ringsaga.owner
    where region = $1 and cluster = $2 and service = $3 and dead_at is null
        and lease_until < statement_timestamp() and incarnation <> $4
    order by incarnation
    for update skip locked
)
update ringsaga.owner o set dead_at = statement_timestamp()
from late
where o.incarnation = late.incarnation and o.dead_at is null
    and o.lease_until < statement_timestamp()
returning o.incarnation, o.boot, o.instance
