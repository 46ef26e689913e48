-- Strays: written as running here, but nothing here knows them (a claim's answer was lost), so
-- nothing was called. The epoch is raised: an answer that comes late is worthless.
-- $1 incarnation, $2 ids, $3 epochs, $4 nonces
with stray as materialized (
    select t.id from unnest($2::uuid[], $3::bigint[], $4::uuid[]) as i(id, epoch, nonce)
        join ringsaga.transaction t on t.id = i.id
    where t.owner is not distinct from $1 and t.state is not distinct from 'running'
        and t.epoch = i.epoch and t.nonce = i.nonce
    for update of t skip locked
)
update ringsaga.transaction t
set state = 'paused', owner = null, due_at = least(t.expires_at, statement_timestamp()),
    epoch = t.epoch + 1
from stray
where t.id = stray.id
returning t.id
