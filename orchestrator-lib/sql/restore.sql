-- An operator puts a disabled, terminated or quarantined transaction back: longer lifetime,
-- direction and place kept, due at once. Conditional on the epoch that the operator saw, and
-- audited in the same statement.
-- $1 id, $2 epoch seen, $3 lifetime from now in ms, $4 actor, $5 reason
with restored as (
    update ringsaga.transaction t
    set state = 'paused', due_at = statement_timestamp(), settled_at = null,
        expires_at = greatest(t.expires_at,
            statement_timestamp() + $3::bigint * interval '1 millisecond'),
        epoch = t.epoch + 1, attempts = 0, deaths = 0, waiting_on = null
    where t.id = $1 and t.epoch = $2 and t.state in ('disabled', 'terminated', 'quarantined')
    returning t.id, t.epoch
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction)
    select $4, $5, 'restore', id from restored
)
select epoch from restored
