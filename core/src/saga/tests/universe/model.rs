//! The reference model: from a setting alone, which ends a transaction may come to and which
//! actions it may apply. Without writes, claims, doubts or machines.
//!
//! Where the answer depends on who is faster (a signal and its deadline, a cancel and the last
//! step, two failures of one group, a death and a record), all ends that are legal are given; else
//! it is one.

use alloc::{collections::BTreeSet, format, vec, vec::Vec};

use super::generate::Setting;
use crate::saga::{Kind, PlannedStep, Recovery, Repeat, State, tests::bench::json};

#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    pub(super) ends: BTreeSet<State>,
    /// What is applied at the end, when it completes.
    pub(super) applied: BTreeSet<u32>,
    /// Steps that must never be called.
    pub(super) passed: BTreeSet<u32>,
}

/// What may become of an action.
#[derive(Clone, Copy, Default)]
struct May {
    succeed: bool,
    go_back: bool,
    stop: bool,
}

pub(super) fn expect(setting: &Setting) -> Expected {
    let mut expected = Expected::default();
    let open: Vec<u32> = (0..).take(setting.steps.len()).collect();
    let (open, passed) = open.into_iter().partition(|seq| passes(setting, *seq));
    expected.passed = BTreeSet::from_iter::<Vec<u32>>(passed);
    let open: Vec<u32> = open;
    let effects = |seq: &u32| matches!(setting.step(*seq).kind, Kind::Action | Kind::Saga);
    expected.applied = open.iter().copied().filter(effects).collect();
    let groups = grouped(setting, &open);
    if setting.cancel == Some(0) {
        // Nothing is called; after a death the first ones may have been, for all that is known.
        let doubtful = groups.first().filter(|_| setting.faulty);
        let never = |seq: &u32| setting.step(*seq).repeat == Repeat::Never;
        if doubtful.is_some_and(|group| group.iter().any(never)) {
            expected.ends.insert(State::Terminated);
        }
        back(
            setting,
            &[],
            doubtful.map_or(&[], Vec::as_slice),
            &mut expected.ends,
        );
        return expected;
    }
    let mut done = vec![];
    for group in groups {
        let may: Vec<May> = group.iter().map(|seq| may(setting, *seq)).collect();
        let cancelled = setting.cancel.is_some();
        if cancelled || may.iter().any(|m| m.go_back) {
            back(setting, &done, &group, &mut expected.ends);
        }
        if may.iter().any(|m| m.stop) {
            expected.ends.insert(State::Terminated);
        }
        if may.iter().any(|m| !m.succeed) {
            return expected;
        }
        done.extend(group);
    }
    expected.ends.insert(State::Completed);
    if setting.cancel.is_some() {
        back(setting, &done, &[], &mut expected.ends);
    }
    expected
}

fn passes(setting: &Setting, seq: u32) -> bool {
    setting.step(seq).guards.iter().all(|guard| {
        let case = setting.part(guard.decision).case;
        passes(setting, guard.decision) && guard.case == json(&format!("{case}"))
    })
}

fn grouped(setting: &Setting, open: &[u32]) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = vec![];
    for seq in open {
        let group = |seq: u32| setting.step(seq).group;
        match groups.last_mut() {
            Some(last) if group(last[0]).is_some() && group(last[0]) == group(*seq) => {
                last.push(*seq);
            }
            _ => groups.push(vec![*seq]),
        }
    }
    groups
}

fn may(setting: &Setting, seq: u32) -> May {
    let (step, part) = (setting.step(seq), setting.part(seq));
    let sure = May {
        succeed: true,
        ..May::default()
    };
    let refused = May {
        go_back: true,
        ..May::default()
    };
    match &step.kind {
        Kind::Decide | Kind::Timer(_) => sure,
        Kind::Saga if part.refuse.is_some() => refused,
        Kind::Saga => sure,
        Kind::Signal { within, otherwise } => {
            let awaited = within.is_none_or(|w| w.as_secs() > 60) || part.signal == Some(0);
            match (part.signal, otherwise) {
                (_, Some(_)) => sure,
                (Some(_), None) if awaited => sure,
                (Some(_), None) => May {
                    succeed: true,
                    ..refused
                },
                (None, None) => refused,
            }
        }
        Kind::Action => action(setting, step, seq),
    }
}

fn action(setting: &Setting, step: &PlannedStep, seq: u32) -> May {
    let part = setting.part(seq);
    let faulty = setting.faulty;
    let patient = step.recovery == Recovery::ForwardOnly;
    let attempts = step.retry.attempts.filter(|_| !patient);
    let spent = attempts.is_some_and(|most| part.flaky >= most);
    let first = step.recovery == Recovery::BackwardFirst && part.flaky > 0;
    let limited = attempts.is_some() || step.recovery == Recovery::BackwardFirst;
    let fails = part.refuse.is_some() || spent || first;
    // A fault is one more failure, or one that the participant never counted.
    let unsure = faulty && (limited || step.recovery == Recovery::Irreversible);
    let never = faulty && (step.repeat == Repeat::Never || step.recovery == Recovery::Irreversible);
    // Signals and cancels cut pauses short but use up nothing; a group's failure ends a member.
    let fails_somehow = fails || unsure;
    let stops = step.recovery == Recovery::Irreversible;
    May {
        succeed: !fails || (faulty && part.refuse.is_none()),
        go_back: fails_somehow && !stops,
        stop: (fails_somehow && stops) || never,
    }
}

/// Ends of a way back: over what is done for certain, and what of the open group may be.
fn back(setting: &Setting, done: &[u32], group: &[u32], ends: &mut BTreeSet<State>) {
    let halts = |seq: &&u32| {
        let step = setting.step(**seq);
        let effects = matches!(step.kind, Kind::Action | Kind::Saga);
        let irreversible = step.compensate.is_none() && step.recovery == Recovery::Irreversible;
        effects && (irreversible || (step.compensate.is_some() && setting.part(**seq).stuck))
    };
    let certain = done.iter().any(|seq| halts(&seq));
    if certain || group.iter().any(|seq| halts(&seq)) {
        ends.insert(State::Terminated);
    }
    if !certain {
        ends.insert(State::Compensated);
    }
}
