, audited as (
    insert into ringsaga.audit (actor, reason, action, transaction)
    select 'parent transaction', 'its parent is undone', 'undo', id from child
    where state = 'completed' and not late
)
select state, late from child
