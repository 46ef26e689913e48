-- The hook has them. Whoever says so is right, an older lease included.
-- $1 hook, $2 alerts
update ringsaga.alert_delivery d
set delivered_at = statement_timestamp(), given_up_at = null, error = null, lease = null
where d.hook = $1 and d.alert = any($2::uuid[]) and d.delivered_at is null
