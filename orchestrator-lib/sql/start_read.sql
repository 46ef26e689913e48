-- What became of starts whose key existed: the transaction of that key, whether it has the same
-- input, and its fence when it is the very start that is asked about (an answer was lost).
-- $1 region, $2 cluster, $3 service, $4 sagas, $5 keys, $6 inputs
select i.n, k.transaction, k.input_digest = sha256(convert_to(i.input, 'UTF8')) as same,
    t.epoch, t.nonce
from unnest($4::text[], $5::text[], $6::text[]) with ordinality as i(saga, key, input, n)
    -- "offset 0" keeps it one index probe a key and never a join over all keys.
    cross join lateral (
        select * from ringsaga.idempotency k
        where k.region = $1 and k.cluster = $2 and k.service = $3
            and k.saga = i.saga and k.key = i.key
        offset 0
    ) k
    left join ringsaga.transaction t on t.id = k.transaction
