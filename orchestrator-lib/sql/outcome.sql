-- How transactions stand, for callers that wait for the end. $1 ids
select t.id, t.state, p.result, p.error
from ringsaga.transaction t left join ringsaga.payload p on p.transaction = t.id
where t.id = any($1::uuid[])
