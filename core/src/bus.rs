//! Port as data: what a machine may ask of NATS, and what NATS tells it.
//!
//! Shell and simulator each own one `match` over [`Op`]. "Nobody listens" and "nobody answered in
//! time" are different facts up to the machines ([`AskError`]).

use core::time::Duration;

use crate::{
    id::Nonce,
    subject::{Endpoints, Place, Topic},
    wire::{Answer, Event, Publication, Question},
};

/// Names one request of a machine, so that its answer finds back; unique within a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// Names one request to a machine; the shell knows the reply subject behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplyTo(pub u64);

/// Orders to the bus. Places are within the machine's own scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Publish a window or a probe: at most once, fire and forget.
    Publish {
        /// Where.
        place: Place,
        /// What.
        body: Publication,
    },
    /// Publish an event.
    Tell(Event),
    /// Ask; exactly one [`Told::Answered`] with the same id follows.
    Ask {
        /// For the answer.
        ask: AskId,
        /// Whom.
        place: Place,
        /// What.
        question: Question,
        /// How long to wait.
        within: Duration,
    },
    /// Answer a request.
    Answer {
        /// Which.
        to: ReplyTo,
        /// What.
        answer: Answer,
    },
    /// Subscribe, without queue group. A repeat is a no-op.
    Listen(Topic),
    /// End a subscription.
    Ignore(Topic),
    /// Serve request endpoints. A repeat is a no-op.
    Serve(Endpoints),
    /// Serve them no more.
    Withdraw(Endpoints),
    /// Leave this connection for another server: it looks dead.
    Reconnect,
}

/// Facts from the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A window or a probe came on a subject that is listened to.
    Published {
        /// Where.
        place: Place,
        /// What.
        body: Publication,
    },
    /// An event came.
    Event(Event),
    /// A request came to a served endpoint; it must be answered.
    Asked {
        /// For the answer.
        to: ReplyTo,
        /// Which endpoint.
        place: Place,
        /// What.
        question: Question,
        /// Fresh chance from the shell, for a probe if one is needed.
        chance: Nonce,
    },
    /// A request to somebody else was overheard on [`Topic::MasterRequests`].
    Overheard {
        /// Which endpoint.
        place: Place,
        /// What.
        question: Question,
    },
    /// The answer to an [`Op::Ask`], or that there is none.
    Answered {
        /// Which.
        ask: AskId,
        /// What.
        answer: Result<Answer, AskError>,
    },
    /// The connection is up (again): what was published meanwhile is lost.
    Connected,
    /// The connection is down.
    Disconnected,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskError {
    /// Nobody serves the endpoint: told at once.
    NoResponders,
    /// Nobody answered in time; it was perhaps done.
    TimedOut,
    /// The answer was no message of the contract.
    Garbled,
}
