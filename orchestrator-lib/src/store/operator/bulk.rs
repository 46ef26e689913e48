//! One order for all that a filter finds: what would be touched, then one after the other at a
//! rate, with a result for each. Decides which rows; the order itself judges each of them, so
//! that a repeat after an interruption touches only what is left.

use std::{num::NonZeroU32, time::Duration};

use ring_core::saga::State;
use tokio::time::sleep;

use super::{
    super::error::Error,
    Operator,
    act::Answer,
    list::{Cursor, Filter, Order, Summary},
    verb::{By, Verb},
};

/// Rows read at a time.
const PAGE: u32 = 500;

/// An order about many.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Which; states that the order does not fit are left out.
    pub filter: Filter,
    /// What.
    pub verb: Verb,
    /// At most so many.
    pub most: u32,
    /// So many a second, so that what follows does not flood the targets.
    pub rate: NonZeroU32,
}

/// What an order about many would touch.
#[derive(Clone, Debug)]
pub struct Preview {
    /// How many, up to the order's bound.
    pub count: u32,
    /// Whether there are more than the bound.
    pub more: bool,
    /// The first of them, oldest first.
    pub first: Vec<Summary>,
}

/// What became of an order about many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Done.
    pub done: u32,
    /// Refused: they changed since they were read.
    pub refused: u32,
    /// The database did not answer, or somebody held the row.
    pub failed: u32,
}

impl Bulk {
    /// The filter without the states that the order does not fit; none when no state is left.
    fn fitting(&self) -> Option<Filter> {
        let wanted = |s: &State| self.filter.states.is_empty() || self.filter.states.contains(s);
        let states: Vec<State> = self.verb.states().iter().copied().filter(wanted).collect();
        let filter = Filter {
            states,
            ..self.filter.clone()
        };
        (!filter.states.is_empty()).then_some(filter)
    }
}

impl Operator {
    /// What an order about many would touch, `show` of them in full. Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the database is away.
    pub async fn preview(&self, bulk: &Bulk, show: u32) -> Result<Preview, Error> {
        let mut preview = Preview {
            count: 0,
            more: false,
            first: Vec::new(),
        };
        let mut cursor = Cursor::default();
        let show = usize::try_from(show).unwrap_or(usize::MAX);
        while let Some((lines, next)) = self.turn(bulk, cursor).await? {
            for line in lines {
                if preview.count == bulk.most {
                    preview.more = true;
                    return Ok(preview);
                }
                preview.count += 1;
                if preview.first.len() < show {
                    preview.first.push(line);
                }
            }
            let Some(next) = next else { break };
            cursor = next;
        }
        Ok(preview)
    }

    /// Gives the order about each, oldest first, and tells every result. A row that fails does not
    /// stop the others.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the list itself can't be read.
    pub async fn order_all(
        &self,
        bulk: &Bulk,
        by: &By,
        mut told: impl FnMut(&Summary, &Result<Answer, Error>),
    ) -> Result<Tally, Error> {
        let mut tally = Tally::default();
        let pause = Duration::from_secs(1) / bulk.rate.get();
        let (mut cursor, mut left) = (Cursor::default(), bulk.most);
        while let Some((lines, next)) = self.turn(bulk, cursor).await? {
            for line in lines {
                if left == 0 {
                    return Ok(tally);
                }
                if left < bulk.most {
                    sleep(pause).await;
                }
                left -= 1;
                let answer = self.order(&bulk.verb, line.id, line.epoch, by).await;
                match &answer {
                    Ok(Answer::Done { .. }) => tally.done += 1,
                    Ok(Answer::Refused(_)) => tally.refused += 1,
                    Err(_) => tally.failed += 1,
                }
                told(&line, &answer);
            }
            let Some(next) = next else { break };
            cursor = next;
        }
        Ok(tally)
    }

    async fn turn(
        &self,
        bulk: &Bulk,
        cursor: Cursor,
    ) -> Result<Option<(Vec<Summary>, Option<Cursor>)>, Error> {
        let Some(filter) = bulk.fitting() else {
            return Ok(None);
        };
        let page = self.list(&filter, Order::Oldest, cursor, PAGE).await?;
        Ok(Some((page.lines, page.next)))
    }
}
