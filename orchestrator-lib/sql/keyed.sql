-- Transactions of an idempotency key, whatever their service and saga: a probe for each pair of the
-- two, so that the key's index serves. $1 region, $2 cluster, $3 key, $4 service (null: all),
-- $5 saga (null: all)
with recursive service as (
    (select k.service from ringsaga.idempotency k
    where k.region = $1 and k.cluster = $2
    order by k.service limit 1)
    union all
    select (select k.service from ringsaga.idempotency k
        where k.region = $1 and k.cluster = $2 and k.service > service.service
        order by k.service limit 1)
    from service where service.service is not null
)
select k.transaction as id, k.service, k.saga
from service
    cross join (select distinct d.saga from ringsaga.definition d) saga
    cross join lateral (
        select * from ringsaga.idempotency k
        where k.region = $1 and k.cluster = $2 and k.service = service.service
            and k.saga = saga.saga and k.key = $3
        offset 0
    ) k
where ($4::text is null or service.service = $4) and ($5::text is null or saga.saga = $5)
order by k.transaction desc
limit 100
