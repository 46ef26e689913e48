-- The step logs of rows just claimed, oldest first: actions upwards, compensations downwards.
-- $1 ids
select transaction, direction, seq, name, outcome, class, doubt, result, error, attempts,
    started_at, ended_at
from ringsaga.step
where transaction = any($1::uuid[])
order by transaction, direction = 'compensating',
    case when direction = 'compensating' then -seq else seq end
