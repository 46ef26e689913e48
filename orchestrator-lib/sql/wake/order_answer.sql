, audited as (
    insert into ringsaga.audit (actor, reason, action, transaction, detail)
    select $7, $8, $2, id, case when $2 <> 'cancel' then $3 end from raised
)
select epoch from target
where exists (select from kept)
    or exists (select from ringsaga.wake w where w.id = $1 and w.transaction = $4)
