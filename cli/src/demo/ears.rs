//! The ring as the demo hears it: who owns which part now, what happened, who leads.
//!
//! Listens as the user `operator`, like `ringsaga ring watch`.

use std::collections::BTreeSet;

use anyhow::Context as _;
use async_nats::Subscriber;
use ring_core::{
    id::{Cluster, Region, Scope, Service},
    subject::{Place, Verb},
    time::{Now, Wall},
    timing::Timing,
    wire::{Answer, Fact, Publication},
};
use ring_local::Role;

use super::{
    coverage::{Standing, Timeline},
    stage::{CLUSTER, Places, REGION, SERVICE, WINDOW},
};
use crate::{
    args::{Bus, Seen},
    exit::Exit,
    ring::{
        ear::{Ear, Heard, hear},
        ledger::{Ledger, Ring},
        watch,
    },
};

/// A listener.
pub(crate) struct Ears {
    ear: Ear,
    from: Subscriber,
    ledger: Ledger,
    ring: Ring,
    timing: Timing,
    /// The last one that said that it leads.
    leader: Option<String>,
    /// When the ring was whole.
    pub(crate) timeline: Timeline,
    /// How it stands.
    pub(crate) standing: Standing,
}

impl Ears {
    /// Connects and listens.
    ///
    /// # Errors
    /// When NATS can't be reached.
    pub(crate) async fn open(places: &Places) -> anyhow::Result<Self> {
        let scope = Scope {
            region: Region::new(REGION)?,
            cluster: Cluster::new(CLUSTER)?,
        };
        let seen = Seen {
            bus: Bus {
                nats: places.servers.nats_url.clone().into(),
                user: Some(Role::Operator.user().to_owned()),
                password: Some(places.servers.nats_password(Role::Operator).into()),
                creds: None,
                ca: None,
            },
            region: Some(scope.region.clone()),
            cluster: Some(scope.cluster.clone()),
            service: None,
        };
        let ear = Ear::open(&seen).await?;
        Ok(Self {
            from: ear.listen().await?,
            ear,
            ledger: Ledger::default(),
            ring: Ring {
                scope,
                service: Service::new(SERVICE)?,
            },
            timing: Timing::for_window(WINDOW),
            leader: None,
            timeline: Timeline::default(),
            standing: Standing::default(),
        })
    }

    /// Hears the next thing; a sentence when it is worth telling. Safe to drop and call again.
    ///
    /// # Errors
    /// When the connection is closed for good.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<String>> {
        let heard = hear(&mut self.from).await;
        let closed = || Exit::NotReachable.because("the connection to NATS was closed");
        Ok(match heard.ok_or_else(closed)? {
            Heard::Published(_, Publication::Grant(grant)) => {
                self.ledger.grant(grant);
                None
            }
            Heard::Event(subject, event) => {
                if let Fact::Cut { cut } = event.fact {
                    self.ledger.cut(subject.scope, cut);
                    return Ok(None);
                }
                let by = event.by.id.to_string();
                let text = format!("{by}: {}", watch::sentence(&event.fact));
                if matches!(event.fact, Fact::Leader { .. }) {
                    self.leader = Some(by);
                }
                Some(text)
            }
            Heard::Published(..) | Heard::Request(_) => None,
            Heard::Strange(why) => Some(format!("not of the contract: {why}")),
        })
    }

    /// Looks at the ring at this moment, without those that are dead.
    pub(crate) fn look(&mut self, now: Now, dead: &BTreeSet<String>) {
        let n = self.timing.window_at(now.wall);
        self.standing = Standing::now(&self.ledger, &self.ring, n, dead);
        self.timeline.note(now.mono, self.standing.is_whole());
    }

    /// Who leads, by its own word, else the last that said so.
    ///
    /// # Errors
    /// When nobody is known.
    pub(crate) async fn leader(&self) -> anyhow::Result<String> {
        let asked = self
            .ear
            .status(&self.ring.scope, Place::Master(Verb::Status))
            .await;
        if let Ok(Some(Answer::Master(status))) = asked {
            return Ok(status.who.id.to_string());
        }
        self.leader.clone().context("nobody has said that it leads")
    }

    /// Windows that ended, and in how many of them some part was granted twice.
    pub(crate) fn overlaps(&self, at: Wall) -> (usize, usize) {
        let ended = self
            .ledger
            .windows()
            .filter(|(ring, _, sheet)| **ring == self.ring && sheet.ends_at <= at);
        let windows: Vec<_> = ended.map(|(_, n, _)| n).collect();
        let twice = windows.iter().filter(|n| {
            let verdict = self.ledger.verdict(&self.ring, **n);
            !verdict.overlaps.is_empty() || verdict.changed > 0
        });
        (windows.len(), twice.count())
    }
}
