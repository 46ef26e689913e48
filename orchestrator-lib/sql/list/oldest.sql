    (select t.id from ringsaga.transaction t
    where $3 = 'walk' and t.id > $4 and t.id <= $5
    order by t.id
    limit $18::bigint)
    union all
    (select t.id from ringsaga.transaction t
    where $3 = 'unfortunate' and t.region = $1 and t.cluster = $2
        and ($6::text is null or t.service = $6)
        and t.state in ('terminated', 'disabled', 'quarantined') and t.state = any($7::text[])
        and t.id > $4 and t.id <= $5
    order by t.id
    limit $18::bigint)
    union all
    (select t.id from ringsaga.owner o join ringsaga.transaction t on t.owner = o.incarnation
    where $3 = 'running' and o.region = $1 and o.cluster = $2
        and ($6::text is null or o.service = $6)
        and t.state = 'running' and t.id > $4 and t.id <= $5
    order by t.id
    limit $18::bigint)
    union all
    (select t.id from ringsaga.transaction t
    where $3 = 'waiting' and t.region = $1 and t.cluster = $2 and t.service = $6
        and t.state = 'paused' and t.waiting_on is not null and t.waiting_on = $12 and t.slot >= 0
        and t.id > $4 and t.id <= $5
    order by t.id
    limit $18::bigint)
    union all
    (select k.transaction from ringsaga.idempotency k
    where $3 = 'key' and k.region = $1 and k.cluster = $2 and k.service = $6 and k.saga = $8
        and k.key = $17 and k.transaction > $4 and k.transaction <= $5)
