//! The machine of a transaction: sentence by sentence, and against a reference model.

mod bench;
mod compensation;
mod decisions;
mod forward;
mod generated;
mod groups;
mod history;
mod limits;
mod model;
mod ownership;
mod probes;
mod script;
mod universe;
mod waits;
mod wakes;
mod world;
