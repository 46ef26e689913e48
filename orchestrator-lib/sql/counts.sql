-- Counts by state and direction, for people and slow metrics: it reads the whole service.
-- $1 region, $2 cluster, $3 service (null: all)
select state, direction, count(*) as transactions
from ringsaga.transaction
where region = $1 and cluster = $2 and ($3::text is null or service = $3)
group by state, direction
order by state, direction
