//! Sessions that meet on one row, in every order: each verb of the store is held where its
//! snapshot is taken and nothing is locked, and where everything is changed and nothing committed.
//!
//! Read [`schedule`] first (what can be written down and replayed), then [`lane`] (how it is run),
//! then [`check`] and [`effects`] (what must hold).
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::unwrap_used,
    reason = "a test names what it expects and fails at anything else"
)]

pub(crate) mod answers;
pub(crate) mod check;
mod children;
mod dropped;
pub(crate) mod effects;
pub(crate) mod history;
pub(crate) mod lane;
mod neighbours;
pub(crate) mod schedule;
mod standby;
mod texts;
pub(crate) mod verb;
pub(crate) mod wire;
pub(crate) mod world;

use std::fmt::Write as _;

use lane::{Fallible, Lane, Seen};
use schedule::Schedule;
use wire::Rules;

/// Sessions of different lanes share two cores.
const LANES: usize = 4;

/// On what schedules run; the default is a store as it is shipped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ground<'a> {
    /// Statements changed on their way: old text, new text.
    pub(crate) rules: &'a [(&'a str, &'a str)],
    /// SQL for the database, before any session connects.
    pub(crate) settings: &'a str,
}

/// What a batch of schedules came to.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) run: usize,
    pub(crate) failures: Vec<String>,
    /// The last schedule, whatever became of it: for who replays one.
    pub(crate) last: String,
    pub(crate) replaced: u64,
    /// How often a session stood behind another's row or key, or lost: schedules in which nobody
    /// ever meets anybody prove nothing.
    pub(crate) met: usize,
    /// Sessions that heard of a conflict.
    pub(crate) conflicts: usize,
}

/// Runs schedules on a few lanes; `enough` failures end it early.
pub(crate) async fn run(
    schedules: &[Schedule],
    ground: &Ground<'_>,
    enough: usize,
) -> Fallible<Tally> {
    let rules = ground.rules.iter();
    let rules = rules.map(|(old, new)| ((*old).to_owned(), (*new).to_owned()));
    let rules = Rules::new(rules.collect());
    let share = schedules.len().div_ceil(LANES).max(1);
    let lanes = schedules
        .chunks(share)
        .map(|part| run_lane(part, rules.clone(), ground.settings, enough));
    let mut sum = Tally::default();
    for tally in futures_util::future::try_join_all(lanes).await? {
        sum.run += tally.run;
        sum.failures.extend(tally.failures);
        sum.replaced += tally.replaced;
        sum.met += tally.met;
        sum.conflicts += tally.conflicts;
        sum.last = tally.last;
    }
    Ok(sum)
}

async fn run_lane(
    part: &[Schedule],
    rules: Rules,
    settings: &str,
    enough: usize,
) -> Fallible<Tally> {
    let mut lane = Lane::new(rules, settings).await?;
    let mut tally = Tally::default();
    for schedule in part {
        let seen = lane.run(schedule).await?;
        let broken = check::broken(&seen, schedule.world, schedule.fault.is_some());
        tally.run += 1;
        tally.met += usize::from(
            seen.table
                .iter()
                .any(|line| line.contains("Blocked") || line.contains("Busy")),
        );
        let errors = seen
            .sessions
            .iter()
            .filter_map(|s| s.answer.as_ref()?.error());
        tally.conflicts += errors.filter(|error| error.is_conflict()).count();
        tally.last = story(schedule, &seen, &broken);
        if !broken.is_empty() {
            tally.failures.push(tally.last.clone());
        }
        lane.clear(&seen.sessions).await?;
        if tally.failures.len() >= enough {
            break;
        }
    }
    tally.replaced = lane.replaced();
    lane.close().await;
    Ok(tally)
}

/// A schedule as a person reads and replays it.
fn story(schedule: &Schedule, seen: &Seen, broken: &[String]) -> String {
    let mut text = format!("\n{schedule}\n  replay: INTERLEAVING='{schedule}'\n");
    for line in broken {
        writeln!(text, "  BROKEN {line}").unwrap();
    }
    writeln!(text, "  turn  deed         then").unwrap();
    for line in &seen.table {
        writeln!(text, "  {line}").unwrap();
    }
    for session in &seen.sessions {
        let answer = session.answer.as_ref().map(verb::Answer::word);
        let (name, verb) = (session.actor.name, session.verb.word());
        writeln!(
            text,
            "  {name} {verb} answered {}",
            answer.unwrap_or_default()
        )
        .unwrap();
    }
    for change in &seen.history.changes {
        let shown = [
            "state",
            "seq",
            "epoch",
            "last_write",
            "wake_seq",
            "due_at",
            "outcome",
            "dead_at",
        ];
        let columns = shown.iter().filter(|c| change.new.has(c));
        let columns: Vec<_> = columns
            .map(|c| format!("{c}={}", change.new.0[*c]))
            .collect();
        writeln!(
            text,
            "  {} {} {}",
            change.session,
            change.kind,
            columns.join(" ")
        )
        .unwrap();
    }
    text
}
