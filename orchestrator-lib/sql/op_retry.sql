-- An operator wants a paused transaction tried now, whatever it waits for. The attempts stay: the
-- policy goes on counting. Shape of all op_*.sql: what is locked is judged and changed and audited
-- in one statement, conditional on the epoch that the operator saw; no row in the answer is a
-- refusal, and op_refused.sql says why. A row that changed while it was waited for is first put
-- together from what it was, and the table's checks see that: so state, owner, due time and end are
-- all said, even those that the locked row has already.
-- $1 id, $2 region, $3 cluster, $4 epoch seen, $5 actor, $6 reason
with seen as materialized (
    select * from ringsaga.transaction t
    where t.id = $1 and t.region is not distinct from $2 and t.cluster is not distinct from $3
    for update
),
done as (
    update ringsaga.transaction t
    set state = 'paused', owner = null, settled_at = null,
        due_at = least(t.expires_at, statement_timestamp()), waiting_on = null,
        epoch = t.epoch + 1
    from seen
    where t.id = seen.id and seen.epoch = $4 and seen.state = 'paused'
    returning t.id, t.epoch
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction)
    select $5, $6, 'retry', id from done
)
select epoch from done
