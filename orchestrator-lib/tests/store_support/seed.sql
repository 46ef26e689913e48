-- 30,000 transactions for the tests of plans.
insert into ringsaga.definition (saga, version, digest)
select 's' || g, 1, 'd' from generate_series(1, 20) g;
insert into ringsaga.owner (boot, instance, region, cluster, service, retry_node, capabilities,
    lease_until, dead_at)
values
    (gen_random_uuid(), 'me', 'eu', 'main', 'orders', true, '{1,2,3,4,5}', now() + '1 h', null),
    (gen_random_uuid(), 'dead', 'eu', 'main', 'orders', true, '{1,2}', now() - interval '1 h', now()),
    (gen_random_uuid(), 'other', 'eu', 'main', 'orders', true, '{1,2,3}', now() + '1 h', null);
insert into ringsaga.transaction (id, region, cluster, service, token, definition, state,
    direction, seq, doubt, attempts, deaths, epoch, nonce, owner, last_write, wake_seq,
    waiting_on, due_at, created_at, expires_at, progressed_at, settled_at)
select md5(g::text)::uuid, 'eu', 'main', 'orders',
    ('x' || substr(md5(g::text), 1, 16))::bit(64)::bigint, 1 + g % 6,
    case g % 20 when 0 then 'running' when 1 then 'completed' else 'paused' end,
    'forward', 3, false, 1, 0, 1, md5('n' || g)::uuid,
    case when g % 20 = 0 then 1 + (g / 20) % 2 end, 3, 0,
    case when g % 20 = 2 then 'payment' end,
    case when g % 20 not in (0, 1) then
        case when g % 10 = 3 then now() - g * interval '1 ms' else now() + '20 min' end end,
    now(), now() + interval '1 h', now(), case when g % 20 = 1 then now() end
from generate_series(1, 30000) g;
insert into ringsaga.payload (transaction, input, input_digest, key)
select id, '{}', 'x', id::text from ringsaga.transaction;
insert into ringsaga.step
select id, 'forward', s, 'n', 'done', null, false, '1', null, 1, now(), now(), 1, now()
from ringsaga.transaction, generate_series(0, 2) s;
insert into ringsaga.idempotency
select 'eu', 'main', 'orders', 's1', id::text, id, 'x' from ringsaga.transaction;
