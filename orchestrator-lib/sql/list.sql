-- Transactions for people, newest first, a page at a time by key (no offset: pages stay cheap and
-- don't shift). Ids sort by creation. list_oldest.sql is this statement the other way round.
-- Each way to find them has a branch with an index of its own; the others are false before they
-- begin. "walk" goes along the ids and looks at a bounded number, whatever the filters leave.
-- $1 region, $2 cluster, $3 way, $4 before this id, $5 not before this id, $6 service, $7 states,
-- $8 saga, $9 version, $10 direction, $11 attempts at least, $12 waiting on, $13 created from,
-- $14 created before, $15 due before, $16 part of the error, $17 key, $18 look at so many,
-- $19 show so many; null: any
select t.id, t.service, d.saga, d.version, t.state, t.direction, t.seq, t.doubt, t.attempts,
    t.waiting_on, t.due_at, t.created_at, t.expires_at, t.settled_at, t.token, o.instance, t.epoch,
    coalesce(d.steps[t.seq + 1], (select s.name from ringsaga.step s
        where s.transaction = t.id and s.seq = t.seq limit 1)) as step,
    p.error
from (
    (select t.id from ringsaga.transaction t
    where $3 = 'walk' and t.id < $4 and t.id >= $5
    order by t.id desc
    limit $18::bigint)
    union all
    (select t.id from ringsaga.transaction t
    where $3 = 'unfortunate' and t.region = $1 and t.cluster = $2
        and ($6::text is null or t.service = $6)
        and t.state in ('terminated', 'disabled', 'quarantined') and t.state = any($7::text[])
        and t.id < $4 and t.id >= $5
    order by t.id desc
    limit $18::bigint)
    union all
    (select t.id from ringsaga.owner o join ringsaga.transaction t on t.owner = o.incarnation
    where $3 = 'running' and o.region = $1 and o.cluster = $2
        and ($6::text is null or o.service = $6)
        and t.state = 'running' and t.id < $4 and t.id >= $5
    order by t.id desc
    limit $18::bigint)
    union all
    (select t.id from ringsaga.transaction t
    where $3 = 'waiting' and t.region = $1 and t.cluster = $2 and t.service = $6
        and t.state = 'paused' and t.waiting_on is not null and t.waiting_on = $12 and t.slot >= 0
        and t.id < $4 and t.id >= $5
    order by t.id desc
    limit $18::bigint)
    union all
    (select k.transaction from ringsaga.idempotency k
    where $3 = 'key' and k.region = $1 and k.cluster = $2 and k.service = $6 and k.saga = $8
        and k.key = $17 and k.transaction < $4 and k.transaction >= $5)
) found
    join ringsaga.transaction t on t.id = found.id
    join ringsaga.definition d on d.id = t.definition
    left join ringsaga.owner o on o.incarnation = t.owner
    left join ringsaga.payload p on p.transaction = t.id
where t.region is not distinct from $1 and t.cluster is not distinct from $2
    and ($6::text is null or t.service = $6)
    and ($7::text[] is null or t.state = any($7))
    and ($8::text is null or d.saga = $8)
    and ($9::bigint is null or d.version = $9)
    and ($10::text is null or t.direction = $10)
    and ($11::bigint is null or t.attempts >= $11)
    and ($12::text is null or t.waiting_on = $12)
    and ($13::timestamptz is null or t.created_at >= $13)
    and ($14::timestamptz is null or t.created_at < $14)
    and ($15::timestamptz is null or t.due_at < $15)
    and ($16::text is null or strpos(lower(p.error), lower($16)) > 0)
    and ($17::text is null or p.key = $17)
order by found.id desc
limit $19::bigint
