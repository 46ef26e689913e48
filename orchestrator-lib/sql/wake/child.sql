-- A parent undoes what its step started: a child that runs is cancelled, one that is completed
-- goes back from its last step, one that is being undone is waited for. The parent's direction is
-- stored before, so no child can be started any more. Returns no row when there is none.
-- A child that ended while its row was waited for: the row is read as it is now, but its last
-- records, by the statement's snapshot, are not. It is left as it is, and "late" says: ask again.
-- $1 wake id, $2 kind, $3 body, $4 region, $5 cluster, $6 service, $7 saga, $8 key, $9 lifetime in ms
with before as materialized (
    select t.state
    from ringsaga.idempotency k join ringsaga.transaction t on t.id = k.transaction
    where k.region = $4 and k.cluster = $5 and k.service = $6 and k.saga = $7 and k.key = $8
),
held as materialized (
    select t.id, t.state, t.direction
    from ringsaga.idempotency k join ringsaga.transaction t on t.id = k.transaction
    where k.region = $4 and k.cluster = $5 and k.service = $6 and k.saga = $7 and k.key = $8
    for update of t
),
child as materialized (
    select held.*, held.state = 'completed' and before.state <> 'completed' as late
    from held cross join before
),
reopened as (
    update ringsaga.transaction t
    set state = 'paused', owner = null, direction = 'compensating', settled_at = null, doubt = false,
        seq = coalesce((
            select max(s.seq) from ringsaga.step s
            where s.transaction = t.id and s.direction = 'forward' and s.outcome = 'done'
        ), t.seq),
        due_at = statement_timestamp(),
        expires_at = greatest(t.expires_at,
            statement_timestamp() + $9::bigint * interval '1 millisecond'),
        epoch = t.epoch + 1, attempts = 0, deaths = 0, progressed_at = statement_timestamp()
    from child
    where t.id = child.id and child.state = 'completed' and not child.late
),
target as (
    select id from child where state in ('running', 'paused') and direction = 'forward'
),
