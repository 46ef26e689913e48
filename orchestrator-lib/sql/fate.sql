-- Whether a step's own database transaction was committed, after the answer to its commit was lost.
-- The lock waits for that transaction's end, whichever it is: it holds the row from its record on,
-- and without the lock a commit still under way would look like none.
-- $1 id, $2 epoch, $3 nonce, $4 number
select t.epoch = $2 and t.nonce = $3 as own, t.last_write >= $4 as written, t.wake_seq
from ringsaga.transaction t
where t.id = $1
for update
