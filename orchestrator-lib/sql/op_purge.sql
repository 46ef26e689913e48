-- A batch of a purge: what ended well and is older than the retention goes, with payload, steps,
-- key and wake-ups. Walks along the ids and looks at a bounded number of rows. A row that somebody
-- holds is left for the next time. Never what still needs a person; never before a whole lifetime
-- has passed since its end (a caller's repeat of the key must find it, a late call must be known);
-- never the child of a transaction that has not ended well, which may still have to be undone.
-- $1 region, $2 cluster, $3 service (null: all), $4 retention in ms, $5 after this id,
-- $6 look at so many, $7 actor, $8 reason, $9 saga (null: all)
with walked as materialized (
    select t.id from ringsaga.transaction t where t.id > $5 order by t.id limit $6::bigint
),
old as materialized (
    select t.id, t.service, t.definition from ringsaga.transaction t
    where t.id = any(array(select id from walked))
        and t.region is not distinct from $1 and t.cluster is not distinct from $2
        and ($3::text is null or t.service = $3)
        and ($9::text is null or t.definition = any(array(
            select d.id from ringsaga.definition d where d.saga = $9)))
        and t.state in ('completed', 'compensated')
        and t.settled_at < statement_timestamp() - $4::bigint * interval '1 millisecond'
        and t.settled_at < statement_timestamp() - (t.expires_at - t.created_at)
        and not exists (
            select from ringsaga.transaction parent
            where parent.id = t.parent and parent.state not in ('completed', 'compensated')
        )
    order by t.id
    for update of t skip locked
),
unpaid as (
    delete from ringsaga.payload p using old where p.transaction = old.id
    returning p.transaction, p.key
),
unkeyed as (
    delete from ringsaga.idempotency k
    using old, unpaid, ringsaga.definition d
    where unpaid.transaction = old.id and d.id = old.definition
        and k.region = $1 and k.cluster = $2 and k.service = old.service and k.saga = d.saga
        and k.key = unpaid.key and k.transaction = old.id
),
unlogged as (delete from ringsaga.step s using old where s.transaction = old.id),
unwoken as (delete from ringsaga.wake w using old where w.transaction = old.id),
gone as (
    delete from ringsaga.transaction t using old
    where t.id = old.id and t.state in ('completed', 'compensated')
    returning t.id
),
audited as (
    insert into ringsaga.audit (actor, reason, action, detail)
    select $7, $8, 'purge', json_build_object('transactions', count(*), 'retention_ms', $4::bigint,
        'region', $1::text, 'cluster', $2::text)::text
    from gone having count(*) > 0
)
select (select count(*) from gone) as purged, (select count(*) from walked) as looked,
    (select id from walked order by id desc limit 1) as last
