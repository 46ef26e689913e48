-- Raises one alert for each saga version that nobody can run, unless one was raised within a day.
-- The upsert decides: of several nodes that see the same thing one writes.
-- $1 region, $2 cluster, $3 service, then for each: $4 saga, $5 version, $6 text
with seen as (
    select saga, version, text,
        'executor-missing/' || $1 || '/' || $2 || '/' || $3 || '/' || saga || '/' || version as key
    from unnest($4::text[], $5::bigint[], $6::text[]) as i(saga, version, text)
),
fresh as (
    insert into ringsaga.alert_raised as r (key, at)
    select distinct key, statement_timestamp() from seen order by key
    on conflict (key) do update set at = excluded.at
        where r.at < excluded.at - interval '1 day'
    returning key, at
)
insert into ringsaga.alert (kind, region, cluster, service, saga, version, text, key)
select 'executor-missing', $1, $2, $3, seen.saga, seen.version, left(seen.text, 500),
    fresh.key || '/' || extract(epoch from fresh.at)
from fresh join seen using (key)
on conflict (key) do nothing
