-- A start inside the caller's own database transaction, on a connection of which nothing is known:
-- every name is qualified, and the statement is sent unnamed with its types. The row is unowned and
-- due, so whoever owns its token takes it after the caller's commit, should nobody do so sooner.
-- A key that another session is storing is waited for, up to the lock limit; one that exists is
-- left out and read by start_read.sql. Under a snapshot that can't see it that is a serialization
-- failure, which only the whole transaction can repeat.
-- The caller may have begun long ago: now() would be that time.
-- $1 store, $2 region, $3 cluster, $4 service, $5 id, $6 token, $7 saga, $8 definition, $9 key,
-- $10 input, $11 lifetime in ms
with here as materialized (
    select store_id from ringsaga.store where one and store_id = $1::uuid
),
keyed as (
    insert into ringsaga.idempotency
        (region, cluster, service, saga, key, transaction, input_digest)
    select $2, $3, $4, $7, $9, $5::uuid, pg_catalog.sha256(pg_catalog.convert_to($10, 'UTF8'))
    from here
    on conflict (region, cluster, service, saga, key) do nothing
    returning transaction
),
stored as (
    insert into ringsaga.transaction (id, region, cluster, service, token, definition, state,
        direction, seq, doubt, attempts, deaths, epoch, nonce, owner, last_write, wake_seq,
        due_at, created_at, expires_at, progressed_at, opened_at)
    select transaction, $2, $3, $4, $6::bigint, $8::integer, 'paused', 'forward', 0, false, 0, 0, 0, null, null, 0,
        0, pg_catalog.statement_timestamp(), pg_catalog.statement_timestamp(),
        pg_catalog.statement_timestamp() + $11::bigint * interval '1 millisecond',
        pg_catalog.statement_timestamp(), pg_catalog.statement_timestamp()
    from keyed
),
kept as (
    insert into ringsaga.payload (transaction, input, input_digest, key)
    select transaction, $10, pg_catalog.sha256(pg_catalog.convert_to($10, 'UTF8')), $9 from keyed
)
select exists (select from here) as here, exists (select from keyed) as new
