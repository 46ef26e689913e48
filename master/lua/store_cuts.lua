-- Stores cuts of one window, each only if its service has none, and tells what is stored now.
-- KEYS: the window's hash.  ARGV: ttl in ms, then service and cut in turn.
local services = {}
for i = 2, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
  services[#services + 1] = ARGV[i]
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return redis.call('HMGET', KEYS[1], unpack(services))
