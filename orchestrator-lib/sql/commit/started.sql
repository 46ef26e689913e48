-- A batch of starts. Keys that exist are left out here and read by start_read.sql; a key that is
-- being stored by somebody else fails the statement (unique violation, or the lock limit), and the
-- caller sends each start alone. The caller sorts by key, so that two batches never wait for each
-- other in a circle, and sends a key at most once.
-- A start that is its own claim needs its process alive. "me" is read and not locked: a process
-- declared dead before the commit leaves orphans, as with a claim.
-- $2 region, $3 cluster, $4 service, $5 owner (null: none), $6 starts
, me as materialized (
    select incarnation from ringsaga.owner
    where incarnation = $5 and dead_at is null and lease_until > statement_timestamp()
),
fresh as materialized (
    select i.*
    from unnest($6::ringsaga.start_1[])
        with ordinality as i(id, token, saga, definition, key, input, lifetime, nonce, n)
    where (i.nonce is null or exists (select from me))
        -- A scalar, so that each key is one index probe and never a join over all keys.
        and (
            select k.transaction from ringsaga.idempotency k
            where k.region = $2 and k.cluster = $3 and k.service = $4
                and k.saga = i.saga and k.key = i.key
        ) is null
),
keyed as (
    insert into ringsaga.idempotency
        (region, cluster, service, saga, key, transaction, input_digest)
    select $2, $3, $4, saga, key, id, sha256(convert_to(input, 'UTF8')) from fresh
),
stored as (
    insert into ringsaga.transaction (id, region, cluster, service, token, definition, state,
        direction, seq, doubt, attempts, deaths, epoch, nonce, owner, last_write, wake_seq,
        due_at, created_at, expires_at, progressed_at)
    select id, $2, $3, $4, token, definition,
        case when nonce is null then 'paused' else 'running' end,
        'forward', 0, false, 0, 0, case when nonce is null then 0 else 1 end, nonce,
        case when nonce is not null then $5 end, 0, 0,
        case when nonce is null then statement_timestamp() end,
        statement_timestamp(),
        statement_timestamp() + lifetime * interval '1 millisecond', statement_timestamp()
    from fresh
),
kept as (
    insert into ringsaga.payload (transaction, input, key)
    select id, input, key from fresh
)
