-- After a claim whose answer was lost: what it took is found by the nonces that were made for it.
-- Own rows only, by the index on (owner, slot).
-- $1 owner, $2 nonces
select id, definition, state, epoch, nonce, direction, seq, doubt, attempts, deaths, wake_seq,
    created_at, expires_at, opened_at, progressed_at, statement_timestamp() as clock
from ringsaga.transaction
where owner = $1 and state = 'running' and nonce = any($2::uuid[])
order by id
