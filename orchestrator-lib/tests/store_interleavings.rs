//! Sessions that meet on one row: every order of two, three where three matter, with cancelled
//! statements, ended backends, broken connections and lost answers between. After each schedule
//! the invariants are checked; a failure prints the schedule and how to replay it.
//!
//! `INTERLEAVING='<schedule>'` replays one; `INTERLEAVINGS=<n>` runs every n-th (1: all).

#![allow(
    clippy::print_stdout,
    reason = "who replays a schedule reads what happened"
)]

mod interleavings;
mod store_support;

use interleavings::{
    Ground, Tally, run,
    schedule::{self, Schedule},
    verb::Verb,
    world::World,
};
use orchestrator_lib::store::sql;
use store_support::Checked;

#[expect(
    clippy::disallowed_methods,
    reason = "a test's size is no configuration of the system"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The part of all schedules that fits a developer's patience, or the one to be replayed.
fn chosen(all: Vec<Schedule>, every: u64) -> Vec<Schedule> {
    if let Some(line) = variable("INTERLEAVING") {
        return vec![Schedule::parse(&line).expect("a schedule")];
    }
    let every = variable("INTERLEAVINGS").map_or(every, |n| n.parse().expect("a number"));
    all.into_iter().filter(|s| s.lot() % every == 0).collect()
}

fn sound(tally: &Tally, least: usize) {
    println!("{} schedules, {} with a meeting", tally.run, tally.met);
    let alone = variable("INTERLEAVING").is_some();
    if alone {
        println!("{}", tally.last);
    }
    assert!(tally.failures.is_empty(), "{}", tally.failures.concat());
    assert!(alone || tally.run >= least, "{} schedules", tally.run);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_on_one_row_keep_every_promise_in_any_order() -> Checked {
    let schedules = chosen(schedule::pairs(), 24);
    sound(&run(&schedules, &Ground::default(), 5).await?, 300);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_sessions_on_one_row_keep_every_promise_in_any_order() -> Checked {
    let schedules = chosen(schedule::triples(), 64);
    sound(&run(&schedules, &Ground::default(), 5).await?, 300);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_ended_and_cut_sessions_keep_every_promise() -> Checked {
    let all = schedule::pairs().into_iter().chain(schedule::triples());
    let schedules = chosen(all.map(Schedule::with_fault).collect(), 96);
    sound(&run(&schedules, &Ground::default(), 5).await?, 300);
    Ok(())
}

/// Whatever a database sets for its sessions, the store's are at READ COMMITTED: nobody hears of a
/// serialization failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_at_serializable_changes_nothing_for_the_store() -> Checked {
    let ground = Ground {
        settings: "do $$ begin execute format('alter database %I set \
            default_transaction_isolation = serializable', current_database()); end $$",
        ..Ground::default()
    };
    let tally = run(&chosen(schedule::pairs(), 128), &ground, 5).await?;
    sound(&tally, 100);
    assert_eq!(tally.conflicts, 0);
    Ok(())
}

/// Should a pooler or a later version set another level: serialization failures are conflicts or
/// asked again, and nothing is done twice.
async fn at_the_level(level: &str) -> Result<Tally, Box<dyn std::error::Error>> {
    let ground = Ground {
        rules: &[("'read committed'", level)],
        ..Ground::default()
    };
    let all = schedule::pairs().into_iter().chain(schedule::triples());
    let tally = run(&chosen(all.collect(), 256), &ground, 5).await?;
    assert!(tally.replaced > 0, "the level was never set");
    sound(&tally, 100);
    Ok(tally)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_repeatable_read_a_lost_race_is_a_value_or_a_conflict() -> Checked {
    let tally = at_the_level("'repeatable read'").await?;
    assert!(tally.conflicts > 0, "no race was ever lost at this level");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_serializable_a_lost_race_is_a_value_or_a_conflict() -> Checked {
    let tally = at_the_level("'serializable'").await?;
    assert!(tally.conflicts > 0, "no race was ever lost at this level");
    Ok(())
}

/// A statement without what makes it safe, and the schedules that are enough to notice.
struct Mutant {
    statement: &'static str,
    old: &'static str,
    new: &'static str,
    world: World,
    verbs: &'static [Verb],
}

impl Mutant {
    /// The suite's complaints about it.
    async fn noticed(&self) -> Result<String, Box<dyn std::error::Error>> {
        let text = sql::ALL.iter().find(|s| s.0 == self.statement);
        let text = text.ok_or("no such statement")?.1;
        assert!(
            text.contains(self.old),
            "{}: nothing to mutate",
            self.statement
        );
        let mutant = text.replace(self.old, self.new);
        let schedules = chosen(schedule::interleaved(self.world, self.verbs), 1);
        let ground = Ground {
            rules: &[(text, &mutant)],
            ..Ground::default()
        };
        let tally = run(&schedules, &ground, 1).await?;
        assert!(tally.replaced > 0, "{}: never sent", self.statement);
        println!("{}", tally.last);
        Ok(tally.failures.concat())
    }
}

#[tokio::test]
async fn the_suite_notices_a_write_without_its_fence() -> Checked {
    let mutant = Mutant {
        statement: "write",
        old: "t.id = l.id and t.epoch = l.epoch and t.nonce = l.nonce",
        new: "t.id = l.id",
        world: World::Dead,
        verbs: &[Verb::Next, Verb::ClaimOrphans],
    };
    let noticed = mutant.noticed().await?;
    assert!(noticed.contains("written under a later epoch"), "{noticed}");
    Ok(())
}

#[tokio::test]
async fn the_suite_notices_a_claim_that_does_not_look_again_under_the_lock() -> Checked {
    let mutant = Mutant {
        statement: "claim_due",
        old: "and t.service is not distinct from $4
        and t.state = 'paused' and t.waiting_on is null
        and t.due_at <= statement_timestamp()",
        new: "and t.service is not distinct from $4",
        world: World::Due,
        verbs: &[Verb::ClaimDue, Verb::ClaimOverdue],
    };
    let noticed = mutant.noticed().await?;
    assert!(noticed.contains("not parked"), "{noticed}");
    Ok(())
}

#[tokio::test]
async fn the_suite_notices_a_pause_that_overlooks_a_wake_up() -> Checked {
    let mutant = Mutant {
        statement: "write",
        old: "and (l.seen is null or t.wake_seq = l.seen)",
        new: "",
        world: World::Running,
        verbs: &[Verb::Park, Verb::Wake],
    };
    let noticed = mutant.noticed().await?;
    assert!(noticed.contains("over a wake-up"), "{noticed}");
    Ok(())
}

/// Lab P1: a guard that reads and locks nothing lets the zombie's record in beside the new owner.
#[tokio::test]
async fn the_suite_notices_a_record_that_is_not_fed_by_its_guard() -> Checked {
    let mutant = Mutant {
        statement: "write",
        old: "    from moved
    where step is not null and not replaces",
        new: "    from line l
    where step is not null and exists (select from ringsaga.transaction t
        where t.id = l.id and t.epoch = l.epoch and t.nonce = l.nonce)",
        world: World::Dead,
        verbs: &[Verb::Next, Verb::ClaimOrphans],
    };
    let noticed = mutant.noticed().await?;
    assert!(noticed.contains("a record without its write"), "{noticed}");
    Ok(())
}

#[tokio::test]
async fn the_suite_notices_a_renewal_that_raises_the_dead() -> Checked {
    let mutant = Mutant {
        statement: "owner_renew",
        old: "where incarnation = $1 and dead_at is null",
        new: "where incarnation = $1",
        world: World::Late,
        verbs: &[Verb::Renew, Verb::Bury],
    };
    let noticed = mutant.noticed().await?;
    assert!(noticed.contains("the dead came back"), "{noticed}");
    Ok(())
}

#[tokio::test]
async fn the_suite_notices_a_restore_of_what_nobody_saw() -> Checked {
    let mutant = Mutant {
        statement: "op_restore",
        old: "and seen.epoch = $4 and case $7
        when 'restore' then seen.state in ('disabled', 'terminated', 'quarantined')",
        new: "and $4::bigint is not null and case $7
        when 'restore' then true",
        world: World::Terminated,
        verbs: &[Verb::Restore, Verb::Restore],
    };
    let noticed = mutant.noticed().await?;
    assert!(noticed.contains("ordered what"), "{noticed}");
    Ok(())
}
