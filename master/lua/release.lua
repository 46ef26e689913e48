-- Gives the lease back if it is mine; somebody else's is left alone.
-- KEYS: lease.  ARGV: my boot.
if redis.call('HGET', KEYS[1], 'boot') == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1
