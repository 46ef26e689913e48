-- The sweeper: overdue anywhere on the ring, whatever the ring says; and probes, which are rows
-- that wait for a target and whose backoff has passed (at most a quarter of a sweep, so that a
-- target that is down never fills it).
-- One index probe a definition: a row that others can run stands in nobody's way. Definitions take
-- turns, each with its oldest due row: ten thousand overdue rows of one saga don't keep one of
-- another waiting. A definition
-- that some living retry node lacks is swept as soon as it is due, since the ring's owner may be
-- one that leaves it.
-- Four times the wanted rows are looked at, so that nodes sweeping at once find different ones; of
-- those the first in turn are taken. They are locked in that order: who skips locked rows never waits,
-- so no order of locks can close a circle. Each keeps the bound by which it was found.
-- "me" is read and not locked, so this process may be declared dead before the claim is committed:
-- then the claimed rows are orphans from the start. Whoever takes them raises the epoch, and every
-- later write of ours is lost.
-- $1 owner, $2 region, $3 cluster, $4 service, $5 definitions, $6 nonces, $7 suspects allowed,
-- $8 overdue by milliseconds
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
wanted as materialized (
    select d.definition, statement_timestamp() - case
        when exists (
            select from ringsaga.owner o
            where o.region = $2 and o.cluster = $3 and o.service = $4
                and o.dead_at is null and o.lease_until > statement_timestamp()
                and o.retry_node and not d.definition = any(o.capabilities)
        ) then interval '0'
        else $8::bigint * interval '1 millisecond'
    end as before
    from unnest($5::integer[]) as d(definition)
),
overdue as materialized (
    select found.id, wanted.before,
        row_number() over (partition by wanted.definition order by found.due_at) as turn
    from wanted cross join lateral (
        select t.id, t.due_at from ringsaga.transaction t
        where t.region = $2 and t.cluster = $3 and t.service = $4
            and t.definition = wanted.definition and t.definition > 0
            and t.state = 'paused' and t.waiting_on is null
            and t.due_at <= wanted.before
            and (t.deaths < 2 or (select allowed from alone))
        order by t.due_at
        limit 4 * cardinality($6::uuid[])
    ) found
    where exists (select from me)
    order by turn, found.due_at
    limit 4 * cardinality($6::uuid[])
),
probe as materialized (
    select found.id, statement_timestamp() as before,
        row_number() over (partition by wanted.definition order by found.due_at) as turn
    from wanted cross join lateral (
        select t.id, t.due_at from ringsaga.transaction t
        where t.region = $2 and t.cluster = $3 and t.service = $4
            and t.definition = wanted.definition and t.definition > 0
            and t.state = 'paused' and t.waiting_on is not null
            and t.due_at <= statement_timestamp()
            and (t.deaths < 2 or (select allowed from alone))
        order by t.due_at
        limit greatest(1, cardinality($6::uuid[]) / 4)
    ) found
    where exists (select from me)
    order by turn, found.due_at
    limit greatest(1, cardinality($6::uuid[]) / 4)
),
candidate as materialized (
    select id, before, turn, false as waits from overdue
    union all
    select id, before, turn, true from probe
),
locked as materialized (
    select t.id, t.doubt, t.deaths, t.deaths >= 2 as suspect, t.due_at as place,
        case when t.expires_at <= statement_timestamp() then 'disabled' else 'running' end as becomes
    from candidate join ringsaga.transaction t on t.id = candidate.id
    where t.region is not distinct from $2 and t.cluster is not distinct from $3
        and t.service is not distinct from $4
        and t.state is not distinct from 'paused'
        and (t.waiting_on is not null) = candidate.waits
        and t.due_at <= candidate.before
        and t.definition = any($5::integer[])
        and (t.deaths < 2 or (select allowed from alone))
    order by candidate.turn, t.due_at
    limit cardinality($6::uuid[])
    for update of t skip locked
),
