-- The message is kept under its unique id, counted on the row, and the row made due only if it is
-- parked. A repeat of the same id changes nothing.
kept as (
    insert into ringsaga.wake (id, transaction, kind, body)
    select $1, id, $2, $3 from target
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
    returning t.id, t.wake_seq
)
