//! What was met, and the story of one universe for who reads a failure.

use alloc::{format, string::String, vec::Vec};

use super::world::World;
use crate::{
    saga::{Attempt, Direction, Kind, PlannedStep},
    store::{To, Write},
};

/// What a run that never meets proves nothing about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen(pub(super) [u32; 17]);

#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum Sight {
    Orphan,
    Zombie,
    Already,
    Woken,
    HandedBack,
    Stay,
    Skipped,
    DoubtInGroup,
    PauseNoted,
    Probed,
    Heard,
    Child,
    Blocked,
    Empty,
    Passed,
    Held,
    Restored,
}

impl Seen {
    fn add(&mut self, sight: Sight, n: u32) {
        self.0[sight as usize] += n;
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (mine, others) in self.0.iter_mut().zip(other.0) {
            *mine += others;
        }
    }
}

impl World {
    pub(super) fn looked_at(&mut self, write: &Write) {
        let grouped = write.entry.as_ref().is_some_and(|e| {
            self.setting.step(e.position.seq).group.is_some()
                && e.position.direction == Direction::Forward
        });
        let attempt = write.entry.as_ref().map(|e| &e.attempt);
        match attempt {
            Some(Attempt::Skipped) if grouped => self.see(Sight::Skipped),
            Some(Attempt::Refused { doubt: true, .. }) if grouped => {
                self.see(Sight::DoubtInGroup);
            }
            Some(Attempt::Paused { .. }) if write.to == To::Stay => self.see(Sight::PauseNoted),
            _ => {}
        }
        match write.to {
            To::Stay => self.see(Sight::Stay),
            To::HandBack { .. } => self.see(Sight::HandedBack),
            To::Next(_) | To::Park { .. } | To::Settle { .. } => {}
        }
    }

    pub(super) fn see(&mut self, sight: Sight) {
        self.seen.add(sight, 1);
    }

    pub(super) fn count(&mut self, sight: Sight, n: u32) {
        self.seen.add(sight, n);
    }

    /// What happened, for who reads a failure.
    pub(super) fn story(&self) -> String {
        let steps = self.setting.steps.iter().zip(0_u32..);
        let told = |(step, seq): (&PlannedStep, u32)| {
            let kind: &Kind = &step.kind;
            let guards = step.guards.iter().map(|g| (g.decision, g.case.as_str()));
            let guards: Vec<_> = guards.collect();
            format!(
                "{seq} {kind:?} {:?} {:?} group {:?} guards {guards:?} undo {} {:?} {:?}",
                step.recovery,
                step.repeat,
                step.group,
                step.compensate.is_some(),
                step.retry.attempts,
                self.setting.parts.get(&seq)
            )
        };
        let mut lines: Vec<String> = steps.map(told).collect();
        lines.push(format!("cancel {:?}", self.setting.cancel));
        lines.extend(self.story.iter().cloned());
        lines.push(format!("{:?}", self.participants));
        lines.join("\n")
    }
}
