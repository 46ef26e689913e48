select null::bigint as started, n as written, wake_seq from moved
