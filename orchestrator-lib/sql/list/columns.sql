-- Transactions for people, a page at a time by key (no offset: pages stay cheap and don't shift).
-- Ids sort by creation. Newest first: $4 before this id, $5 not before this id; oldest first: $4 after
-- this id, $5 not after this id.
-- Each way to find them has a branch with an index of its own; the others are false before they
-- begin. "walk" goes along the ids and looks at a bounded number, whatever the filters leave.
-- $1 region, $2 cluster, $3 way, $4 and $5 as above, $6 service, $7 states,
-- $8 saga, $9 version, $10 direction, $11 attempts at least, $12 waiting on, $13 created from,
-- $14 created before, $15 due before, $16 part of the error, $17 key, $18 look at so many,
-- $19 show so many; null: any
select t.id, t.service, d.saga, d.version, t.state, t.direction, t.seq, t.doubt, t.attempts,
    t.waiting_on, t.due_at, t.created_at, t.expires_at, t.settled_at, t.token, o.instance, t.epoch,
    coalesce(d.steps[t.seq + 1], (select s.name from ringsaga.step s
        where s.transaction = t.id and s.seq = t.seq limit 1)) as step,
    p.error
from (
