-- Raises an alert for each transaction whose compensation has stood at the same step for longer
-- than the limit, at most one a day each. Reads the 10,000 oldest that compensate: more of them
-- is one outage, and its alerts are there already.
-- $1 region, $2 cluster, $3 service, $4 limit in ms, $5 at most so many
with old as materialized (
    select t.id, t.definition, t.seq, t.attempts, t.waiting_on, t.opened_at
    from ringsaga.transaction t
    where t.region = $1 and t.cluster = $2 and t.service = $3
        and t.direction = 'compensating' and t.settled_at is null
        and t.created_at < (select statement_timestamp() - $4::bigint * interval '1 millisecond')
    order by t.created_at limit 10000
),
stuck as materialized (
    select old.*, 'compensation-failing/' || old.id as key
    from old
    where old.opened_at < (select statement_timestamp() - $4::bigint * interval '1 millisecond')
        and not exists (
            select from ringsaga.alert_raised r
            where r.key = 'compensation-failing/' || old.id
                and r.at >= (select statement_timestamp() - interval '1 day'))
    limit $5::bigint
),
fresh as (
    insert into ringsaga.alert_raised as r (key, at)
    select key, statement_timestamp() from stuck order by key
    on conflict (key) do update set at = excluded.at
        where r.at < excluded.at - interval '1 day'
    returning key, at
)
insert into ringsaga.alert
    (kind, region, cluster, service, transaction, saga, version, step, text, key)
select 'compensation-failing', $1, $2, $3, stuck.id, d.saga, d.version, s.name,
    left('its compensation has stood at one step since '
        || to_char(stuck.opened_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        || ', failed attempts: ' || stuck.attempts
        || coalesce('; waits for ' || stuck.waiting_on, '')
        || coalesce('; last: ' || s.error, ''), 500),
    fresh.key || '/' || extract(epoch from fresh.at)
from fresh join stuck using (key)
left join ringsaga.definition d on d.id = stuck.definition
left join ringsaga.step s
    on s.transaction = stuck.id and s.direction = 'compensating' and s.seq = stuck.seq
on conflict (key) do nothing
