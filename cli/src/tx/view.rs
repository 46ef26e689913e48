//! How transactions look in a list, and the words of the command line.

use orchestrator_lib::store::Summary;
use ring_core::{
    id::TransactionId,
    saga::{Direction, State},
    store::Counts,
    token::Token,
    wire::Time,
};
use serde::Serialize;

use crate::{
    args::{DirectionArg, Format, StateArg},
    output,
};

/// A transaction in a list.
#[derive(Serialize)]
pub(super) struct Line {
    pub(super) id: TransactionId,
    pub(super) token: Token,
    pub(super) service: String,
    pub(super) saga: String,
    pub(super) version: u32,
    pub(super) state: &'static str,
    direction: &'static str,
    seq: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    in_doubt: bool,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<Time>,
    pub(super) created_at: Time,
    pub(super) expires_at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at: Option<Time>,
}

#[derive(Serialize)]
struct Counted {
    state: &'static str,
    direction: &'static str,
    transactions: u64,
}

impl Line {
    pub(super) fn new(s: &Summary) -> Self {
        Self {
            id: s.id,
            token: s.token,
            service: s.service.clone(),
            saga: s.saga.to_string(),
            version: s.version,
            state: s.state.as_str(),
            direction: s.position.direction.as_str(),
            seq: s.position.seq,
            step: s.step.clone(),
            error: s.error.clone(),
            epoch: s.epoch,
            in_doubt: s.doubt,
            attempts: s.attempts,
            waiting_on: s.waiting_on.clone(),
            owner: s.instance.clone(),
            due_at: s.due_at.map(Time),
            created_at: Time(s.created_at),
            expires_at: Time(s.expires_at),
            settled_at: s.settled_at.map(Time),
        }
    }

    pub(super) fn when(&self) -> String {
        let due = self.due_at.map(|t| format!("due {}", t.0.rfc3339()));
        let done = self.settled_at.map(|t| format!("ended {}", t.0.rfc3339()));
        let owned = self.owner.as_ref().map(|owner| format!("run by {owner}"));
        due.or(done).or(owned).unwrap_or_default()
    }

    pub(super) fn standing(&self) -> String {
        let doubt = if self.in_doubt { ", in doubt" } else { "" };
        let step = self.step.clone().unwrap_or_else(|| self.seq.to_string());
        match self.attempts {
            0 => format!("{} {step}{doubt}", self.direction),
            n => format!("{} {step}, {n} failed{doubt}", self.direction),
        }
    }
}

/// The list's table.
pub(super) fn table(lines: &[Line]) -> String {
    let mut table = output::table(&["ID", "SERVICE", "SAGA", "STATE", "STANDS AT", "WHEN"]);
    for line in lines {
        table.add_row([
            line.id.to_string(),
            line.service.clone(),
            format!("{} v{}", line.saga, line.version),
            line.state.to_owned(),
            line.standing(),
            line.when(),
        ]);
    }
    table.trim_fmt()
}

/// Prints counts by state and direction.
pub(super) fn counted(counts: &Counts, format: Format) -> anyhow::Result<()> {
    let rows = counts
        .iter()
        .map(|((state, direction), transactions)| Counted {
            state: state.as_str(),
            direction: direction.as_str(),
            transactions: *transactions,
        });
    let rows: Vec<Counted> = rows.collect();
    output::rows(format, &rows, || {
        let mut table = output::table(&["STATE", "DIRECTION", "TRANSACTIONS"]);
        for row in &rows {
            table.add_row([row.state, row.direction, &row.transactions.to_string()]);
        }
        table.trim_fmt()
    })
}

/// The core's word for the command line's.
pub(super) fn direction(arg: DirectionArg) -> Direction {
    match arg {
        DirectionArg::Forward => Direction::Forward,
        DirectionArg::Compensating => Direction::Compensating,
    }
}

/// The store's word for the command line's.
pub(super) fn state(arg: StateArg) -> State {
    match arg {
        StateArg::Running => State::Running,
        StateArg::Paused => State::Paused,
        StateArg::Completed => State::Completed,
        StateArg::Compensated => State::Compensated,
        StateArg::Terminated => State::Terminated,
        StateArg::Disabled => State::Disabled,
        StateArg::Quarantined => State::Quarantined,
    }
}

/// Text of others, without what a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}
