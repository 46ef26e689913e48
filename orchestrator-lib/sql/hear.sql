-- The wake-ups of one row and its count of them, of one moment. $1 id
select t.wake_seq, w.kind, w.body
from ringsaga.transaction t left join ringsaga.wake w on w.transaction = t.id
where t.id = $1
order by w.n
