-- Of rows that a write did not get: those that exist are held by somebody else at the moment.
-- $1 ids
select id from ringsaga.transaction where id = any($1::uuid[])
