-- What the server promises: identity of the store, whether it takes writes, whether a commit waits
-- for a synchronous standby.
select s.store_id,
    pg_is_in_recovery() as standby,
    current_setting('server_version_num')::integer as version,
    current_setting('synchronous_standby_names') <> ''
        and current_setting('synchronous_commit') not in ('off', 'local') as synchronous,
    current_setting('fsync')::boolean as fsync
from ringsaga.store s
