-- How far a walk of a list came that looked at so many rows: the last id it saw; none when it came
-- to the end. $1 newest first, $2 before (or after) this id, $3 not before (or after) this id,
-- $4 looked at so many
(select t.id from ringsaga.transaction t
where $1::boolean and t.id < $2 and t.id >= $3
order by t.id desc
offset $4::bigint - 1 limit 1)
union all
(select t.id from ringsaga.transaction t
where not $1::boolean and t.id > $2 and t.id <= $3
order by t.id
offset $4::bigint - 1 limit 1)
