-- A person has repaired the hook: what was given up for it is tried again, from the first attempt.
-- $1 region, $2 cluster, $3 hook
update ringsaga.alert_delivery d
set given_up_at = null, attempts = 0, due_at = statement_timestamp()
where d.region = $1 and d.cluster = $2 and d.hook = $3
    and d.delivered_at is null and d.given_up_at is not null
