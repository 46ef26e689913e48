-- One transaction with its payloads; why it was undone as in outcome.sql. $1 id
select t.id, t.service, d.saga, d.version, t.state, t.direction, t.seq, t.doubt, t.attempts,
    t.waiting_on, t.due_at, t.created_at, t.expires_at, t.settled_at, t.token, o.instance,
    coalesce(d.steps[t.seq + 1], (select s.name from ringsaga.step s
        where s.transaction = t.id and s.seq = t.seq limit 1)) as step,
    t.region, t.cluster, d.digest, t.deaths, t.epoch, t.wake_seq, t.progressed_at, t.opened_at,
    p.key, p.input, p.result, p.retry, t.parent, t.parent_step,
    coalesce((select s.error from ringsaga.step s
        where t.state = 'compensated' and s.transaction = t.id and s.direction = 'forward'
            and s.outcome = 'refused' order by s.seq desc limit 1), p.error) as error
from ringsaga.transaction t
    join ringsaga.definition d on d.id = t.definition
    left join ringsaga.owner o on o.incarnation = t.owner
    left join ringsaga.payload p on p.transaction = t.id
where t.id = $1
