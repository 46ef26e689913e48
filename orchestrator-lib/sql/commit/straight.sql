-- The writes of a batch in the order of their ids. An UPDATE from here waits for a row that
-- somebody else holds, as long as the session's lock limit allows.
-- $1 writes
with line as (
    select * from unnest($1::ringsaga.write_1[]) with ordinality as l(id, epoch, nonce, number,
        from_direction, from_seq, seen, state, direction, seq, after, attempts, doubt, waiting_on,
        handed_back, recorded, result, error, step, e_direction, e_seq, e_outcome, e_class,
        e_doubt, e_result, e_error, e_attempts, e_started, e_ended, n)
),
