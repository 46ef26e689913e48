//! The master's machine.
