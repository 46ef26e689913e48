-- How every claim ends: one suspect at a time, a fresh nonce a row, what the new owner needs.
chosen as materialized (
    select ranked.*, row_number() over (order by ranked.id) as n
    from (
        select locked.*, row_number() over (partition by suspect order by place) as rank
        from locked
    ) ranked
    where not ranked.suspect or ranked.rank = 1
),
claimed as (
    update ringsaga.transaction t set
        state = chosen.becomes,
        owner = case when chosen.becomes = 'running' then $1::bigint end,
        due_at = null,
        waiting_on = null,
        settled_at = case when chosen.becomes <> 'running' then statement_timestamp() end,
        epoch = t.epoch + 1,
        nonce = ($6::uuid[])[chosen.n],
        last_write = 0,
        doubt = chosen.doubt,
        deaths = chosen.deaths
    from chosen
    where t.id = chosen.id
    returning t.*
),
explained as (
    update ringsaga.payload p set
        error = case when claimed.state = 'disabled' then 'its lifetime is over'
            else 'its processes died too often while it ran' end
    from claimed
    where p.transaction = claimed.id and claimed.state <> 'running'
),
named as (
    update ringsaga.owner o set suspect = claimed.id
    from claimed
    where o.incarnation = $1 and claimed.deaths >= 2 and claimed.state = 'running'
)
select id, definition, state, epoch, nonce, direction, seq, doubt, attempts, deaths, wake_seq,
    created_at, expires_at, opened_at, progressed_at, statement_timestamp() as clock
from claimed
order by id
