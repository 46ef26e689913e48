//! Does what the core says, decides nothing: tokio and NATS.
