//! One universe: a row, processes that die and drain, a network that loses, doubles and delays
//! whatever is sent, and whoever signals, cancels or ends a sub-saga.

use alloc::{format, string::String, sync::Arc, vec, vec::Vec};
use core::ops::Range;

use super::{
    generate::{Draw, Setting},
    mutants::Mutant,
    participants::Participants,
    row::Row,
    seen::{Seen, Sight},
};
use crate::{
    chance::Chance,
    machine::Machine,
    saga::{
        Call, Input, Order, Plan, State, Stopped, Text, Transaction, Wake,
        log::Log,
        tests::bench::{json, name, plan},
    },
    store::{Write, Written},
    time::{Mono, Now, Wall},
};

/// No wait is so long: whoever is claimed then was not woken.
const DAY: u64 = 86_400_000;

/// Nothing takes longer than this unless it never ends.
const MOST_EVENTS: u32 = 5_000;

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A call reaches its participant; `heard` says whether the answer comes back.
    Call {
        by: u64,
        call: Call,
        heard: bool,
    },
    /// A write reaches the store.
    Write {
        by: u64,
        write: Write,
        heard: bool,
    },
    /// Wake-ups are read.
    Hear {
        by: u64,
    },
    /// Something is told to the process of this epoch.
    Tell {
        by: u64,
        input: Input,
    },
    /// The same call once more, long after it was answered.
    Again(Call),
    Outside(Wake),
    ChildEnds(u32),
}

pub(super) struct World {
    pub(super) setting: Setting,
    pub(super) participants: Participants,
    pub(super) row: Row,
    pub(super) seen: Seen,
    pub(super) plan: Arc<Plan>,
    pub(super) mutant: Option<Mutant>,
    pub(super) draw: Draw,
    pub(super) now: u64,
    pub(super) queue: Vec<(u64, u64, Event)>,
    pub(super) sent: u64,
    pub(super) process: Option<Transaction>,
    pub(super) restored: bool,
    /// Faults that may still happen.
    pub(super) faults: u32,
    pub(super) story: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64, setting: Setting, mutant: Option<Mutant>) -> Self {
        let mut world = Self {
            plan: Arc::new(plan(setting.steps.clone())),
            participants: Participants::default(),
            row: Row::new(),
            seen: Seen::default(),
            mutant,
            draw: Draw(Chance::new(seed ^ 0x5a5a)),
            now: 0,
            queue: vec![],
            sent: 0,
            process: None,
            restored: false,
            faults: if setting.faulty { 6 } else { 0 },
            story: vec![],
            setting,
        };
        world.outside();
        world
    }

    fn outside(&mut self) {
        let mut all = vec![];
        for (seq, part) in &self.setting.parts {
            if let Some(at) = part.signal {
                let wake = Wake::Signal {
                    name: name(*seq),
                    body: json("\"yes\""),
                };
                all.push((at, wake));
            }
        }
        if let Some(at) = self.setting.cancel {
            let why = Text::new("changed my mind");
            all.push((at, Wake::Cancel { why }));
        }
        for (at, wake) in all {
            if at == 0 {
                self.wake(wake);
            } else {
                self.at(at, Event::Outside(wake));
            }
        }
    }

    fn wake(&mut self, wake: Wake) {
        let kept = self.mutant.is_none_or(|m| m.keeps(&wake, self.row.state));
        if kept {
            self.row.wake(self.now, wake);
            let (by, wake_seq) = (self.row.epoch, self.row.wake_seq);
            if self.process.is_some() && self.draw.percent(70) {
                // The renewal of the lease tells it.
                let input = Input::Woken { wake_seq };
                let after = self.draw.below(2_000);
                self.after(after, Event::Tell { by, input });
            }
        }
    }

    /// Runs until it is settled and everything that was under way has arrived.
    pub(super) fn run(&mut self) -> State {
        for _ in 0..MOST_EVENTS {
            if self.row.state == State::Terminated && !self.restored && self.setting.restored {
                self.restored = true;
                self.setting.repaired();
                self.row.restore(self.now);
                self.see(Sight::Restored);
            }
            if self.row.state.is_settled() && self.queue.is_empty() {
                return self.row.state;
            }
            self.once();
        }
        panic!("it does not end: {:?}", self.row);
    }

    fn once(&mut self) {
        let event = self.queue.iter().map(|(at, n, _)| (*at, *n)).min();
        let due = self.row.due.map(|due| due.max(self.now));
        let wakes = self
            .process
            .as_ref()
            .and_then(|tx| tx.wake_at().mono.map(|(at, _)| at.0.max(self.now)));
        let first = [event.map(|e| e.0), due, wakes].into_iter().flatten().min();
        let Some(first) = first else {
            panic!("nothing will ever happen: {:?}", self.row);
        };
        self.now = self.now.max(first);
        if let Some((at, n)) = event
            && at <= first
        {
            let index = self.queue.iter().position(|e| e.1 == n).unwrap();
            let (.., event) = self.queue.swap_remove(index);
            self.happens(event);
        } else if due.is_some_and(|due| due <= first) {
            self.claim();
        } else {
            self.tell(Input::Woke);
        }
        self.misfortune();
    }

    fn claim(&mut self) {
        if self.row.orphaned {
            self.see(Sight::Orphan);
        }
        assert!(self.now < DAY, "nobody woke it");
        let mut claimed = self.row.claim(self.now);
        if let Some(mutant) = self.mutant {
            mutant.claimed(&mut claimed);
        }
        self.story.push(format!("{} claim {claimed:?}", self.now));
        let tx = self.row.machine(&self.plan, claimed);
        self.process = Some(tx);
        self.tell(Input::Claimed);
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Call { by, call, heard } => {
                let (outcome, child) = self.participants.arrives(&self.setting, &call);
                if let Some(takes) = child {
                    self.after(takes, Event::ChildEnds(call.position.seq));
                }
                if heard {
                    let call = call.call;
                    self.reply(by, Input::Returned { call, outcome });
                }
            }
            Event::Again(call) => {
                if let Some(takes) = self.participants.again(&self.setting, &call) {
                    self.after(takes, Event::ChildEnds(call.position.seq));
                }
            }
            Event::Write { by, write, heard } => {
                let answer = self.perform(&write);
                if heard {
                    let number = write.number;
                    self.reply(by, Input::Written { number, answer });
                }
            }
            Event::Hear { by } => {
                self.see(Sight::Heard);
                let (wake_seq, wakes) = (self.row.wake_seq, self.row.wakes.clone());
                self.reply(by, Input::Heard { wake_seq, wakes });
            }
            Event::Tell { by, input } => {
                if by == self.row.epoch {
                    self.tell(input);
                }
            }
            Event::Outside(wake) => self.wake(wake),
            Event::ChildEnds(seq) => {
                if let Some(completes) = self.participants.child_ends(&self.setting, seq) {
                    self.see(Sight::Child);
                    let end = if completes {
                        Ok(json(&format!("{seq}")))
                    } else {
                        Err(Text::new("undone"))
                    };
                    let step = name(seq);
                    self.wake(Wake::Child { step, end });
                }
            }
        }
    }

    fn perform(&mut self, write: &Write) -> Written {
        let mut write = write.clone();
        if let Some(mutant) = self.mutant {
            mutant.write(&mut write, &self.row);
        }
        let answer = self.row.perform(self.now, &write);
        self.story
            .push(format!("{} {write:?} {answer:?}", self.now));
        match &answer {
            Written::Done { .. } => {
                self.looked_at(&write);
                let attempt = write.entry.as_ref().map(|e| (e.position.seq, &e.attempt));
                if let (Some(mutant), Some((seq, attempt))) = (self.mutant, attempt)
                    && mutant.calls(attempt)
                {
                    self.participants.acted.insert(seq);
                }
                // Recovery is replay: G1 and where it may stand are rules of the log.
                let open = self.row.at;
                Log::replay(&self.plan, &self.row.log, open).expect("no such history");
            }
            Written::Already { .. } => self.see(Sight::Already),
            Written::Woken { .. } => self.see(Sight::Woken),
            Written::Lost => self.see(Sight::Zombie),
            Written::Invalid(_) => {}
        }
        answer
    }

    pub(super) fn tell(&mut self, input: Input) {
        let Some(mut tx) = self.process.take() else {
            return;
        };
        let mut input = input;
        if let Some(mutant) = self.mutant {
            mutant.told(&mut input);
        }
        let now = Now {
            wall: Wall(i64::try_from(self.now).unwrap()),
            mono: Mono(self.now),
        };
        self.story.push(format!("{} told {input:?}", self.now));
        let mut orders = vec![];
        tx.handle(now, input, &mut orders);
        let by = tx.fence().epoch;
        let mut lives = true;
        for order in orders {
            lives &= self.obey(by, order);
        }
        if lives {
            self.process = Some(tx);
        }
    }

    fn obey(&mut self, by: u64, order: Order) -> bool {
        match order {
            Order::Call(call) => self.call(by, call),
            Order::Write(write) => self.send(by, write),
            Order::Hear => {
                let after = self.draw.below(200);
                self.after(after, Event::Hear { by });
            }
            Order::Abandon { .. } => {}
            Order::Stop(why) => {
                let wrong = matches!(
                    why,
                    Stopped::Unrunnable(_) | Stopped::Refused(_) | Stopped::Inconsistent(_)
                );
                assert!(!wrong, "{why:?}");
                return false;
            }
        }
        true
    }

    pub(super) fn reply(&mut self, by: u64, input: Input) {
        let after = 1 + self.draw.below(20);
        self.after(after, Event::Tell { by, input });
    }

    pub(super) fn after(&mut self, after: u64, event: Event) {
        self.at(self.now + after, event);
    }

    fn at(&mut self, at: u64, event: Event) {
        self.sent += 1;
        self.queue.push((at, self.sent, event));
    }

    /// The group where it stands.
    pub(super) fn open(&self) -> Range<u32> {
        self.plan.group(self.row.at.seq)
    }
}
