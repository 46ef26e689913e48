//! How a transaction stands when a schedule begins, and which verbs can then change something.

use std::time::Duration;

use ring_core::{
    saga::{Attempt, Ending, Text},
    store::{Fence, To, Write, Written},
};
use uuid::Uuid;

use super::verb::{Scene, Verb};
use crate::store_support::{self as support, LEASE, Node};

macro_rules! worlds {
    ($($name:ident = $word:literal, [$($verb:ident),*];)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum World { $($name),* }

        impl World {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            pub(crate) fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// Verbs that change something here when they come alone.
            pub(crate) fn effective(self) -> &'static [Verb] {
                match self { $(Self::$name => &[$(Verb::$verb),*]),* }
            }
        }
    };
}

worlds! {
    // Owned by a living process.
    Running = "running", [Next, Stay, Park, Settle, Back, Stray, Wake, WakeSame, Cancel, Renew, Close];
    // Its owner's lease is over and nobody wrote the death.
    Late = "late", [Next, Park, Settle, Back, Stray, Wake, Renew, Bury, Close];
    // Its owner is dead; the zombie writes on.
    Dead = "dead", [ClaimOrphans, Next, Stay, Park, Settle, Back, Stray, Wake];
    // Parked and due.
    Due = "due", [ClaimDue, ClaimOwn, ClaimOverdue, Wake, WakeSame, RetryNow, ByHand];
    // Parked for an hour.
    Undue = "undue", [Wake, WakeSame, Cancel, RetryNow, ByHand];
    // Parked for a target, its backoff over.
    Waiting = "waiting", [ClaimWaiting, ClaimOverdue, Wake, RetryNow];
    // Settled, and an operator may restore it.
    Terminated = "terminated", [Restore, ByHand];
    // Parked and due; nobody living can run it.
    Missing = "missing", [Push, Wake];
    // Owned by the dead; nobody living can run it.
    MissingOrphan = "missing-orphan", [Push, Wake, Next, Park, Settle, Back];
    // Parked, and its lifetime is over.
    Expired = "expired", [ClaimDue, ClaimOwn, ClaimOverdue, Wake];
    // Owned by the dead, the fifth of them: at the limit.
    Killer = "killer", [ClaimOrphans, Next, Park, Settle, Back];
    // Not there yet: its key is free.
    New = "new", [Start, StartParked];
}

type Built = Result<Scene, Box<dyn std::error::Error>>;

impl World {
    /// Makes it; `keeper` is a store that no gate holds.
    pub(crate) async fn build(self, sql: &tokio_postgres::Client, keeper: &Node) -> Built {
        let saga = if matches!(self, Self::Missing | Self::MissingOrphan) {
            "sell"
        } else {
            "buy"
        };
        let first = support::process("first", &[saga]);
        let first = Node {
            me: keeper.store.open(&first, LEASE).await?,
            store: keeper.store.clone(),
        };
        let mut scene = Scene {
            first: first.me,
            claimed: support::running(
                &support::start(saga, "k", None),
                Fence {
                    epoch: 1,
                    nonce: support::nonce(),
                },
            ),
            epoch: 1,
            saga,
            wake: Uuid::new_v4(),
        };
        if self == Self::New {
            return Ok(scene);
        }
        scene.claimed = first.started(saga, "k").await?;
        let write = support::next(&scene.claimed, 1);
        done(&first, write).await?;
        scene.claimed.position = support::at(1);
        if let Some(write) = self.stop(&scene) {
            done(&first, Write { number: 2, ..write }).await?;
        }
        let incarnation = scene.first.0;
        let change = self.change();
        if !change.is_empty() {
            let change = change.replace("$1", &incarnation.to_string());
            sql.batch_execute(&change).await?;
        }
        Ok(scene)
    }

    /// The first owner's last write before the schedule.
    fn stop(self, scene: &Scene) -> Option<Write> {
        let mut write = support::park(&scene.claimed, Duration::ZERO);
        let To::Park {
            after, waiting_on, ..
        } = &mut write.to
        else {
            return None;
        };
        match self {
            Self::Running
            | Self::Late
            | Self::Dead
            | Self::MissingOrphan
            | Self::Killer
            | Self::New => return None,
            Self::Due | Self::Missing | Self::Expired => {}
            Self::Undue => *after = Duration::from_secs(3_000),
            Self::Waiting => *waiting_on = Some("payment".to_owned()),
            Self::Terminated => {
                let why = Some(Text::new("refused"));
                write.to = To::Settle {
                    ending: Ending::Terminated,
                    why,
                };
                if let Some(entry) = &mut write.entry {
                    entry.attempt = Attempt::Skipped;
                }
            }
        }
        Some(write)
    }

    /// What time and death do. $1 is the first owner.
    fn change(self) -> &'static str {
        match self {
            Self::Running
            | Self::Due
            | Self::Undue
            | Self::Waiting
            | Self::Terminated
            | Self::New => "",
            Self::Late => LATE,
            Self::Dead | Self::Missing | Self::MissingOrphan => DEAD,
            Self::Expired => {
                "update ringsaga.transaction set expires_at = now() - interval '1 s', \
                 due_at = now() - interval '2 s'"
            }
            Self::Killer => KILLER,
        }
    }
}

const LATE: &str =
    "update ringsaga.owner set lease_until = now() - interval '1 s' where incarnation = $1";
const DEAD: &str = "update ringsaga.owner set lease_until = now() - interval '1 s', \
    dead_at = now() where incarnation = $1";
const KILLER: &str = "update ringsaga.owner o set lease_until = now() - interval '1 s', \
    dead_at = now(), suspect = t.id from ringsaga.transaction t where incarnation = $1; \
    update ringsaga.transaction set deaths = 4";

async fn done(node: &Node, write: Write) -> Result<(), Box<dyn std::error::Error>> {
    match node.store.write(write).await? {
        Written::Done { .. } => Ok(()),
        other => Err(format!("not written: {other:?}").into()),
    }
}
