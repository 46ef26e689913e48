//! `registry::Op` over Redis: one match, one queue, in order.
//!
//! Decides keys, scripts and time limits, and what counts as unreachable: everything that is no
//! answer, a replica that may not write included. Nothing here is needed for the safety of
//! transactions; Redis decides who leads and keeps what was cut first.
//!
//! Keys, all hash-tagged `{region.cluster}` so that a script's keys share a slot:
//! `ringsaga:{r.c}:lease` and `:term` (hashes: number, boot, id), `:cuts:<window>` (hash: service →
//! cut), `:cursor:<service>` (count).

mod cuts;
mod link;

use std::time::Duration;

use redis::{RedisError, Script};
use ring_core::{
    id::{BootId, NodeId, Scope, Service},
    joining::LARGEST_TERM,
    registry::{Op, Told},
    time::Wall,
    timing::Timing,
    window::Term,
};
use ring_shell::{
    clock,
    tasks::Spawner,
    telemetry::{Meter, REGISTRY_SECONDS, REGISTRY_UNREACHABLE},
};
use thiserror::Error;
use tokio::sync::mpsc;

use self::link::Link;
pub use self::link::{Address, AddressError};

/// Orders waiting for their turn. A master has a handful under way; beyond this they are answered
/// `Unreachable` at once.
const QUEUE: usize = 64;

/// A whole order, its connection included: the cut must be out long before its window.
const ORDER: Duration = Duration::from_secs(1);

/// Who asks.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Region and cluster.
    pub scope: Scope,
    /// The master's id.
    pub id: NodeId,
    /// Its boot.
    pub boot: BootId,
    /// For the windows' times in stored cuts.
    pub timing: Timing,
}

/// Where orders go; the answers come from the receiver.
#[derive(Debug)]
pub struct Orders {
    queue: mpsc::Sender<Op>,
    told: mpsc::UnboundedSender<Told>,
}

/// Why an order has no answer.
#[derive(Debug, Error)]
enum Failure {
    #[error("Redis")]
    Redis(#[from] RedisError),
    #[error("no answer within {ORDER:?}")]
    Late,
    #[error("an answer that this program never stores: {0}")]
    Strange(String),
}

struct Registry {
    holder: Holder,
    link: Link,
    scripts: Scripts,
    meter: Meter,
    reachable: bool,
}

struct Scripts {
    acquire: Script,
    renew: Script,
    release: Script,
    store: Script,
}

/// What acquire and renew answer: verdict, id, boot, number, milliseconds left, Redis' clock.
type LeaseAnswer = (String, String, String, u64, i64, i64);

/// Starts the queue. It connects when the first order comes.
pub fn start(
    holder: Holder,
    address: Address,
    tasks: &Spawner,
    meter: Meter,
) -> (Orders, mpsc::UnboundedReceiver<Told>) {
    let (queue, mut waiting) = mpsc::channel(QUEUE);
    // One answer an order, and the orders are bounded.
    let (told, answers) = mpsc::unbounded_channel();
    let orders = Orders {
        queue,
        told: told.clone(),
    };
    let mut registry = Registry {
        holder,
        link: Link::new(address),
        scripts: Scripts::new(),
        meter,
        reachable: true,
    };
    tasks.spawn(async move {
        while let Some(op) = waiting.recv().await {
            let answer = registry.perform(op).await;
            if told.send(answer).is_err() {
                return;
            }
        }
    });
    (orders, answers)
}

impl Orders {
    /// Puts an order in the queue; exactly one answer follows.
    pub fn perform(&self, op: Op) {
        if let Err(full) = self.queue.try_send(op) {
            let op = full.into_inner();
            // Fails only when nobody listens any more.
            drop(self.told.send(Told::Unreachable { op }));
        }
    }
}

impl Registry {
    async fn perform(&mut self, op: Op) -> Told {
        let started = clock::now().mono;
        let done = tokio::time::timeout(ORDER, self.try_perform(&op))
            .await
            .unwrap_or(Err(Failure::Late));
        self.meter
            .took(REGISTRY_SECONDS, clock::now().mono.since(started));
        match done {
            Ok(told) => {
                self.link.works();
                if !std::mem::replace(&mut self.reachable, true) {
                    tracing::info!("Redis answers again");
                }
                told
            }
            Err(failure) => {
                self.meter.count(REGISTRY_UNREACHABLE);
                self.link.failed(failure.redis());
                if std::mem::replace(&mut self.reachable, false) {
                    let cause = failure.redis().map(ToString::to_string);
                    tracing::warn!(%failure, cause, "Redis can't be used; trying on");
                }
                Told::Unreachable { op }
            }
        }
    }

    async fn try_perform(&mut self, op: &Op) -> Result<Told, Failure> {
        match op {
            Op::Acquire { floor, ttl } => {
                // Lua counts in doubles, whole up to 2^53: nobody believes a term near that.
                let floor = (*floor).min(LARGEST_TERM - 1);
                self.lease(Lease::Acquire, floor, *ttl).await
            }
            Op::Renew { term, ttl } => self.lease(Lease::Renew, term.number, *ttl).await,
            Op::Release { .. } => self.release().await,
            Op::StoreCuts { cuts, keep } => self.store(cuts, *keep).await,
            Op::LoadCuts { windows } => self.load(windows).await,
            Op::Count { service } => self.count(service).await,
        }
    }

    async fn lease(&mut self, lease: Lease, number: u64, ttl: Duration) -> Result<Told, Failure> {
        let (holder, link) = (&self.holder, &mut self.link);
        let script = match lease {
            Lease::Acquire => &self.scripts.acquire,
            Lease::Renew => &self.scripts.renew,
        };
        let answer: LeaseAnswer = script
            .key(holder.key("lease"))
            .key(holder.key("term"))
            .arg(holder.id.as_str())
            .arg(holder.boot.to_string())
            .arg(number)
            .arg(millis(ttl))
            .invoke_async(link.connection()?)
            .await?;
        lease_told(answer)
    }

    async fn release(&mut self) -> Result<Told, Failure> {
        let (holder, link) = (&self.holder, &mut self.link);
        let _: i64 = self
            .scripts
            .release
            .key(holder.key("lease"))
            .arg(holder.boot.to_string())
            .invoke_async(link.connection()?)
            .await?;
        Ok(Told::Released)
    }

    async fn count(&mut self, service: &Service) -> Result<Told, Failure> {
        let key = self.holder.key(&format!("cursor:{service}"));
        let after: u64 = redis::cmd("INCR")
            .arg(key)
            .query_async(self.link.connection()?)
            .await?;
        Ok(Told::Counted {
            service: service.clone(),
            count: after.saturating_sub(1),
        })
    }
}

#[derive(Clone, Copy)]
enum Lease {
    Acquire,
    Renew,
}

fn lease_told(answer: LeaseAnswer) -> Result<Told, Failure> {
    let (verdict, id, boot, number, left, now) = answer;
    let boot: BootId = boot
        .parse()
        .map_err(|_| Failure::Strange(format!("boot {boot:?}")))?;
    let term = Term { number, boot };
    let clock = Wall(now);
    if verdict == "mine" {
        return Ok(Told::Mine { term, clock });
    }
    let holder = NodeId::new(id).map_err(|error| Failure::Strange(error.to_string()))?;
    Ok(Told::Theirs {
        holder,
        term,
        left: Duration::from_millis(u64::try_from(left).unwrap_or(0)),
        clock,
    })
}

impl Holder {
    fn key(&self, name: &str) -> String {
        format!("ringsaga:{{{}}}:{name}", self.scope)
    }
}

impl Scripts {
    fn new() -> Self {
        Self {
            acquire: Script::new(include_str!("../lua/acquire.lua")),
            renew: Script::new(include_str!("../lua/renew.lua")),
            release: Script::new(include_str!("../lua/release.lua")),
            store: Script::new(include_str!("../lua/store_cuts.lua")),
        }
    }
}

impl Failure {
    fn redis(&self) -> Option<&RedisError> {
        match self {
            Self::Redis(error) => Some(error),
            Self::Late | Self::Strange(_) => None,
        }
    }
}

fn millis(of: Duration) -> u64 {
    // Redis refuses an expiry of zero.
    ring_core::time::millis_u64(of).max(1)
}
