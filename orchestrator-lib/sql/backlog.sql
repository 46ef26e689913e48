-- Due rows within ranges, counted up to a limit, and the age of the oldest. One probe a slot.
-- $1 region, $2 cluster, $3 service, $4 first tokens, $5 last tokens, $6 most counted a slot
with slots as materialized (
    select cast(generate_series((r.lo >> 54) + 512, (r.hi >> 54) + 512) as smallint) as slot,
        r.lo, r.hi
    from unnest($4::bigint[], $5::bigint[]) as r(lo, hi)
)
select coalesce(sum(due.rows), 0)::bigint as due,
    coalesce(extract(epoch from statement_timestamp() - min(due.oldest)) * 1000, 0)::bigint
        as oldest_ms
from slots cross join lateral (
    select count(*) as rows, min(found.due_at) as oldest
    from (
        select t.due_at from ringsaga.transaction t
        where t.region = $1 and t.cluster = $2 and t.service = $3 and t.slot = slots.slot and t.slot >= 0
            and t.state = 'paused' and t.waiting_on is null
            and t.due_at <= statement_timestamp()
            and t.token between slots.lo and slots.hi
        order by t.due_at
        limit $6::bigint
    ) found
) due
