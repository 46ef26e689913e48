-- Everything that could keep a transaction from being continued now, of one moment. $1 id
with row as materialized (
    select t.*, d.saga, d.version, d.steps from ringsaga.transaction t
        join ringsaga.definition d on d.id = t.definition
    where t.id = $1
),
living as materialized (
    select o.retry_node, r.definition = any(o.capabilities) as able,
        o.suspect is not null and o.suspect <> r.id as busy
    from row r join ringsaga.owner o
        on o.region = r.region and o.cluster = r.cluster and o.service = r.service
    where o.dead_at is null and o.lease_until > statement_timestamp()
)
select r.id, r.region, r.cluster, r.service, r.saga, r.version, r.state, r.direction, r.seq,
    r.doubt, r.attempts, r.deaths, r.waiting_on, r.due_at, r.expires_at, r.settled_at,
    r.progressed_at, r.epoch, statement_timestamp() as clock,
    o.instance, o.dead_at, o.lease_until, o.opened_at as owner_since,
    (select count(*) from living) as living,
    (select count(*) from living where retry_node) as retry_nodes,
    (select count(*) from living where retry_node and able) as able,
    (select count(*) from living where not retry_node and able) as able_elsewhere,
    (select count(*) from living where retry_node and able and busy) as busy,
    coalesce(s.name, r.steps[r.seq + 1]) as step, s.outcome, s.error as said, p.error, p.retry,
    exists (select from ringsaga.wake w where w.transaction = r.id and w.kind = 'cancel') as cancelled,
    (select a.actor || ': ' || a.action from ringsaga.audit a where a.transaction = r.id
        order by a.id desc limit 1) as last_deed
from row r
    left join ringsaga.owner o on o.incarnation = r.owner
    left join ringsaga.step s
        on s.transaction = r.id and s.direction = r.direction and s.seq = r.seq
    left join ringsaga.payload p on p.transaction = r.id
