//! The verbs of the store, by the names in which schedules are written, and how one is asked.
//! Decides what each session knows when it asks; refuses to know when it is let through.

use std::{collections::BTreeSet, time::Duration};

use orchestrator_lib::store::{
    self, Buried, By, Claims, Closed, Error, Operator, Pushed, Store, Woke,
};
use ring_core::{
    id::{Nonce, StepName, TransactionId},
    saga::Payload,
    store::{Claim, Claimed, Incarnation, Look, Renewed, Start, Started, To, Write, Written},
    token::Range,
};
use uuid::Uuid;

use crate::store_support::{self as support, LEASE};

macro_rules! verbs {
    ($($name:ident = $word:literal, $gates:expr;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Verb { $($name),* }

        impl Verb {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            pub(crate) fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// Where it is held, in the order in which it comes by.
            pub(crate) fn gates(self) -> &'static [i32] {
                match self { $(Self::$name => &$gates),* }
            }
        }
    };
}

verbs! {
    ClaimDue = "claim-due", [0, 1];
    // By the incarnation that others renew, bury and close.
    ClaimOwn = "claim-own", [0, 1];
    ClaimOrphans = "claim-orphans", [0, 1];
    ClaimOverdue = "claim-overdue", [0, 1];
    ClaimWaiting = "claim-waiting", [0, 1];
    Renew = "renew", [2, 3];
    Bury = "bury", [2, 3];
    Next = "next", [0, 1];
    // One step of a group is recorded, the others stay open.
    Stay = "stay", [0, 1];
    Park = "park", [0, 1];
    Settle = "settle", [0, 1];
    Back = "back", [0, 1];
    Stray = "stray", [0, 1];
    Restore = "restore", [0, 1];
    RetryNow = "retry-now", [0, 1];
    ByHand = "by-hand", [0, 1];
    Wake = "wake", [0, 1];
    // The same wake-up in each session: a sender that asks again.
    WakeSame = "wake-same", [0, 1];
    Cancel = "cancel", [0, 1];
    Push = "push", [0, 1];
    Start = "start", [4, 5];
    StartParked = "start-parked", [4, 5];
    Close = "close", [0, 1, 2, 3];
}

impl Verb {
    pub(crate) fn is_claim(self) -> bool {
        self.word().starts_with("claim")
    }
}

/// What a schedule is about: one transaction, its first owner and what that owner knows.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) first: Incarnation,
    pub(crate) claimed: Claimed,
    /// What an operator saw.
    pub(crate) epoch: u64,
    /// The start that made it, for those who ask again.
    pub(crate) saga: &'static str,
    pub(crate) wake: Uuid,
}

/// One session: a store with a lease of its own.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) name: char,
    pub(crate) store: Store,
    pub(crate) desk: Operator,
    pub(crate) me: Incarnation,
}

/// What a session brings along, so that its effects are known by it.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    pub(crate) nonces: Vec<Nonce>,
    pub(crate) start: Start,
    pub(crate) wake: Uuid,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Claims(Result<Claims, Error>),
    Renewed(Result<Renewed, Error>),
    Buried(Result<Vec<Buried>, Error>),
    Written(Result<Written, Error>),
    Back(Result<Vec<TransactionId>, Error>),
    Ordered(Result<store::Answer, Error>),
    Woke(Result<Woke, Error>),
    Pushed(Result<Pushed, Error>),
    Started(Result<Started, Error>),
    Closed(Result<u64, Error>),
}

/// Far from every due time.
const HOUR: Duration = Duration::from_secs(3_600);

impl Marks {
    pub(crate) fn new(scene: &Scene, verb: Verb) -> Self {
        let nonces = vec![support::nonce(), support::nonce()];
        let claim = (verb == Verb::Start).then(|| nonces[0]);
        Self {
            start: support::start(scene.saga, "k", claim),
            nonces,
            wake: if verb == Verb::WakeSame {
                scene.wake
            } else {
                Uuid::new_v4()
            },
        }
    }
}

impl Scene {
    /// The write that a verb of the first owner is. Each kind has its number, so that only the same
    /// write is ever sent twice.
    pub(crate) fn write(&self, verb: Verb) -> Option<Write> {
        let (number, write) = match verb {
            Verb::Next => (3, support::next(&self.claimed, 1)),
            Verb::Park => (4, support::park(&self.claimed, HOUR)),
            Verb::Settle => (5, support::settle(&self.claimed)),
            Verb::Back => (6, support::hand_back(&self.claimed)),
            Verb::Stay => (7, support::next(&self.claimed, 1)),
            _ => return None,
        };
        let mut write = Write { number, ..write };
        if let To::Park { after, .. } = &mut write.to {
            *after = HOUR / 2;
        }
        if verb == Verb::Stay {
            write.to = To::Stay;
            write.entry = Some(support::done(self.claimed.position.seq + 1));
        }
        Some(write)
    }
}

impl Actor {
    pub(crate) async fn ask(self, verb: Verb, scene: Scene, marks: Marks) -> Answer {
        if let Some(write) = scene.write(verb) {
            return Answer::Written(self.store.write(write).await);
        }
        let ranges = || vec![Range::RING];
        let id = scene.claimed.id;
        let (me, store) = (self.me, &self.store);
        match verb {
            Verb::ClaimDue => self.claim(me, Look::Due { ranges: ranges() }, marks).await,
            Verb::ClaimOwn => {
                let look = Look::Due { ranges: ranges() };
                self.claim(scene.first, look, marks).await
            }
            Verb::ClaimOrphans => self.claim(me, Look::Orphans, marks).await,
            Verb::ClaimOverdue => {
                let by = Duration::ZERO;
                self.claim(me, Look::Overdue { by }, marks).await
            }
            Verb::ClaimWaiting => {
                let target = "payment".to_owned();
                let ranges = ranges();
                self.claim(me, Look::Waiting { target, ranges }, marks)
                    .await
            }
            Verb::Renew => Answer::Renewed(store.renew(scene.first, LEASE).await),
            Verb::Bury => Answer::Buried(store.declare_dead(me).await),
            Verb::Stray => {
                let stray = [(id, scene.claimed.fence)];
                Answer::Back(store.hand_back(scene.first, &stray).await)
            }
            Verb::Restore | Verb::RetryNow | Verb::ByHand => {
                let by = By::new("eva", "fixed").unwrap();
                let order = order(verb);
                let asked = self.desk.order(&order, id, scene.epoch, &by);
                Answer::Ordered(asked.await)
            }
            Verb::Wake | Verb::WakeSame => {
                let name = StepName::new("approve").unwrap();
                let asked = store.signal(marks.wake, id, &name, &Payload::null()).await;
                Answer::Woke(asked)
            }
            Verb::Cancel => {
                let asked = store.cancel(marks.wake, id, ("eva", "a typo")).await;
                Answer::Woke(asked)
            }
            Verb::Push => Answer::Pushed(store.push_missing(me, 10).await),
            Verb::Start => Answer::Started(store.start(Some(me), marks.start).await),
            Verb::StartParked => Answer::Started(store.start(None, marks.start).await),
            _ => Answer::Closed(store.close_lease(scene.first).await),
        }
    }

    async fn claim(&self, me: Incarnation, look: Look, marks: Marks) -> Answer {
        let claim = Claim {
            look,
            nonces: marks.nonces,
            suspects: true,
            without: BTreeSet::new(),
        };
        Answer::Claims(self.store.claim(me, &claim).await)
    }
}

/// What an operator orders.
fn order(verb: Verb) -> store::Verb {
    match verb {
        Verb::Restore => store::Verb::Restore {
            lifetime: HOUR,
            not_applied: false,
        },
        Verb::RetryNow => store::Verb::Retry,
        _ => store::Verb::Close {
            end: Closed::Completed(Payload::null()),
            reference: "a ticket".to_owned(),
        },
    }
}

impl Answer {
    /// In a word, for the table of a schedule.
    pub(crate) fn word(&self) -> String {
        fn of<T: std::fmt::Debug>(answer: &Result<T, Error>) -> String {
            match answer {
                Ok(answer) => format!("{answer:?}"),
                Err(error) => {
                    let source = std::error::Error::source(error).map(ToString::to_string);
                    format!("{error}: {}", source.unwrap_or_default())
                }
            }
        }
        match self {
            Self::Claims(Ok(claims)) => {
                let rows: Vec<_> = claims.rows.iter().map(|row| row.fence.epoch).collect();
                let (disabled, quarantined) = (claims.disabled.len(), claims.quarantined.len());
                format!("claimed {rows:?}, disabled {disabled}, quarantined {quarantined}")
            }
            Self::Claims(Err(error)) => of::<()>(&Err(error.clone())),
            Self::Renewed(answer) => of(answer),
            Self::Buried(answer) => of(answer),
            Self::Written(answer) => of(answer),
            Self::Back(answer) => of(answer),
            Self::Ordered(answer) => of(answer),
            Self::Woke(answer) => of(answer),
            Self::Pushed(answer) => of(answer),
            Self::Started(answer) => of(answer),
            Self::Closed(answer) => of(answer),
        }
    }

    pub(crate) fn error(&self) -> Option<&Error> {
        match self {
            Self::Claims(answer) => answer.as_ref().err(),
            Self::Renewed(answer) => answer.as_ref().err(),
            Self::Buried(answer) => answer.as_ref().err(),
            Self::Written(answer) => answer.as_ref().err(),
            Self::Back(answer) => answer.as_ref().err(),
            Self::Ordered(answer) => answer.as_ref().err(),
            Self::Woke(answer) => answer.as_ref().err(),
            Self::Pushed(answer) => answer.as_ref().err(),
            Self::Started(answer) => answer.as_ref().err(),
            Self::Closed(answer) => answer.as_ref().err(),
        }
    }
}
