//! Port as data: what may be asked of Postgres.
