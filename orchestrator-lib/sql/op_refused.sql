-- How a transaction stands that an order did not fit, and what operators did to it last.
-- $1 id, $2 region, $3 cluster
select t.state, t.direction, t.seq, t.epoch, o.instance, a.actor, a.action, a.reason, a.at
from ringsaga.transaction t
    left join ringsaga.owner o on o.incarnation = t.owner
    left join lateral (
        select * from ringsaga.audit a where a.transaction = t.id order by a.id desc limit 1
    ) a on true
where t.id = $1 and t.region is not distinct from $2 and t.cluster is not distinct from $3
