-- A wake-up: kept under its unique id, counted on the row, and the row made due only if parked. A
-- repeat of the same id changes nothing. A settled transaction is not woken.
-- $1 wake id, $2 transaction, $3 kind, $4 body
with target as materialized (
    select id from ringsaga.transaction
    where id = $2 and state in ('running', 'paused')
    for update
),
kept as (
    insert into ringsaga.wake (id, transaction, kind, body)
    select $1, id, $3, $4 from target
    on conflict (id) do nothing
    returning transaction
),
raised as (
    update ringsaga.transaction t
    set wake_seq = t.wake_seq + 1,
        waiting_on = null,
        due_at = case when t.state = 'paused'
            then least(t.expires_at, statement_timestamp()) end
    from kept
    where t.id = kept.transaction
    returning t.wake_seq
)
select exists (select from target) as open, (select wake_seq from raised) as wake_seq
