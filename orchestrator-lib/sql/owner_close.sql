-- The orderly end of an incarnation. $1 incarnation
update ringsaga.owner
set dead_at = statement_timestamp(), lease_until = least(lease_until, statement_timestamp())
where incarnation = $1 and dead_at is null
