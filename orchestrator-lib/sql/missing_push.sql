-- What no living retry node can run: pushed a minute without using an attempt, so that it stands
-- in nobody's way and keeps its place; disabled when its lifetime is over, which needs no executor.
-- Orphans among it are parked: the call that was open is in doubt.
-- $1 owner, $2 region, $3 cluster, $4 service, $5 limit, $6 deaths until quarantine
with able as materialized (
    select distinct unnest(o.capabilities) as definition from ringsaga.owner o
    where o.region = $2 and o.cluster = $3 and o.service = $4
        and o.dead_at is null and o.lease_until > statement_timestamp() and o.retry_node
),
me as materialized (
    select incarnation from ringsaga.owner
    where incarnation = $1 and dead_at is null and lease_until > statement_timestamp()
),
lost as materialized (
    select d.id from ringsaga.definition d
    where not d.id = any(array(select definition from able)) and exists (select from me)
),
dead as materialized (
    select o.incarnation, o.suspect from ringsaga.owner o
    where o.region = $2 and o.cluster = $3 and o.service = $4 and o.dead_at is not null
),
candidate as materialized (
    select due.id
    from lost cross join lateral (
        select t.id from ringsaga.transaction t
        where t.region = $2 and t.cluster = $3 and t.service = $4 and t.definition = lost.id
            and t.definition > 0
            and t.state = 'paused' and t.waiting_on is null
            and t.due_at <= statement_timestamp()
        order by t.due_at
        limit $5::bigint
    ) due
    union all
    select due.id
    from lost cross join lateral (
        select t.id from ringsaga.transaction t
        where t.region = $2 and t.cluster = $3 and t.service = $4 and t.definition = lost.id
            and t.definition > 0
            and t.state = 'paused' and t.waiting_on is not null
            and t.due_at <= statement_timestamp()
        order by t.due_at
        limit $5::bigint
    ) due
    union all
    select orphan.id
    from dead cross join lateral (
        select t.id from ringsaga.transaction t
        where t.owner = dead.incarnation and t.state = 'running'
            and t.definition = any(array(select id from lost))
        limit $5::bigint
    ) orphan
),
held as materialized (
    select t.id, t.state, t.owner, t.deaths, t.expires_at <= statement_timestamp() as expired
    from ringsaga.transaction t
    where t.id = any(array(select id from candidate))
        and t.region is not distinct from $2 and t.cluster is not distinct from $3
        and t.service is not distinct from $4
        and t.definition = any(array(select id from lost))
        and ((t.state = 'paused' and t.due_at <= statement_timestamp())
            or (t.state = 'running' and t.owner + 0 = any(array(select incarnation from dead))))
    order by t.id
    limit $5::bigint
    for update skip locked
),
locked as materialized (
    select held.id, held.state, held.expired, held.deaths + case
            when held.state = 'paused' then 0
            when held.deaths < 2 then 1
            when held.id = (select suspect from dead where incarnation = held.owner) then 1
            else 0 end as deaths
    from held
),
pushed as (
    update ringsaga.transaction t set
        state = case when locked.deaths >= $6::integer then 'quarantined'
            when locked.expired then 'disabled' else 'paused' end,
        owner = null,
        waiting_on = null,
        due_at = case when locked.deaths < $6::integer and not locked.expired
            then least(t.expires_at, statement_timestamp() + interval '1 minute') end,
        settled_at = case when locked.deaths >= $6::integer or locked.expired
            then statement_timestamp() end,
        epoch = t.epoch + 1,
        doubt = t.doubt or locked.state = 'running',
        deaths = locked.deaths
    from locked
    where t.id = locked.id
    returning t.id, t.state
),
explained as (
    update ringsaga.payload p set
        error = case when pushed.state = 'disabled' then 'its lifetime is over'
            else 'its processes died too often while it ran' end
    from pushed
    where p.transaction = pushed.id and pushed.state <> 'paused'
)
select count(*) as pushed, count(*) filter (where state = 'disabled') as disabled,
    count(*) filter (where state = 'quarantined') as quarantined
from pushed
