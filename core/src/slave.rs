//! The slave's machine.
