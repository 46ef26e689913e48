-- An operator closes a transaction that a person brought to an end elsewhere. A parent that waits
-- for it is woken in the same commit by the row's trigger; both rows are locked in id order.
-- $1 id, $2 region, $3 cluster, $4 epoch seen, $5 actor, $6 reason, $7 state, $8 result, $9 reference
with family as materialized (
    select t.* from ringsaga.transaction t
    where t.id in ($1, (select c.parent from ringsaga.transaction c where c.id = $1))
    order by t.id
    for update
),
done as (
    update ringsaga.transaction t
    set state = $7, owner = null, due_at = null, waiting_on = null, settled_at = statement_timestamp(),
        progressed_at = statement_timestamp(), epoch = t.epoch + 1
    from family seen
    where t.id = seen.id and seen.id = $1 and seen.region is not distinct from $2
        and seen.cluster is not distinct from $3 and seen.epoch = $4
        and seen.state in ('paused', 'disabled', 'terminated', 'quarantined')
    returning t.id, t.epoch
),
explained as (
    update ringsaga.payload p set result = coalesce($8, p.result),
        error = case when $7 = 'compensated'
            then 'undone by hand by ' || $5 || ': ' || $9 end
    from done
    where p.transaction = done.id
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction, detail)
    select $5, $6, 'close', id, json_build_object('state', $7::text, 'reference', $9::text)::text
    from done
)
select epoch from done
