-- How transactions stand, for callers that wait for the end and for who tells of it. Why one was undone is in the record of
-- the action that was refused: its payload may hold what was said of an earlier pause. $1 ids
select t.id, d.saga, d.version, t.state, p.result, coalesce((select s.error from ringsaga.step s
        where t.state = 'compensated' and s.transaction = t.id and s.direction = 'forward'
            and s.outcome = 'refused' order by s.seq desc limit 1), p.error) as error
from ringsaga.transaction t
    join ringsaga.definition d on d.id = t.definition
    left join ringsaga.payload p on p.transaction = t.id
where t.id = any($1::uuid[])
