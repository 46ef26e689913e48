-- A sub-saga is started under its parent's fence: the parent's row is locked and must still be
-- this claim's, going forward. So a process that lost the parent can't start a child that nobody
-- would undo. The key is made of parent and step: a repeat finds the child.
-- $1 region, $2 cluster, $3 service, $4 parent, $5 epoch, $6 nonce, $7 step, $8 id, $9 token,
-- $10 saga, $11 definition, $12 key, $13 input, $14 lifetime in ms
with parent as materialized (
    select id from ringsaga.transaction
    -- "is not distinct from" serves no index: the row must be found by id.
    where id = $4 and epoch = $5 and nonce = $6 and state is not distinct from 'running'
        and direction = 'forward'
    for update
),
existing as materialized (
    select transaction, input_digest = sha256(convert_to($13::text, 'UTF8')) as same
    from ringsaga.idempotency
    where region = $1 and cluster = $2 and service = $3 and saga = $10 and key = $12
),
fresh as materialized (
    select id from parent where not exists (select from existing)
),
keyed as (
    insert into ringsaga.idempotency
        (region, cluster, service, saga, key, transaction, input_digest)
    select $1, $2, $3, $10, $12, $8, sha256(convert_to($13::text, 'UTF8')) from fresh
),
stored as (
    insert into ringsaga.transaction (id, region, cluster, service, token, definition, state,
        direction, seq, doubt, attempts, deaths, epoch, last_write, wake_seq, due_at, created_at,
        expires_at, progressed_at, parent, parent_step)
    select $8, $1, $2, $3, $9, $11, 'paused', 'forward', 0, false, 0, 0, 0, 0, 0,
        statement_timestamp(), statement_timestamp(),
        statement_timestamp() + $14::bigint * interval '1 millisecond', statement_timestamp(),
        $4, $7
    from fresh
),
kept as (
    insert into ringsaga.payload (transaction, input, input_digest, key)
    select $8, $13, sha256(convert_to($13::text, 'UTF8')), $12 from fresh
)
select exists (select from parent) as ours, (select same from existing) as same
