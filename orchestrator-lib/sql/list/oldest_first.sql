order by found.id
limit $19::bigint
