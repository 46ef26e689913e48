-- An operator's signal or cancel: kept as in wake.sql, and audited. A repeat under the same id
-- changes nothing and answers as the first did. What is settled hears nothing; what is being undone
-- is not cancelled.
-- No epoch is compared: a wake-up fits whoever runs it.
-- $1 id, $2 region, $3 cluster, $4 actor, $5 reason, $6 wake id, $7 kind, $8 body
with target as materialized (
    select t.id, t.epoch from ringsaga.transaction t
    where t.id = $1 and t.region is not distinct from $2 and t.cluster is not distinct from $3
        and t.state in ('running', 'paused') and ($7 <> 'cancel' or t.direction = 'forward')
    for update
),
kept as (
    insert into ringsaga.wake (id, transaction, kind, body)
    select $6, id, $7, $8 from target
    on conflict (id) do nothing
    returning transaction
),
raised as (
    update ringsaga.transaction t
    set wake_seq = t.wake_seq + 1,
        waiting_on = null,
        due_at = case when t.state = 'paused'
            then least(t.expires_at, statement_timestamp()) end
    from kept
    where t.id = kept.transaction
    returning t.id
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction, detail)
    select $4, $5, $7, id, case when $7 <> 'cancel' then $8 end from raised
)
select epoch from target
where exists (select from kept)
    or exists (select from ringsaga.wake w where w.id = $6 and w.transaction = $1)
