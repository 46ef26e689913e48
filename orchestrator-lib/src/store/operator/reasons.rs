//! What keeps a transaction where it is. Decides, from what one read found, every reason that holds
//! and what a person can do; refuses to guess what no row says (the ring's state is not in the
//! store: an overdue row is what shows a hole in it).

use std::time::Duration;

use ring_core::{
    saga::{Direction, State},
    time::Wall,
    timing::Timing,
};

use super::why::Reason;

/// Due for less than this, a transaction is simply about to be taken: two polls.
const AT_ONCE: Duration = Duration::from_secs(2);

/// What one read found.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) state: State,
    pub(super) direction: Direction,
    pub(super) seq: u32,
    pub(super) doubt: bool,
    pub(super) attempts: u32,
    pub(super) deaths: u32,
    pub(super) saga: String,
    pub(super) version: u32,
    pub(super) waiting_on: Option<String>,
    pub(super) due_at: Option<Wall>,
    pub(super) expires_at: Wall,
    pub(super) settled_at: Option<Wall>,
    pub(super) progressed_at: Wall,
    pub(super) now: Wall,
    pub(super) owner: Option<Owner>,
    pub(super) living: u64,
    pub(super) retry_nodes: u64,
    pub(super) able: u64,
    pub(super) able_elsewhere: u64,
    pub(super) busy: u64,
    pub(super) step: Option<String>,
    /// The open step was tried and paused.
    pub(super) paused: bool,
    pub(super) said: Option<String>,
    pub(super) retry: Option<String>,
    pub(super) cancelled: bool,
    pub(super) last_deed: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) instance: String,
    pub(super) since: Wall,
    pub(super) dead_at: Option<Wall>,
    pub(super) lease_until: Wall,
}

/// Everything that holds, the strongest first.
pub(super) fn reasons(f: &Facts) -> Vec<Reason> {
    let mut found = Vec::new();
    match f.state {
        State::Running => running(f, &mut found),
        State::Paused => {
            parked(f, &mut found);
            nobody(f, &mut found);
            dangerous(f, &mut found);
        }
        State::Completed
        | State::Compensated
        | State::Terminated
        | State::Disabled
        | State::Quarantined => settled(f, &mut found),
    }
    besides(f, &mut found);
    found
}

fn settled(f: &Facts, found: &mut Vec<Reason>) {
    let at = f.settled_at.map(Wall::rfc3339).unwrap_or_default();
    let said = f.said.as_deref().unwrap_or("nothing was said");
    let (code, says, todo) = match f.state {
        State::Completed => (
            "completed",
            format!("every action is done since {at}"),
            "nothing",
        ),
        State::Compensated => (
            "compensated",
            format!("it was undone until {at}: {said}"),
            "nothing; start it anew with another key if it is still wanted",
        ),
        State::Terminated => (
            "terminated",
            format!("it stopped for good at {at} at {}: {said}", place(f)),
            "remove the cause, then `tx restore` (it goes on in the same direction); done by hand: `tx skip`; all settled elsewhere: `tx close`",
        ),
        State::Disabled => (
            "disabled",
            format!("a limit of time was over at {at} at {}: {said}", place(f)),
            "`tx restore --lifetime …` gives it more time from where it stands",
        ),
        State::Quarantined | State::Running | State::Paused => (
            "quarantined",
            format!(
                "{} processes died while they ran it, the last before {at}",
                f.deaths
            ),
            "find why processes die at this step (memory, a crash in its code), then `tx restore`",
        ),
    };
    push(found, code, says, todo);
}

fn running(f: &Facts, found: &mut Vec<Reason>) {
    let Some(owner) = &f.owner else {
        return push(
            found,
            "owner-unknown",
            "its owner's row is gone".to_owned(),
            "tell the developers: an owner's row stays as long as a transaction names it",
        );
    };
    let name = &owner.instance;
    if let Some(dead) = owner.dead_at {
        let says = format!(
            "its owner {name} died at {}: it goes on at any retry node that can run it",
            dead.rfc3339()
        );
        push(found, "owner-dead", says, "wait a second");
        nobody(f, found);
        dangerous(f, found);
    } else if owner.lease_until < f.now {
        let says = format!(
            "the lease of its owner {name} ended {} ago and its death is not declared yet",
            span(f.now.since(owner.lease_until))
        );
        let todo = "wait: a retry node with a whole lease of contact with the database declares it";
        push(found, "owner-lapsed", says, todo);
        nobody(f, found);
    } else {
        let says = format!(
            "it runs at {name} (alive, up since {}), at {} since {}",
            owner.since.rfc3339(),
            place(f),
            f.progressed_at.rfc3339()
        );
        let todo = "wait for its call to end; if it hangs, the step's time limit is too long: stop that process";
        push(found, "running", says, todo);
    }
}

/// Its own clock and target.
fn parked(f: &Facts, found: &mut Vec<Reason>) {
    if f.expires_at <= f.now {
        let says = format!("its lifetime was over at {}", f.expires_at.rfc3339());
        let todo =
            "it becomes disabled when a retry node looks at it; then `tx restore --lifetime …`";
        push(found, "lifetime-over", says, todo);
    }
    if let Some(target) = &f.waiting_on {
        let says = format!(
            "it waits for the target {target:?}, which did not work; a few probe it, and no attempt is used up"
        );
        let todo = "repair the target; `tx retry` tries this one now";
        push(found, "target-down", says, todo);
    }
    let Some(due) = f.due_at else { return };
    if due > f.now {
        let left = span(due.since(f.now));
        let (code, says, todo) = if f.paused || f.attempts > 0 {
            let said = f.said.as_deref().unwrap_or("no reason was told");
            let says = format!(
                "not due yet: next try at {} (in {left}), after {} failed at {}: {said}",
                due.rfc3339(),
                f.attempts,
                place(f)
            );
            ("not-due", says, "wait, or `tx retry` to try it now")
        } else {
            let says = format!(
                "{} waits for a timer, a signal or another transaction, at the latest until {} (in {left})",
                place(f),
                due.rfc3339()
            );
            let todo = "`tx signal` if it waits for one; otherwise wait";
            ("waits", says, todo)
        };
        return push(found, code, says, todo);
    }
    if f.waiting_on.is_some() || f.able == 0 {
        return;
    }
    let late = f.now.since(due);
    let (code, says, todo) = if late < AT_ONCE {
        let says = "it is due and is taken at the next poll".to_owned();
        ("due-now", says, "wait a second")
    } else if late < Timing::default().overdue_after {
        let says = format!(
            "due for {}: the owner of its range has not taken it (full, late, or the range is frozen)",
            span(late)
        );
        let todo = "wait: after 10 s any retry node sweeps it, whatever the ring says; `ringsaga ring owner` shows whose it is";
        ("due", says, todo)
    } else {
        let says = format!(
            "overdue for {}: its range belongs to nobody or its owner can't keep up, and the sweepers have not come to it",
            span(late)
        );
        let todo = "look at `ringsaga ring status` and the retry nodes' load; add retry nodes; oldest due goes first";
        ("overdue", says, todo)
    };
    push(found, code, says, todo);
}

/// Who could run it.
fn nobody(f: &Facts, found: &mut Vec<Reason>) {
    let what = format!("{} v{}", f.saga, f.version);
    if f.living == 0 {
        let says = "no process of its service lives in this region and cluster".to_owned();
        let todo = "start the service; when the region is lost for good: `tx rehome`";
        push(found, "no-process", says, todo);
    } else if f.retry_nodes == 0 {
        let says = format!(
            "{} processes of its service live here, none is a retry node",
            f.living
        );
        push(
            found,
            "no-retry-node",
            says,
            "set `retry_node = true` on some of them",
        );
    } else if f.able == 0 {
        let says = if f.able_elsewhere > 0 {
            format!("executor missing: only processes that are no retry nodes can run {what}")
        } else {
            format!(
                "executor missing: none of {} retry nodes can run {what}; it keeps its place and uses up no attempt",
                f.retry_nodes
            )
        };
        let todo = "deploy a retry node with this saga and version, with the same definition";
        push(found, "executor-missing", says, todo);
    }
}

/// Whether it is thought to kill processes.
fn dangerous(f: &Facts, found: &mut Vec<Reason>) {
    if f.deaths < ring_core::store::SUSPECT_FROM {
        return;
    }
    let says = format!(
        "{} processes died while they ran it: it is a suspect and runs alone, one at a time a process",
        f.deaths
    );
    let todo = "find why processes die at this step; at 5 deaths it is quarantined";
    push(found, "suspect", says, todo);
    if f.able > 0 && f.busy >= f.able {
        let says = format!(
            "all {} processes that can run it run another suspect now",
            f.able
        );
        push(
            found,
            "suspects-first",
            says,
            "wait for those, or quarantine what hangs",
        );
    }
}

/// What is good to know besides.
fn besides(f: &Facts, found: &mut Vec<Reason>) {
    if f.cancelled && f.direction == Direction::Forward && !f.state.is_settled() {
        let says = "it was cancelled: it is undone at the next step's boundary".to_owned();
        push(found, "cancelled", says, "nothing");
    }
    let ended = matches!(f.state, State::Completed | State::Compensated);
    if f.doubt && !ended && f.state != State::Running {
        let says = format!("{} may have been applied", place(f));
        let todo = "look there before you restore, skip or close it; `tx restore --not-applied` when it was not";
        push(found, "in-doubt", says, todo);
    }
    if let Some(policy) = &f.retry {
        let says = format!("an operator gave it a retry policy of its own: {policy}");
        push(
            found,
            "own-policy",
            says,
            "`tx policy --reset` takes it away",
        );
    }
    if let Some(deed) = &f.last_deed {
        push(
            found,
            "last-order",
            format!("an operator's last deed: {deed}"),
            "see `tx show`",
        );
    }
}

fn push(found: &mut Vec<Reason>, code: &'static str, says: String, todo: &'static str) {
    found.push(Reason { code, says, todo });
}

fn place(f: &Facts) -> String {
    let way = match f.direction {
        Direction::Forward => "step",
        Direction::Compensating => "the compensation of step",
    };
    match &f.step {
        Some(name) => format!("{way} {name:?}"),
        None => format!("{way} {}", f.seq),
    }
}

fn span(d: Duration) -> String {
    match d.as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    }
}

#[cfg(test)]
#[path = "reasons_tests.rs"]
mod tests;
