-- An operator moves a transaction out of a dead region or cluster, with everything that it started
-- (a child's key is looked up where its parent is). Refused while a process of its service lives
-- there, unless it is the transaction's own owner that is dead; while a child runs at a living one;
-- and for a child whose parent is still there: the parent takes it along. A lease that is over is
-- a death like any other and is written first, so a renewal can't race this. What was running is
-- in doubt; epochs are raised, so whoever still runs it there can't write. Idempotency keys move.
-- $1 id, $2 region, $3 cluster, $4 epoch seen, $5 actor, $6 reason, $7 to region, $8 to cluster
with recursive family(id) as (
    select t.id from ringsaga.transaction t
    where t.id = $1 and t.region is not distinct from $2 and t.cluster is not distinct from $3
        and not exists (
            select from ringsaga.transaction p
            where p.id = t.parent and p.region is not distinct from $2
                and p.cluster is not distinct from $3
        )
    union
    select c.id from family f join ringsaga.transaction c on c.parent = f.id
),
buried as (
    update ringsaga.owner o set dead_at = statement_timestamp()
    where o.incarnation = any(array(
            select t.owner from ringsaga.transaction t
            where t.id = any(array(select id from family)) and t.owner is not null
        ))
        and o.dead_at is null
        and o.lease_until < statement_timestamp() - interval '10 seconds'
    returning o.incarnation
),
seen as materialized (
    select t.* from ringsaga.transaction t
    where t.id = any(array(select id from family))
    order by t.id
    for update
),
judged as materialized (
    select bool_and(seen.owner is null or seen.owner in (select incarnation from buried)
            or exists (
                select from ringsaga.owner o
                where o.incarnation = seen.owner and o.dead_at is not null
            )) as nobody_runs_it,
        bool_or(seen.id = $1 and seen.epoch = $4 and (seen.state = 'running'
            or seen.state not in ('completed', 'compensated') and not exists (
                select from ringsaga.owner o
                where o.region = $2 and o.cluster = $3 and o.service = seen.service
                    and o.dead_at is null
                    and o.lease_until >= statement_timestamp() - interval '10 seconds'
            ))) as fits
    from seen
),
done as (
    update ringsaga.transaction t
    set region = $7, cluster = $8, epoch = t.epoch + 1,
        state = case when seen.state = 'running' then 'paused' else seen.state end,
        owner = null, settled_at = seen.settled_at, doubt = t.doubt or seen.state = 'running', waiting_on = null,
        due_at = case when seen.state in ('running', 'paused')
            then least(t.expires_at, statement_timestamp()) end
    from seen, judged
    where t.id = seen.id and judged.fits and judged.nobody_runs_it
    returning t.id, t.epoch, t.service, t.definition
),
keyed as (
    update ringsaga.idempotency k set region = $7, cluster = $8
    from done join ringsaga.payload p on p.transaction = done.id
        join ringsaga.definition d on d.id = done.definition
    where k.region = $2 and k.cluster = $3 and k.service = done.service and k.saga = d.saga
        and k.key = p.key
),
audited as (
    insert into ringsaga.audit (actor, reason, action, transaction, detail)
    select $5, $6, 'rehome', id, json_build_object('from', $2::text || '.' || $3::text,
        'to', $7::text || '.' || $8::text, 'with', nullif($1, id))::text
    from done
)
select epoch from done where id = $1
