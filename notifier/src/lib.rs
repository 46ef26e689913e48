//! Brings a saga store's alerts to people: the outbox `ringsaga.alert` to webhooks.
//!
//! A transaction that needs a person writes its alert in the very commit that makes it so; this
//! crate takes it from there. Delivery is at least once, each alert with an id by which a receiver
//! knows a repeat. Several notifiers may run on one store: each delivery is leased to one of them,
//! and a hook's pace is kept in the store, so that they share it.
//!
//! Decides when an attempt counts, when the next one comes and when to give up. Refuses to know
//! why a transaction stands still, NATS, and what receivers do.
//!
//! ```no_run
//! use orchestrator_lib::store::{AlertKind, Alerts, Config};
//! use ring_notifier::{Hook, Target, run};
//! # use ring_core::id::Scope;
//! # async fn example(scope: Scope) -> Result<(), Box<dyn std::error::Error>> {
//! let alerts = Alerts::new(&Config::new("postgres://localhost/orders"), scope)?;
//! let oncall = Target::generic("https://oncall.example/hook", "a secret that both sides know");
//! let hooks = vec![
//!     Hook::new("oncall", oncall).only([AlertKind::Terminated, AlertKind::IrreversibleFailed]),
//!     Hook::new("team", Target::wecom("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…")),
//! ];
//! run(alerts, hooks, Default::default()).await?;
//! # Ok(()) }
//! ```

mod answer;
mod config;
mod deliver;
mod generic;
mod hook;
mod http;
mod message;
pub mod telemetry;
mod wecom;

pub use self::{
    config::Config,
    deliver::{Error, Notifier, run, send_test},
    generic::{SIGNATURE, TIMESTAMP, signature},
    hook::{Hook, HookName, Target},
};
