//! The orchestrator's machine.
