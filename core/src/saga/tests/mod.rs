//! The machine of a transaction: sentence by sentence, and against a reference model.

mod bench;
mod compensation;
mod forward;
mod generated;
mod history;
mod model;
mod ownership;
mod script;
mod world;
