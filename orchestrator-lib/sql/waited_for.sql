-- For which of these targets anything waits, whoever can run it: one index probe a target. Lateral
-- with a limit, since "exists" may be planned as one read of all that wait.
-- $1 region, $2 cluster, $3 service, $4 targets
select asked.target
from unnest($4::text[]) as asked(target) cross join lateral (
    select t.slot from ringsaga.transaction t
    where t.region = $1 and t.cluster = $2 and t.service = $3 and t.waiting_on = asked.target
        and t.slot >= 0 and t.state = 'paused'
    limit 1
) first
