//! The phases of a membership.

use crate::{
    bus::AskId,
    time::{Mono, Now},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not in; registers at this moment.
    Resting(Mono),
    /// Asked to register.
    Registering(AskId),
    /// Accepted so far; the probe should come before this moment.
    Listening(Mono),
    /// The probe was heard and told.
    Confirming(AskId),
    /// In; the next heartbeat is due.
    Member(Mono),
    /// In; a heartbeat is under way.
    Beating { ask: AskId, sent: Now },
    /// The id is another boot's.
    Over,
}
