//! What people ask and order: lists, one transaction in full, why it stands still, and every deed
//! on it. Decides what is asked in which statement; refuses to know who may ask (a command line
//! or a service does) and what a saga does.
//!
//! Start at [`Operator`]: [`Operator::list`] → [`Operator::why`] → [`Operator::order`].
//!
//! An order ([`Verb`]) names who gives it and why ([`By`]) and the epoch that he saw, and is one
//! statement that judges, changes and audits. So a second click changes nothing: it is told who
//! was first ([`Refusal`]).

mod act;
mod bulk;
mod list;
mod purge;
mod reasons;
mod show;
mod verb;
mod why;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use ring_core::{
    id::{Scope, Service},
    saga::{Direction, State},
    store::Counts,
};

pub use self::{
    act::{Answer, Audited, Refusal},
    bulk::{Bulk, Preview, Tally},
    list::{Cursor, Filter, Keyed, Order, Page, Summary},
    purge::{Purge, Purged},
    show::{Happened, Shown},
    verb::{By, Closed, Policy, Unfit, Verb},
    why::{Reason, Why},
};

use super::{
    config::Config,
    connect::{Link, Purpose},
    error::Error,
    row::{self, get, known},
    sql,
};

/// The store as people see it: every service of a region and cluster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Operator {
    link: Link,
    scope: Scope,
}

impl Operator {
    /// Prepares a connection; makes none yet.
    ///
    /// # Errors
    /// [`Error::Permanent`] when the address can't be read or TLS can't be set up.
    pub fn new(config: &Config, scope: Scope) -> Result<Self, Error> {
        let link = Link::new(config, Purpose::Admin, &Arc::new(AtomicU64::new(0)))?;
        Ok(Self { link, scope })
    }

    /// Where it looks.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Counts by state and direction; reads every row of the service (or of all).
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn counts(&self, service: Option<&Service>) -> Result<Counts, Error> {
        let (region, cluster) = self.place();
        let service = service.map(Service::as_str);
        let asked = self.link.call("count transactions", async |s| {
            s.rows(sql::COUNTS, &[&region, &cluster, &service]).await
        });
        let mut counts = BTreeMap::new();
        for row in &asked.await? {
            let state = State::parse(get(row, "state")?);
            let direction = Direction::parse(get(row, "direction")?);
            let key = (
                known(state, "an unknown state")?,
                known(direction, "an unknown direction")?,
            );
            counts.insert(key, row::count(row, "transactions")?);
        }
        Ok(counts)
    }

    fn place(&self) -> (&str, &str) {
        (self.scope.region.as_str(), self.scope.cluster.as_str())
    }
}
