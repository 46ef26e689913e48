-- The names of a definition's steps; written once. $1 saga, $2 version, $3 digest, $4 names
update ringsaga.definition set steps = $4::text[]
where saga = $1 and version = $2 and digest = $3 and steps is null
