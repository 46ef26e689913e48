-- The wake-ups of rows just claimed, oldest first. $1 ids
select transaction, kind, body from ringsaga.wake
where transaction = any($1::uuid[])
order by transaction, n
