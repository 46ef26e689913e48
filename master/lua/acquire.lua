-- Takes the lease if it is free or mine. Mine already: extended under the same term, so a repeat
-- after a timeout changes nothing.
-- KEYS: lease, term.  ARGV: my id, my boot, highest term heard, ttl in ms.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local held = redis.call('HMGET', KEYS[1], 'id', 'boot', 'number')
if held[2] and held[2] ~= ARGV[2] then
  return {'theirs', held[1], held[2], held[3], redis.call('PTTL', KEYS[1]), now}
end
local number = held[3]
if not held[2] then
  local stored = tonumber(redis.call('HGET', KEYS[2], 'number') or '0')
  number = string.format('%.0f', math.max(stored, tonumber(ARGV[3])) + 1)
  redis.call('HSET', KEYS[2], 'number', number, 'boot', ARGV[2], 'id', ARGV[1])
  redis.call('HSET', KEYS[1], 'number', number, 'boot', ARGV[2], 'id', ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'mine', ARGV[1], ARGV[2], number, ARGV[4], now}
