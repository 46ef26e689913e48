-- Roles and rights for one saga store. Run once as superuser, connected to the store's database
-- (psql 15 or newer; passwords come from the environment):
--   RINGSAGA_MIGRATE_PASSWORD=… RINGSAGA_APP_PASSWORD=… RINGSAGA_READ_PASSWORD=… \
--     psql -v ON_ERROR_STOP=1 -f roles.sql "$DATABASE_URL"
-- Then `ringsaga migrate` as ringsaga_migrate, services as ringsaga_app, people as ringsaga_read.
\getenv migrate_password RINGSAGA_MIGRATE_PASSWORD
\getenv app_password RINGSAGA_APP_PASSWORD
\getenv read_password RINGSAGA_READ_PASSWORD

-- Owns the schema and changes it. Only `ringsaga migrate` connects as it.
create role ringsaga_migrate login password :'migrate_password' connection limit 5;
-- Works with rows, can't change a table: a service that was broken into can't drop the store.
create role ringsaga_app login password :'app_password';
-- Looks: dashboards, people. A forgotten query must not hold back the cleaning of dead rows.
create role ringsaga_read login password :'read_password' connection limit 20;
alter role ringsaga_read set default_transaction_read_only = on;
alter role ringsaga_read set statement_timeout = '30s';
alter role ringsaga_read set idle_in_transaction_session_timeout = '30s';

revoke create on schema public from public;
create schema if not exists ringsaga authorization ringsaga_migrate;
grant usage on schema ringsaga to ringsaga_app, ringsaga_read;

-- For every table that a migration makes, now and later.
alter default privileges for role ringsaga_migrate in schema ringsaga
    grant select, insert, update, delete on tables to ringsaga_app;
alter default privileges for role ringsaga_migrate in schema ringsaga
    grant usage on sequences to ringsaga_app;
alter default privileges for role ringsaga_migrate in schema ringsaga
    grant select on tables to ringsaga_read;
