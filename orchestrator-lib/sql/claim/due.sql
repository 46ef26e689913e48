-- Branch 1: parked and due within the node's own ranges of the ring.
-- One index probe a slot; the exact tokens count at the edge slots. statement_timestamp() is
-- stable, so it bounds the index scan; clock_timestamp() would make every parked row be read.
-- The locking query repeats what can change: READ COMMITTED re-checks only its own predicate, so
-- without that a row claimed in between would be claimed twice. It must go by id alone: "is not
-- distinct from" is a comparison that no index serves. What outlived its lifetime is disabled on
-- the spot.
-- "me" is read and not locked, so this process may be declared dead before the claim is committed:
-- then the claimed rows are orphans from the start. Whoever takes them raises the epoch, and every
-- later write of ours is lost.
-- $1 owner, $2 region, $3 cluster, $4 service, $5 definitions, $6 nonces, $7 suspects allowed,
-- $8 first tokens, $9 last tokens
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
-- Tokens are spread evenly, so a few of the oldest of each slot are the oldest of all: reading as
-- many as are wanted from every slot would cost slots times that. What this process does not run or
-- has enough of stands in the way, but no further than "far": behind it, the sweeper finds rows by
-- their definition.
share as materialized (
    select greatest(8, 4 * cardinality($6::uuid[]) / greatest(1, count(*))) as most,
        8 * greatest(8, 4 * cardinality($6::uuid[]) / greatest(1, count(*))) as far
    from slots
),
candidate as materialized (
    select due.id
    from slots cross join lateral (
        select oldest.id, oldest.due_at from (
            select t.id, t.due_at, t.definition, t.deaths from ringsaga.transaction t
            where t.region = $2 and t.cluster = $3 and t.service = $4 and t.slot = slots.slot and t.slot >= 0
                and t.state = 'paused' and t.waiting_on is null
                and t.due_at <= statement_timestamp()
                and t.token between slots.lo and slots.hi
            order by t.due_at
            limit (select far from share)
        ) oldest
        where oldest.definition = any($5::integer[])
            and (oldest.deaths < 2 or (select allowed from alone))
        order by oldest.due_at
        limit (select most from share)
    ) due
    where exists (select from me)
    order by due.due_at
    limit cardinality($6::uuid[])
),
locked as materialized (
    select t.id, t.doubt, t.deaths, t.deaths >= 2 as suspect, t.due_at as place,
        case when t.expires_at <= statement_timestamp() then 'disabled' else 'running' end as becomes
    from ringsaga.transaction t
    where t.id = any(array(select id from candidate))
        and t.region is not distinct from $2 and t.cluster is not distinct from $3
        and t.service is not distinct from $4
        and t.state = 'paused' and t.waiting_on is null
        and t.due_at <= statement_timestamp()
        and t.definition = any($5::integer[])
        and (t.deaths < 2 or (select allowed from alone))
    order by t.id
    for update skip locked
),
