-- Takes alerts that were not counted yet: each is counted, and where nobody else has said it said
-- on the bus, by one node, at most once.
-- $1 region, $2 cluster, $3 service, $4 at most so many
with untold as materialized (
    select a.id from ringsaga.alert a
    where a.region = $1 and a.cluster = $2 and a.service = $3 and a.told_at is null
    limit $4::bigint
    for update skip locked
)
update ringsaga.alert a set told_at = statement_timestamp()
from untold where a.id = untold.id
returning a.id, a.at, a.kind, a.region, a.cluster, a.service, a.transaction, a.saga, a.version,
    a.step, a.text
