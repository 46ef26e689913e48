-- A definition's number. Written only when it is new: the table is read at every start.
-- $1 saga, $2 version, $3 digest
with known as materialized (
    select id from ringsaga.definition where saga = $1 and version = $2 and digest = $3
),
added as (
    insert into ringsaga.definition (saga, version, digest)
    select $1, $2, $3 where not exists (select from known)
    on conflict (saga, version, digest) do nothing
    returning id
)
select id from known union all select id from added
