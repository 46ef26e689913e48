-- Branch 2: owned by the dead, anywhere on the ring. Only dead_at counts, never the lease, so a
-- renewal can't race this. What was running may have been called: it is in doubt.
-- Deaths: up to two for every row of the dead; from two on a row is a suspect, and a death counts
-- only when the dead process ran it as its one suspect. At the limit it is quarantined.
-- Four times the wanted rows are looked at, so that nodes sweeping at once find different ones.
-- "me" is read and not locked, so this process may be declared dead before the claim is committed:
-- then the claimed rows are orphans from the start. Whoever takes them raises the epoch, and every
-- later write of ours is lost.
-- $1 owner, $2 region, $3 cluster, $4 service, $5 definitions, $6 nonces, $7 suspects allowed,
-- $8 deaths until quarantine
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
dead as materialized (
    select o.incarnation, o.suspect from ringsaga.owner o
    where o.region = $2 and o.cluster = $3 and o.service = $4 and o.dead_at is not null
),
candidate as materialized (
    select orphan.id
    from dead cross join lateral (
        select t.id from ringsaga.transaction t
        where t.owner = dead.incarnation and t.state = 'running'
            and t.region = $2 and t.cluster = $3 and t.service = $4
            and t.definition = any($5::integer[])
        order by t.slot
        limit 4 * cardinality($6::uuid[])
    ) orphan
    where exists (select from me)
    limit 4 * cardinality($6::uuid[])
),
held as materialized (
    select t.id, t.expires_at, t.progressed_at, t.owner, t.deaths
    from ringsaga.transaction t
    where t.id = any(array(select id from candidate))
        and t.region is not distinct from $2 and t.cluster is not distinct from $3
        and t.service is not distinct from $4
        and t.state is not distinct from 'running'
        -- The dead never come back, so a list of them can't be out of date; "+ 0" because the rows
        -- must be found by id and not by owner.
        and t.owner + 0 = any(array(select incarnation from dead))
        and t.definition = any($5::integer[])
        and (t.deaths < 1 or (select allowed from alone)
            or t.expires_at <= statement_timestamp()
            or (t.deaths + 1 >= $8::integer
                and t.id = any(array(select suspect from dead where suspect is not null))))
    order by t.id
    limit cardinality($6::uuid[])
    for update skip locked
),
judged as materialized (
    select held.id, held.expires_at, held.progressed_at,
        held.deaths + case
            when held.deaths < 2 then 1
            when held.id = (select suspect from dead where incarnation = held.owner) then 1
            else 0 end as deaths
    from held
),
locked as materialized (
    select id, true as doubt, deaths, progressed_at as place,
        deaths >= 2 and deaths < $8::integer and expires_at > statement_timestamp() as suspect,
        case when deaths >= $8::integer then 'quarantined'
            when expires_at <= statement_timestamp() then 'disabled'
            else 'running' end as becomes
    from judged
),
