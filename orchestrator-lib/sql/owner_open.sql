-- A new incarnation of a process.
-- $1 boot, $2 instance, $3 region, $4 cluster, $5 service, $6 retry node, $7 definitions,
-- $8 lease in ms
insert into ringsaga.owner (boot, instance, region, cluster, service, retry_node, capabilities,
    lease_until)
values ($1, $2, $3, $4, $5, $6, $7::integer[],
    statement_timestamp() + $8::bigint * interval '1 millisecond')
returning incarnation, statement_timestamp() as clock
