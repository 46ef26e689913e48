-- An operator's signal or cancel, audited. A repeat under the same id answers as the first did. What
-- is settled hears nothing; what is being undone is not cancelled.
-- No epoch is compared: a wake-up fits whoever runs it.
-- $1 wake id, $2 kind, $3 body, $4 id, $5 region, $6 cluster, $7 actor, $8 reason
with target as materialized (
    select t.id, t.epoch from ringsaga.transaction t
    where t.id = $4 and t.region is not distinct from $5 and t.cluster is not distinct from $6
        and t.state in ('running', 'paused') and ($2 <> 'cancel' or t.direction = 'forward')
    for update
),
