-- What came to a transaction from outside, oldest first: signals, cancels and ends of children
-- ("wake"), and what operators did ("audit"). $1 id
select 'wake' as source, w.created_at as at, w.kind as what, null::text as actor,
    null::text as reason, w.body as detail
from ringsaga.wake w where w.transaction = $1
union all
select 'audit', a.at, a.action, a.actor, a.reason, a.detail
from ringsaga.audit a where a.transaction = $1
order by at
limit 1000
