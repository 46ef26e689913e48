//! The saga library that services link: engine, fencing, retries on Postgres and the token ring.
