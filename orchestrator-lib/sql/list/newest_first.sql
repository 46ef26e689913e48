order by found.id desc
limit $19::bigint
