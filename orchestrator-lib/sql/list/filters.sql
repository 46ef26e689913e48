) found
    join ringsaga.transaction t on t.id = found.id
    join ringsaga.definition d on d.id = t.definition
    left join ringsaga.owner o on o.incarnation = t.owner
    left join ringsaga.payload p on p.transaction = t.id
where t.region is not distinct from $1 and t.cluster is not distinct from $2
    and ($6::text is null or t.service = $6)
    and ($7::text[] is null or t.state = any($7))
    and ($8::text is null or d.saga = $8)
    and ($9::bigint is null or d.version = $9)
    and ($10::text is null or t.direction = $10)
    and ($11::bigint is null or t.attempts >= $11)
    and ($12::text is null or t.waiting_on = $12)
    and ($13::timestamptz is null or t.created_at >= $13)
    and ($14::timestamptz is null or t.created_at < $14)
    and ($15::timestamptz is null or t.due_at < $15)
    and ($16::text is null or strpos(lower(p.error), lower($16)) > 0)
    and ($17::text is null or p.key = $17)
