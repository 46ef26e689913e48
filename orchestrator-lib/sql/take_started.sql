-- What a caller started in its own database transaction and committed, taken by id before the ring
-- gets to it. Only what nobody ever claimed: everything else about a row is the four claims' matter.
-- "me" is read and not locked, as in those.
-- $1 owner, $2 region, $3 cluster, $4 service, $5 definitions, $6 nonce, $7 id
with me as materialized (
    select incarnation from ringsaga.owner
    where incarnation = $1 and dead_at is null and lease_until > statement_timestamp()
),
locked as materialized (
    select t.id from ringsaga.transaction t
    where t.id = $7
        and t.region is not distinct from $2 and t.cluster is not distinct from $3
        and t.service is not distinct from $4
        and t.state is not distinct from 'paused' and t.waiting_on is null and t.epoch = 0
        and t.expires_at > statement_timestamp()
        and t.definition = any($5::integer[])
        and exists (select from me)
    for update of t skip locked
)
update ringsaga.transaction t set
    state = 'running',
    owner = $1::bigint,
    due_at = null,
    epoch = t.epoch + 1,
    nonce = $6::uuid,
    last_write = 0
from locked
where t.id = locked.id
returning t.id, t.definition, t.state, t.epoch, t.nonce, t.direction, t.seq, t.doubt, t.attempts,
    t.deaths, t.wake_seq, t.created_at, t.expires_at, t.opened_at, t.progressed_at,
    statement_timestamp() as clock
