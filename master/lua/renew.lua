-- Extends my lease. If the key is missing (expired, flushed, lost in a failover) it is restored
-- under my term, unless a higher term is stored: then somebody led after me. Terms compare as
-- (number, boot).
-- KEYS: lease, term.  ARGV: my id, my boot, my term's number, ttl in ms.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'id', 'boot', 'number')
if held[2] and held[2] ~= ARGV[2] then
  return {'theirs', held[1], held[2], held[3], redis.call('PTTL', KEYS[1]), now}
end
local number = held[3]
if not held[2] then
  local last = redis.call('HMGET', KEYS[2], 'id', 'boot', 'number')
  local mine, stored = tonumber(ARGV[3]), tonumber(last[3] or '0')
  if stored > mine or (stored == mine and last[2] and last[2] > ARGV[2]) then
    return {'theirs', last[1], last[2], last[3], 0, now}
  end
  number = ARGV[3]
  redis.call('HSET', KEYS[2], 'number', number, 'boot', ARGV[2], 'id', ARGV[1])
  redis.call('HSET', KEYS[1], 'number', number, 'boot', ARGV[2], 'id', ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'mine', ARGV[1], ARGV[2], number, ARGV[4], now}
