-- A wake-up from outside. A settled transaction is not woken.
-- $1 wake id, $2 kind, $3 body, $4 transaction
with target as materialized (
    select id from ringsaga.transaction
    where id = $4 and state in ('running', 'paused')
    for update
),
