//! The step log: what became of every step, and where the transaction stands.
//!
//! The transitions of a step are one `match` on (status, event); everything else is illegal and
//! named. Recovery is replay of the stored records through the functions that ran the first time
//! (R18, T1). Times decide nothing here; which call to make next is not decided here either.
//! Where a transaction may stand is one rule over the statuses: [`Log::intend`].

mod status;

use alloc::vec::Vec;
use core::ops::Range;

pub use self::status::{Event, Illegal, Status};
use super::{Attempt, Direction, Entry, Guard, Payload, Plan, PlannedStep, Position};

/// The statuses of all steps and where the transaction stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    steps: Vec<Status>,
    at: Position,
}

impl Log {
    /// Nothing happened, and the transaction stands at the first step that its plan reaches.
    #[must_use]
    pub fn new() -> Self {
        Self::standing(FIRST)
    }

    /// Only where it stands: for a history that can't be read.
    pub(super) fn standing(at: Position) -> Self {
        let steps = Vec::new();
        Self { steps, at }
    }

    /// Replays stored records (in any order: positions tell it) and opens the intent.
    ///
    /// # Errors
    /// [`Illegal`] when no run of this plan can have made this history.
    pub fn replay(plan: &Plan, entries: &[Entry], open: Position) -> Result<Self, Illegal> {
        named(entries, plan)?;
        let mut log = Self::history(entries)?;
        log.intend(plan, open)?;
        Ok(log)
    }

    /// Replays stored records and stops there: what became of a transaction's steps, for people.
    ///
    /// # Errors
    /// [`Illegal`] when no run can have made this history.
    pub fn history(entries: &[Entry]) -> Result<Self, Illegal> {
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|e| {
            let seq = i64::from(e.position.seq);
            match e.position.direction {
                Direction::Forward => (e.position.direction, seq),
                Direction::Compensating => (e.position.direction, -seq),
            }
        });
        let mut log = Self::new();
        for entry in sorted {
            let at = entry.position;
            log.step(at.seq, intended(at.direction))?;
            log.step(at.seq, recorded(at.direction, &entry.attempt))?;
            log.at = at;
        }
        Ok(log)
    }

    /// A stored intent becomes the open one: a step, or all steps of its group that its decisions
    /// let pass.
    ///
    /// # Errors
    /// [`Illegal`] when it does not follow from what became of the steps.
    pub fn intend(&mut self, plan: &Plan, to: Position) -> Result<(), Illegal> {
        self.stands(plan, to)?;
        self.at = to;
        for seq in self.open(plan) {
            let opens = match (to.direction, self.status(seq)) {
                (Direction::Forward, Status::Pending) => true,
                // In a group a refusal is an outcome like any other, unless it stopped the
                // transaction; alone, only a restored one stands at it.
                (Direction::Forward, Status::Failed { doubt }) => {
                    let stops = plan.step(seq).is_some_and(|s| s.stops_when(*doubt));
                    plan.group(seq).len() == 1 || stops
                }
                (Direction::Compensating, status) => status.may_be_applied(),
                (
                    Direction::Forward,
                    Status::Running
                    | Status::Completed(_)
                    | Status::Compensating { .. }
                    | Status::Compensated
                    | Status::Skipped,
                ) => false,
            };
            if opens {
                self.step(seq, intended(to.direction))?;
            }
        }
        Ok(())
    }

    /// The record of an open step.
    ///
    /// # Errors
    /// [`Illegal`] when another intent is open, or the step can't end like this.
    pub fn record(&mut self, plan: &Plan, of: Position, attempt: &Attempt) -> Result<(), Illegal> {
        if of.direction != self.at.direction || !self.open(plan).any(|seq| seq == of.seq) {
            let open = self.at;
            return Err(Illegal::Record { record: of, open });
        }
        self.step(of.seq, recorded(of.direction, attempt))
    }

    /// Where the transaction stands: the open intent, or the first of an open group.
    #[must_use]
    pub fn at(&self) -> Position {
        self.at
    }

    /// Whether a step by itself is open, as every compensation is.
    #[must_use]
    pub fn is_alone(&self, plan: &Plan) -> bool {
        self.at.direction == Direction::Compensating || plan.group(self.at.seq).len() <= 1
    }

    /// Sequence numbers of the steps that are open together where it stands.
    pub fn open(&self, plan: &Plan) -> impl Iterator<Item = u32> + use<> {
        let group = match self.at.direction {
            Direction::Forward => plan.group(self.at.seq),
            Direction::Compensating => self.at.seq..self.at.seq.saturating_add(1),
        };
        let passes = group.filter(|seq| self.passes(plan, *seq));
        passes.collect::<Vec<u32>>().into_iter()
    }

    /// The next step that decisions let pass, beyond the open group; `None` at the plan's end.
    #[must_use]
    pub fn above(&self, plan: &Plan) -> Option<u32> {
        let end = plan.group(self.at.seq).end;
        (end..)
            .take_while(|seq| plan.step(*seq).is_some())
            .find(|seq| self.passes(plan, *seq))
    }

    /// The highest step below this one (this one excluded) that compensation must visit.
    #[must_use]
    pub fn below(&self, plan: &Plan, above: u32) -> Option<u32> {
        (0..above).rev().find(|seq| {
            let undoes = plan.step(*seq).is_some_and(PlannedStep::has_effects);
            undoes && self.status(*seq).may_be_applied()
        })
    }

    /// What became of a step.
    #[must_use]
    pub fn status(&self, seq: u32) -> &Status {
        usize::try_from(seq)
            .ok()
            .and_then(|i| self.steps.get(i))
            .unwrap_or(&Status::Pending)
    }

    /// All steps that were reached, in order.
    #[must_use]
    pub fn statuses(&self) -> &[Status] {
        &self.steps
    }

    /// The result of a step's action, also while it is being compensated.
    #[must_use]
    pub fn result(&self, seq: u32) -> Option<&Payload> {
        match self.status(seq) {
            Status::Completed(result) => Some(result),
            Status::Compensating { result } => result.as_ref(),
            Status::Pending
            | Status::Running
            | Status::Failed { .. }
            | Status::Compensated
            | Status::Skipped => None,
        }
    }

    /// Whether the decisions that guard a step came out so.
    fn passes(&self, plan: &Plan, seq: u32) -> bool {
        plan.step(seq).is_some_and(|step| {
            let holds = |g: &Guard| self.result(g.decision) == Some(&g.case);
            step.guards.iter().all(holds)
        })
    }

    /// The one rule of where a transaction may stand.
    ///
    /// *Forward*: every step before the open group that its decisions let pass is completed, and
    /// nothing after the group was reached. *Compensating*: nothing above the open step remains to
    /// be undone, and it may have been applied itself.
    fn stands(&self, plan: &Plan, at: Position) -> Result<(), Illegal> {
        let wrong = |seq: u32| Illegal::Stand {
            at,
            seq,
            status: self.status(seq).clone(),
        };
        let group = plan.group(at.seq);
        let known = self.steps.len().max(plan.steps().len());
        let last = u32::try_from(known).unwrap_or(u32::MAX);
        if plan.step(at.seq).is_none() && !(plan.steps().is_empty() && at == FIRST) {
            return Err(wrong(at.seq));
        }
        let misfit = (0..last).find(|seq| !self.fits(plan, at, &group, *seq));
        misfit.map_or(Ok(()), |seq| Err(wrong(seq)))
    }

    /// Whether what became of a step lets the transaction stand there.
    fn fits(&self, plan: &Plan, at: Position, group: &Range<u32>, seq: u32) -> bool {
        use Status as S;
        let status = self.status(seq);
        let passed = *status == S::Pending && !self.passes(plan, seq);
        match at.direction {
            Direction::Forward if seq < group.start => passed || matches!(status, S::Completed(_)),
            Direction::Forward if seq < group.end => match status {
                S::Compensating { .. } | S::Compensated => false,
                // Only a member of a failed group ends so.
                S::Skipped => group.len() > 1,
                S::Pending | S::Running | S::Completed(_) | S::Failed { .. } => true,
            },
            Direction::Forward => *status == S::Pending,
            Direction::Compensating if seq < at.seq => {
                passed || matches!(status, S::Completed(_) | S::Failed { .. } | S::Skipped)
            }
            Direction::Compensating if seq == at.seq => match status {
                S::Completed(_)
                | S::Failed { doubt: true }
                | S::Compensating { .. }
                | S::Compensated
                | S::Skipped => true,
                S::Pending | S::Running | S::Failed { doubt: false } => false,
            },
            Direction::Compensating => match status {
                S::Pending | S::Failed { doubt: false } | S::Compensated | S::Skipped => true,
                S::Completed(_) => plan.step(seq).is_some_and(|s| !s.has_effects()),
                S::Running | S::Failed { doubt: true } | S::Compensating { .. } => false,
            },
        }
    }

    fn step(&mut self, seq: u32, event: Event) -> Result<(), Illegal> {
        let index = usize::try_from(seq).unwrap_or(usize::MAX);
        if index >= super::MAX_STEPS {
            let status = Status::Pending;
            return Err(Illegal::Step { seq, status, event });
        }
        if self.steps.len() <= index {
            self.steps.resize(index + 1, Status::Pending);
        }
        let old = core::mem::take(&mut self.steps[index]);
        match old.after(event) {
            Ok(new) => {
                self.steps[index] = new;
                Ok(())
            }
            Err((status, event)) => {
                self.steps[index] = status.clone();
                Err(Illegal::Step { seq, status, event })
            }
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self::new()
    }
}

/// Where every transaction begins.
pub const FIRST: Position = Position {
    direction: Direction::Forward,
    seq: 0,
};

fn intended(direction: Direction) -> Event {
    match direction {
        Direction::Forward => Event::ActionIntended,
        Direction::Compensating => Event::CompensationIntended,
    }
}

fn recorded(direction: Direction, attempt: &Attempt) -> Event {
    match (direction, attempt) {
        (Direction::Forward, Attempt::Done(result)) => Event::ActionDone(result.clone()),
        (Direction::Forward, Attempt::Refused { doubt, .. }) => {
            Event::ActionRefused { doubt: *doubt }
        }
        (Direction::Forward, Attempt::Skipped) => Event::ActionSkipped,
        (Direction::Compensating, Attempt::Done(_)) => Event::CompensationDone,
        (Direction::Compensating, Attempt::Refused { .. }) => Event::CompensationRefused,
        (Direction::Compensating, Attempt::Skipped) => Event::CompensationSkipped,
        (Direction::Forward | Direction::Compensating, Attempt::Paused { .. }) => Event::Paused,
    }
}

/// Whether the records were made by this plan: each names the plan's step in its place.
fn named(entries: &[Entry], plan: &Plan) -> Result<(), Illegal> {
    let other = |e: &&Entry| plan.step(e.position.seq).is_none_or(|s| s.name != e.step);
    entries.iter().find(other).map_or(Ok(()), |e| {
        Err(Illegal::Name {
            seq: e.position.seq,
            name: e.step.as_str().into(),
        })
    })
}
