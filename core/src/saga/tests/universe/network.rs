//! The network and the processes: what is lost, doubled, late or held back, and who dies.

use core::time::Duration;

use super::{
    seen::Sight,
    world::{Event, World},
};
use crate::{
    saga::{Asked, Call, Class, Hold, Input, Outcome, State, Text},
    store::Write,
};

/// A dead owner's row is claimed after this.
const LEASE: u64 = 6_000;

impl World {
    pub(super) fn call(&mut self, by: u64, call: Call) {
        let after = 1 + self.draw.below(300);
        if call.asked == Asked::Probe {
            self.see(Sight::Probed);
        }
        if self.faulty(4) {
            self.see(Sight::Held);
            let by_what = if self.draw.percent(50) {
                Hold::Lease
            } else {
                let (target, after) = ("bank".into(), Duration::from_millis(300));
                Hold::Target { target, after }
            };
            let (call, by_what) = (call.call, by_what);
            return self.reply(by, Input::Held { call, by: by_what });
        }
        let number = call.call;
        let lost = self.faulty(6);
        if lost {
            let outcome = Outcome::Failed {
                class: Class::Unknown,
                error: Text::new("no answer"),
                retry_after: None,
            };
            let limit = u64::try_from(call.time_limit.as_millis()).unwrap();
            let input = Input::Returned {
                call: number,
                outcome,
            };
            self.after(limit, Event::Tell { by, input });
        }
        if self.faulty(4) {
            // Doubled, and long after.
            let late = self.draw.below(60_000);
            self.after(late, Event::Again(call.clone()));
        }
        let late = if lost { self.draw.below(60_000) } else { 0 };
        let heard = !lost;
        self.after(after + late, Event::Call { by, call, heard });
    }

    pub(super) fn send(&mut self, by: u64, write: Write) {
        let after = 1 + self.draw.below(20);
        if self.faulty(5) {
            // The request or its answer is lost: it may be committed, now or later.
            let number = write.number;
            if self.draw.percent(60) {
                let (after, heard) = (self.draw.below(500), false);
                self.after(after, Event::Write { by, write, heard });
            }
            let input = Input::Unreachable { number };
            return self.after(after, Event::Tell { by, input });
        }
        if self.faulty(5) {
            let (write, heard) = (write.clone(), false);
            self.after(after, Event::Write { by, write, heard });
        }
        let heard = true;
        self.after(after, Event::Write { by, write, heard });
    }

    /// Something that happens to a process, not to a message.
    pub(super) fn misfortune(&mut self) {
        if self.process.is_none() || self.row.due.is_some() || !self.faulty(2) {
            return;
        }
        match self.draw.below(4) {
            0 => {
                self.tell(Input::Drained);
                if self.draw.percent(30) {
                    self.tell(Input::CallsEnded);
                }
            }
            1 => self.tell(Input::CallsEnded),
            _ => {
                self.process = None;
                if self.row.state == State::Running {
                    self.row.orphaned = true;
                    self.row.due = Some(self.now + LEASE);
                }
            }
        }
    }

    fn faulty(&mut self, percent: u64) -> bool {
        let happens = self.faults > 0 && self.draw.percent(percent);
        self.faults -= u32::from(happens);
        happens
    }
}
