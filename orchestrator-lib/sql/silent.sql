-- What became of writes that moved nothing. A fence that does not match any more never will, so
-- these answers are final; one that matches belongs to a row that somebody else holds right now.
-- $1 writes
select l.n, t.wake_seq, case
        when t.nonce = l.nonce and t.last_write = l.number then 'already'
        when t.epoch = l.epoch and t.nonce = l.nonce and t.state = 'running'
            and t.direction = l.from_direction and t.seq = l.from_seq and t.last_write < l.number
        then case when t.wake_seq <> l.seen then 'woken' else 'held' end
        else 'lost'
    end as verdict
from unnest($1::ringsaga.write_1[]) with ordinality as l(id, epoch, nonce, number,
        from_direction, from_seq, seen, state, direction, seq, after, attempts, doubt, waiting_on,
        handed_back, recorded, result, error, step, e_direction, e_seq, e_outcome, e_class,
        e_doubt, e_result, e_error, e_attempts, e_started, e_ended, n)
    join ringsaga.transaction t on t.id = l.id
