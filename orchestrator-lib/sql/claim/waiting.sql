-- Branch 3: waiting for a target that this process sees working again, within its ranges, whatever
-- its due time; oldest due first. Shape and reasons as in due.sql, but for two things. The
-- breaker lets few through, often over the whole ring: so only as many are read of each slot as make
-- up four times the wanted, at least one. And several nodes may look at the whole ring at once, so
-- rows are locked in the order of their due times until enough are free: who skips locked rows never
-- waits, so no order of locks can close a circle.
-- "me" is read and not locked, so this process may be declared dead before the claim is committed:
-- then the claimed rows are orphans from the start. Whoever takes them raises the epoch, and every
-- later write of ours is lost.
-- $1 owner, $2 region, $3 cluster, $4 service, $5 definitions, $6 nonces, $7 suspects allowed,
-- $8 first tokens, $9 last tokens, $10 target
with me as materialized (
    select incarnation from ringsaga.owner
    where incarnation = $1 and dead_at is null and lease_until > statement_timestamp()
),
-- A suspect runs alone: none while one of them runs here.
alone as materialized (
    select $7::boolean and not exists (
        select from ringsaga.transaction t
        where t.owner = $1 and t.state = 'running' and t.deaths >= 2
    ) as allowed
),
slots as materialized (
    select cast(generate_series((r.lo >> 54) + 512, (r.hi >> 54) + 512) as smallint) as slot,
        r.lo, r.hi
    from unnest($8::bigint[], $9::bigint[]) as r(lo, hi)
),
share as materialized (
    select 1 + 4 * cardinality($6::uuid[]) / greatest(1, count(*)) as most from slots
),
candidate as materialized (
    select waiting.id
    from slots cross join lateral (
        select t.id, t.due_at from ringsaga.transaction t
        where t.region = $2 and t.cluster = $3 and t.service = $4 and t.slot = slots.slot and t.slot >= 0
            and t.state = 'paused' and t.waiting_on = $10
            and t.token between slots.lo and slots.hi
            and t.definition = any($5::integer[])
            and (t.deaths < 2 or (select allowed from alone))
        order by t.due_at
        limit (select most from share)
    ) waiting
    where exists (select from me)
    order by waiting.due_at
    limit 4 * cardinality($6::uuid[])
),
locked as materialized (
    select t.id, t.doubt, t.deaths, t.deaths >= 2 as suspect, t.due_at as place,
        case when t.expires_at <= statement_timestamp() then 'disabled' else 'running' end as becomes
    from ringsaga.transaction t
    where t.id = any(array(select id from candidate))
        and t.region is not distinct from $2 and t.cluster is not distinct from $3
        and t.service is not distinct from $4
        and t.state = 'paused' and t.waiting_on is not distinct from $10
        and t.definition = any($5::integer[])
        and (t.deaths < 2 or (select allowed from alone))
    order by t.due_at
    limit cardinality($6::uuid[])
    for update skip locked
),
