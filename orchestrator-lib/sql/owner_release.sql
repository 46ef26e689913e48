-- An orderly end: what is still written as running here goes back to anyone, due at once. Calls
-- that were dropped may have been applied, so the rows are in doubt. No death is counted.
-- $1 incarnation
update ringsaga.transaction
set state = 'paused', owner = null, due_at = least(expires_at, statement_timestamp()),
    epoch = epoch + 1, doubt = true
where owner = $1 and state = 'running'
