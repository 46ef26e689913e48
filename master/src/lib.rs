//! The master role: cuts the ring among slaves; knows NATS and Redis.
