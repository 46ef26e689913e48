//! Real NATS, Redis and Postgres servers as child processes, for dev, demo and tests.
