-- Holds the lease. Refused once death is written; a lease that is merely over may still be renewed.
-- $1 incarnation, $2 lease in ms
update ringsaga.owner
set lease_until = greatest(lease_until,
    statement_timestamp() + $2::bigint * interval '1 millisecond')
where incarnation = $1 and dead_at is null
returning statement_timestamp() as clock
