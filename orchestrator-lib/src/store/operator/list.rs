//! Lists: which way a filter is found by, and a page of it. Every page costs a bounded number of
//! rows, whatever the filter leaves.

use chrono::{DateTime, Utc};
use ring_core::{
    id::{SagaName, Service, TransactionId},
    saga::{Direction, Position, State},
    time::Wall,
    token::Token,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{
    super::{
        error::Error,
        row::{self, get, known},
        saga_name, sql, words,
    },
    Operator,
};

/// Rows that one page looks at, at most: some ten milliseconds of a warm database.
const LOOK_AT: u32 = 10_000;

/// How much earlier than `created_from` an id may say it was made, and later than
/// `created_before`: ids carry the clock of the process that made them.
const CLOCK_SLACK_MS: i64 = 3_600_000;

/// The ends of all ids.
pub(super) const FIRST_ID: Uuid = Uuid::nil();
const LAST_ID: Uuid = Uuid::max();

/// Which transactions; the default is all of them. What is set must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this service's.
    pub service: Option<Service>,
    /// Only these states; empty is every state.
    pub states: Vec<State>,
    /// Only this saga's.
    pub saga: Option<SagaName>,
    /// Only this version of the saga.
    pub version: Option<u32>,
    /// Only on this way.
    pub direction: Option<Direction>,
    /// Started at this time or later.
    pub created_from: Option<Wall>,
    /// Started before this time.
    pub created_before: Option<Wall>,
    /// Parked and due before this time.
    pub due_before: Option<Wall>,
    /// Waiting for this target.
    pub waiting_on: Option<String>,
    /// What was said last contains this, whatever the case of letters.
    pub error: Option<String>,
    /// The open step failed so often or more.
    pub attempts: Option<u32>,
    /// The idempotency key it was started with, exactly. Quick with `service` and `saga`; see
    /// [`Operator::keyed`] when they are not known.
    pub key: Option<String>,
}

/// Which end of a list comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those started last.
    #[default]
    Newest,
    /// Those started first.
    Oldest,
}

/// Where a page begins: behind this id in the list's order; none is the list's begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor(pub Option<TransactionId>);

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// Those that match. A page may be short, or empty, and yet have a next one: it looks at a
    /// bounded number of rows.
    pub lines: Vec<Summary>,
    /// Where the next page begins; none at the end.
    pub next: Option<Cursor>,
}

/// One line of a list.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its id.
    pub id: TransactionId,
    /// Its place on the ring.
    pub token: Token,
    /// Its service.
    pub service: String,
    /// The saga.
    pub saga: SagaName,
    /// Its version.
    pub version: u32,
    /// Where it stands.
    pub state: State,
    /// The open intent.
    pub position: Position,
    /// The open step's name; none when no process with this definition was here and nothing was
    /// recorded of the step.
    pub step: Option<String>,
    /// Whether the open intent may have been applied.
    pub doubt: bool,
    /// Failed attempts of the open intent.
    pub attempts: u32,
    /// What was said last.
    pub error: Option<String>,
    /// The target it waits for.
    pub waiting_on: Option<String>,
    /// The instance that runs it.
    pub instance: Option<String>,
    /// What an order names: raised by every claim and every order.
    pub epoch: u64,
    /// When it is due, when parked.
    pub due_at: Option<Wall>,
    /// When it was started.
    pub created_at: Wall,
    /// When its lifetime ends.
    pub expires_at: Wall,
    /// When it ended.
    pub settled_at: Option<Wall>,
}

/// A transaction that was started with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// Which.
    pub id: TransactionId,
    /// Of which service.
    pub service: String,
    /// Of which saga.
    pub saga: String,
}

impl Operator {
    /// A page of transactions.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn list(
        &self,
        filter: &Filter,
        order: Order,
        after: Cursor,
        limit: u32,
    ) -> Result<Page, Error> {
        let (statement, newest) = match order {
            Order::Newest => (sql::LIST, true),
            Order::Oldest => (sql::LIST_OLDEST, false),
        };
        let way = way(filter);
        let (near, far) = bounds(filter, newest, after);
        let rows = self
            .page(filter, statement, way, (near, far), limit)
            .await?;
        let lines: Vec<Summary> = rows.iter().map(summary).collect::<Result<_, _>>()?;
        let full = lines.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let next = match lines.last() {
            Some(last) if full => Some(Cursor(Some(last.id))),
            _ if way == "walk" => self.reach(newest, near, far).await?,
            _ => None,
        };
        Ok(Page { lines, next })
    }

    async fn page(
        &self,
        filter: &Filter,
        statement: &'static str,
        way: &str,
        (near, far): (Uuid, Uuid),
        limit: u32,
    ) -> Result<Vec<Row>, Error> {
        let (region, cluster) = self.place();
        let service = filter.service.as_ref().map(Service::as_str);
        let states: Vec<&str> = filter.states.iter().map(|s| s.as_str()).collect();
        let states = (!states.is_empty()).then_some(states);
        let saga = filter.saga.as_ref().map(SagaName::as_str);
        let version = filter.version.map(i64::from);
        let direction = filter.direction.map(Direction::as_str);
        let attempts = filter.attempts.map(i64::from);
        let from = filter.created_from.map(words::time);
        let before = filter.created_before.map(words::time);
        let due = filter.due_before.map(words::time);
        let (look_at, most) = (i64::from(LOOK_AT), i64::from(limit));
        let asked = self.link.call("list transactions", async |s| {
            s.rows(
                statement,
                &[
                    &region,
                    &cluster,
                    &way,
                    &near,
                    &far,
                    &service,
                    &states,
                    &saga,
                    &version,
                    &direction,
                    &attempts,
                    &filter.waiting_on,
                    &from,
                    &before,
                    &due,
                    &filter.error,
                    &filter.key,
                    &look_at,
                    &most,
                ],
            )
            .await
        });
        asked.await
    }

    /// How far a walk came that did not fill its page.
    async fn reach(&self, newest: bool, near: Uuid, far: Uuid) -> Result<Option<Cursor>, Error> {
        let look_at = i64::from(LOOK_AT);
        let asked = self.link.call("list transactions", async |s| {
            s.rows(sql::LIST_REACH, &[&newest, &near, &far, &look_at])
                .await
        });
        let rows = asked.await?;
        let reached = rows.first().map(|row| get(row, "id")).transpose()?;
        Ok(reached.map(|id| Cursor(Some(TransactionId(id)))))
    }

    /// Transactions that were started with this idempotency key, newest first, 100 at most: a key
    /// is unique within a service and a saga.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn keyed(
        &self,
        key: &str,
        service: Option<&Service>,
        saga: Option<&SagaName>,
    ) -> Result<Vec<Keyed>, Error> {
        let (region, cluster) = self.place();
        let service = service.map(Service::as_str);
        let saga = saga.map(SagaName::as_str);
        let asked = self.link.call("look for a key", async |s| {
            s.rows(sql::KEYED, &[&region, &cluster, &key, &service, &saga])
                .await
        });
        let rows = asked.await?;
        let found = rows.iter().map(|row| {
            Ok(Keyed {
                id: TransactionId(get(row, "id")?),
                service: get(row, "service")?,
                saga: get(row, "saga")?,
            })
        });
        found.collect()
    }
}

/// By which branch of the statement a filter is found.
fn way(filter: &Filter) -> &'static str {
    let unfortunate = |s: &State| match s {
        State::Terminated | State::Disabled | State::Quarantined => true,
        State::Running | State::Paused | State::Completed | State::Compensated => false,
    };
    let keyed = filter.key.is_some() && filter.service.is_some() && filter.saga.is_some();
    match filter.states.as_slice() {
        _ if keyed => "key",
        _ if filter.waiting_on.is_some() && filter.service.is_some() => "waiting",
        [_, ..] if filter.states.iter().all(unfortunate) => "unfortunate",
        [State::Running] => "running",
        _ => "walk",
    }
}

/// The ids between which a list goes, in its order: behind the first, up to the last.
fn bounds(filter: &Filter, newest: bool, after: Cursor) -> (Uuid, Uuid) {
    let made = |at: Wall, slack: i64| {
        let millis = u64::try_from(at.0.saturating_add(slack)).unwrap_or(0);
        Uuid::from_u64_pair(millis.min(0xffff_ffff_ffff) << 16, 0)
    };
    let low = filter.created_from.map(|at| made(at, -CLOCK_SLACK_MS));
    let high = filter.created_before.map(|at| made(at, CLOCK_SLACK_MS));
    let (low, high) = (low.unwrap_or(FIRST_ID), high.unwrap_or(LAST_ID));
    let (near, far) = if newest { (high, low) } else { (low, high) };
    let near = match after.0 {
        Some(TransactionId(id)) if newest => id.min(near),
        Some(TransactionId(id)) => id.max(near),
        None => near,
    };
    (near, far)
}

pub(super) fn summary(row: &Row) -> Result<Summary, Error> {
    let time = |column| {
        let at: Option<DateTime<Utc>> = get(row, column)?;
        Ok::<_, Error>(at.map(words::wall))
    };
    let state = State::parse(get(row, "state")?);
    Ok(Summary {
        id: TransactionId(get(row, "id")?),
        token: Token(get(row, "token")?),
        service: get(row, "service")?,
        saga: known(saga_name(get(row, "saga")?), "a saga without a valid name")?,
        version: row::small(row, "version")?,
        state: known(state, "an unknown state")?,
        position: row::position(row)?,
        step: get(row, "step")?,
        doubt: get(row, "doubt")?,
        attempts: row::small(row, "attempts")?,
        error: get(row, "error")?,
        waiting_on: get(row, "waiting_on")?,
        instance: get(row, "instance")?,
        epoch: row::count(row, "epoch")?,
        due_at: time("due_at")?,
        created_at: words::wall(get(row, "created_at")?),
        expires_at: words::wall(get(row, "expires_at")?),
        settled_at: time("settled_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_times_is_a_range_of_ids_in_either_order() {
        let filter = Filter {
            created_from: Some(Wall(10 * CLOCK_SLACK_MS)),
            created_before: Some(Wall(20 * CLOCK_SLACK_MS)),
            ..Filter::default()
        };
        let (near, far) = bounds(&filter, true, Cursor::default());
        assert!(near > far);
        assert_eq!(bounds(&filter, false, Cursor::default()), (far, near));
        let late = Cursor(Some(TransactionId(Uuid::max())));
        assert_eq!(
            bounds(&filter, true, late),
            (near, far),
            "not beyond the range"
        );
    }

    #[test]
    fn the_unfortunate_are_found_by_their_own_index() {
        let states = |states: &[State]| Filter {
            states: states.to_vec(),
            ..Filter::default()
        };
        assert_eq!(way(&states(&[State::Disabled])), "unfortunate");
        assert_eq!(way(&states(&[State::Disabled, State::Paused])), "walk");
        assert_eq!(way(&states(&[State::Running])), "running");
        assert_eq!(way(&Filter::default()), "walk");
    }
}
