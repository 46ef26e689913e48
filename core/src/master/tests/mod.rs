//! The machine, told facts and asked for its exact orders.
