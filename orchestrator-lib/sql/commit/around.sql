-- The writes of a batch without those whose rows somebody else holds: these come back in no line
-- of the answer, and the caller sends them again alone.
-- $1 writes
with line as materialized (
    select l.* from unnest($1::ringsaga.write_1[]) with ordinality as l(id, epoch, nonce, number,
        from_direction, from_seq, seen, state, direction, seq, after, attempts, doubt, waiting_on,
        handed_back, recorded, result, error, step, e_direction, e_seq, e_outcome, e_class,
        e_doubt, e_result, e_error, e_attempts, e_started, e_ended, n)
        join ringsaga.transaction t on t.id = l.id
    for update of t skip locked
),
