-- Transactions for people, newest first, a page at a time by key (no offset: pages stay cheap and
-- don't shift). Ids sort by creation.
-- $1 region, $2 cluster, $3 service (null: all), $4 states (null: all), $5 saga (null: all),
-- $6 before this id (null: from the newest), $7 limit
select t.id, t.service, d.saga, d.version, t.state, t.direction, t.seq, t.doubt, t.attempts,
    t.waiting_on, t.due_at, t.created_at, t.expires_at, t.settled_at, t.token, o.instance
from ringsaga.transaction t
    join ringsaga.definition d on d.id = t.definition
    left join ringsaga.owner o on o.incarnation = t.owner
where t.region = $1 and t.cluster = $2
    and ($3::text is null or t.service = $3)
    and ($4::text[] is null or t.state = any($4))
    and ($5::text is null or d.saga = $5)
    and ($6::uuid is null or t.id < $6)
order by t.id desc
limit $7::bigint
