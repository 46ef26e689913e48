//! The slave role: cuts its slice among its orchestrators; knows NATS alone.
