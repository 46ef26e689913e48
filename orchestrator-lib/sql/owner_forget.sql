-- Owner rows go a day after death, and only when no row names them.
-- $1 region, $2 cluster, $3 service
delete from ringsaga.owner o
where o.region = $1 and o.cluster = $2 and o.service = $3
    and o.dead_at < statement_timestamp() - interval '1 day'
    and not exists (
        select from ringsaga.transaction t
        where t.owner = o.incarnation and t.state = 'running'
    )
