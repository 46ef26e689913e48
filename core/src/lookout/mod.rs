//! When a retry node looks into the store for transactions, and for how many.
//!
//! Its own ranges are polled at once when they change, then at a steady pace; the safety net
//! (owned by the dead, overdue) sweeps the whole ring whatever the ring says. Never more is asked
//! for than can start. It refuses to know rows, SQL and where the ranges come from.

mod due;
mod health;
mod more;
mod port;
mod waiting;

use alloc::{collections::BTreeMap, vec, vec::Vec};
use due::Due;
use health::Pulse;
use more::LINGER;
pub use port::{Input, Order};
use waiting::Waiting;

use crate::{
    breaker::MOST_TARGETS,
    machine::Machine,
    store::{Backlog, Look},
    time::{Mono, Now, Wake},
    timing::Timing,
    token::Range,
    wire::Health,
};

/// Most rows of one look: a page that Postgres locks and returns within milliseconds.
pub const PAGE: u32 = 64;

/// While own ranges are polled, the safety net gets at most this part of all slots: what it finds
/// is rare then, and the ring's work comes first.
const SWEEP_SHARE: u32 = 8;

/// A look for transactions whose target works again gets at most this part of all slots: other
/// work goes on.
const WAITING_SHARE: u32 = 4;

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookout {
    timing: Timing,
    retry_node: bool,
    /// For the jitter.
    seed: u64,
    ranges: Vec<Range>,
    free: u32,
    total: u32,
    startable: bool,
    draining: bool,
    /// Suspects that run here.
    suspects: u32,
    /// Which rows the next look for a suspect is among.
    suspect_turn: Turn,
    waiting: Waiting,
    due: Due,
    /// Kinds of which a full page was found, and when they are looked for again at the latest.
    more: BTreeMap<Kind, Mono>,
    /// Looks under way: their limits are spoken for.
    open: BTreeMap<u32, Open>,
    looks: u32,
    /// What the answer being handled took: gone, though the slots told don't say so yet.
    taken: Taken,
    pulse: Pulse,
}

/// Forgotten when the answer is handled: slots and suspects are facts of the node, told again
/// when they change, and counting along here would drift from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    rows: u32,
    suspect: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Open {
    kind: Kind,
    limit: u32,
    waiting: Option<waiting::Turn>,
}

/// One look of a kind is under way at a time, so at most five in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Due,
    Orphans,
    Overdue,
    Waiting,
    Suspect,
}

/// Looks for a suspect take turns over the branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Due,
    Orphans,
    Overdue,
}

impl Lookout {
    /// Looks for nothing until it has slots and a lease. A node that is no retry node never does.
    #[must_use]
    pub fn new(timing: Timing, retry_node: bool, seed: u64) -> Self {
        Self {
            timing,
            retry_node,
            seed,
            ranges: Vec::new(),
            free: 0,
            total: 0,
            startable: false,
            draining: false,
            suspects: 0,
            suspect_turn: Turn::Due,
            waiting: Waiting::default(),
            due: Due::default(),
            more: BTreeMap::new(),
            open: BTreeMap::new(),
            looks: 0,
            taken: Taken::default(),
            pulse: Pulse::default(),
        }
    }

    /// For heartbeats.
    #[must_use]
    pub fn health(&self, now: Mono) -> Health {
        self.pulse.health(now, self.timing.owner_lease)
    }

    /// Whether anything may be looked for at all.
    fn awake(&self) -> bool {
        self.retry_node && self.startable && !self.draining
    }

    /// Slots that no look under way has spoken for.
    fn spare(&self) -> u32 {
        let spoken: u32 = self.open.values().map(|o| o.limit).sum();
        self.free
            .saturating_sub(spoken)
            .saturating_sub(self.taken.rows)
    }

    /// The safety net's part.
    fn sweep_limit(&self) -> u32 {
        if self.ranges.is_empty() {
            return self.spare().min(PAGE);
        }
        let share = (self.total / SWEEP_SHARE).max(1);
        let swept = |o: &&Open| matches!(o.kind, Kind::Orphans | Kind::Overdue);
        let spoken: u32 = self.open.values().filter(swept).map(|o| o.limit).sum();
        self.spare().min(share.saturating_sub(spoken)).min(PAGE)
    }

    /// What waits for a target gets at most this, however many there are.
    fn most_waiting(&self) -> u32 {
        (self.total / WAITING_SHARE).max(1)
    }

    fn is_open(&self, kind: Kind) -> bool {
        self.open.values().any(|o| o.kind == kind)
    }

    /// Everything that the time asks for and the slots allow.
    fn act(&mut self, now: Mono, out: &mut Vec<Order>) {
        if !self.awake() || self.pulse.resting(now) {
            return;
        }
        // The safety net first: it takes little, and behind a busy ring it would starve.
        if self.due.sweep_at <= now && self.spare() > 0 {
            self.due.swept(now, self.seed, self.timing.sweep);
            self.suspect(out);
            self.sweep(out);
        }
        self.sweep_more(now, out);
        self.look_for_waiting(now, out);
        let poll = self.due.poll_at <= now || self.is_time_for_more(Kind::Due, now);
        if poll && !self.ranges.is_empty() && self.spare() > 0 {
            self.poll(now, out);
        }
    }

    fn poll(&mut self, now: Mono, out: &mut Vec<Order>) {
        let waits = self.waiting.any() || self.is_open(Kind::Waiting);
        let kept = if waits { self.most_waiting() } else { 0 };
        // With a single slot the ring's work goes first, and what waits comes after it.
        let limit = self
            .spare()
            .saturating_sub(kept)
            .max(1)
            .min(self.spare())
            .min(PAGE);
        if limit > 0 && !self.is_open(Kind::Due) {
            self.more.remove(&Kind::Due);
            self.due.polled(now, self.seed, self.timing.poll);
            let ranges = self.ranges.clone();
            self.look(Kind::Due, Look::Due { ranges }, limit, out);
        }
    }

    /// One target in turn.
    fn look_for_waiting(&mut self, now: Mono, out: &mut Vec<Order>) {
        let spare = self.spare();
        if spare == 0 || self.is_open(Kind::Waiting) {
            return;
        }
        let Some(mut turn) = self.waiting.next(now) else {
            return;
        };
        turn.beyond |= self.ranges.is_empty();
        let ranges = if turn.beyond {
            vec![Range::RING]
        } else {
            self.ranges.clone()
        };
        let limit = turn.room.min(self.most_waiting()).min(spare).min(PAGE);
        let look = Look::Waiting {
            target: turn.target.as_str().into(),
            ranges,
        };
        self.look(Kind::Waiting, look, limit, out);
        if let Some(open) = self.open.get_mut(&self.looks) {
            open.waiting = Some(turn);
        }
    }

    /// Both kinds share the limit; with a limit of one they take turns.
    fn sweep(&mut self, out: &mut Vec<Order>) {
        let by = self.timing.overdue_after;
        let mut kinds = [
            (Kind::Orphans, Look::Orphans),
            (Kind::Overdue, Look::Overdue { by }),
        ];
        if self.due.odd_sweep() {
            kinds.reverse();
        }
        let limit = self.sweep_limit();
        for ((kind, rows), part) in kinds.into_iter().zip([limit.div_ceil(2), limit / 2]) {
            if part > 0 && !self.is_open(kind) {
                self.more.remove(&kind);
                self.look(kind, rows, part, out);
            }
        }
    }

    /// One look for one suspect a sweep, over the branches in turn, while none runs here.
    fn suspect(&mut self, out: &mut Vec<Order>) {
        if self.suspects > 0 || self.taken.suspect || self.is_open(Kind::Suspect) {
            return;
        }
        let by = self.timing.overdue_after;
        let ranges = self.ranges.clone();
        let (next, rows) = match self.suspect_turn {
            Turn::Due => (Turn::Orphans, Look::Due { ranges }),
            Turn::Orphans => (Turn::Overdue, Look::Orphans),
            Turn::Overdue => (Turn::Due, Look::Overdue { by }),
        };
        let nowhere = self.suspect_turn == Turn::Due && self.ranges.is_empty();
        self.suspect_turn = next;
        if !nowhere {
            self.look(Kind::Suspect, rows, 1, out);
        }
    }

    fn look(&mut self, kind: Kind, rows: Look, limit: u32, out: &mut Vec<Order>) {
        self.looks = self.looks.wrapping_add(1);
        let open = Open {
            kind,
            limit,
            waiting: None,
        };
        self.open.insert(self.looks, open);
        out.push(Order {
            look: self.looks,
            rows,
            limit,
            suspects: kind == Kind::Suspect,
        });
    }

    fn looked(&mut self, now: Mono, look: u32, claimed: u32, backlog: Option<Backlog>) {
        let Some(open) = self.open.remove(&look) else {
            return;
        };
        self.taken = Taken {
            rows: claimed,
            suspect: open.kind == Kind::Suspect && claimed > 0,
        };
        self.pulse.answered(now, open.kind == Kind::Due, backlog);
        let full = claimed >= open.limit;
        match open.kind {
            Kind::Due | Kind::Orphans | Kind::Overdue if full => {
                self.more.insert(open.kind, now.plus(LINGER));
            }
            Kind::Due | Kind::Orphans | Kind::Overdue | Kind::Waiting | Kind::Suspect => {}
        }
        if let Some(turn) = open.waiting {
            let rest = self.timing.sweep;
            self.waiting.looked(now, &turn, claimed, rest);
        }
    }

    /// Whether the look was open.
    fn not_looked(&mut self, look: u32) -> bool {
        self.open.remove(&look).is_some()
    }

    fn ranges_changed(&mut self, now: Mono, ranges: Vec<Range>) {
        if self.ranges != ranges {
            self.ranges = ranges;
            self.due.poll_at = now;
        }
    }
}

impl Machine for Lookout {
    type Input = Input;
    type Order = Order;

    fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Order>) {
        let now = now.mono;
        match input {
            Input::RangesChanged(ranges) => self.ranges_changed(now, ranges),
            Input::Slots { free, total } => {
                self.free = free;
                self.total = total;
            }
            Input::Suspects(running) => self.suspects = running,
            Input::Waiting(rooms) => self.waiting.told(rooms, MOST_TARGETS),
            Input::Lease { startable } => self.startable = startable,
            Input::Looked {
                look,
                claimed,
                backlog,
            } => self.looked(now, look, claimed, backlog),
            Input::NotAsked { look } => {
                self.not_looked(look);
            }
            Input::Unreachable { look } => {
                if self.not_looked(look) {
                    self.pulse.failed(now, self.seed);
                }
            }
            Input::Drained => self.draining = true,
            Input::Woke => {}
        }
        self.pulse.may_start(now, self.startable || self.draining);
        self.act(now, out);
        self.taken = Taken::default();
    }

    fn wake_at(&self) -> Wake {
        let mut wake = Wake::NEVER;
        if !self.awake() || self.spare() == 0 {
            return wake;
        }
        if !self.ranges.is_empty() && !self.is_open(Kind::Due) {
            wake.at_mono(self.pulse.no_sooner(self.due.poll_at), "poll");
        }
        wake.at_mono(self.pulse.no_sooner(self.due.sweep_at), "sweep");
        for (kind, by) in &self.more {
            if !self.is_open(*kind) && (*kind != Kind::Due || !self.ranges.is_empty()) {
                wake.at_mono(self.pulse.no_sooner(*by), "more");
            }
        }
        if !self.is_open(Kind::Waiting) {
            self.waiting.wake(&mut wake, |at| self.pulse.no_sooner(at));
        }
        wake
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod generated;
