//! When a window is cut, that it is stored before it is published, and that it is never cut twice.
//!
//! It refuses to know how a ring is divided ([`super::seats`]), what is said about a cut
//! ([`super::issue`]) and who may lead ([`super::lease`]).

use alloc::vec::Vec;

use super::{
    Master, Order, Phase,
    board::{Proposal, Standing},
    seats::{self, Candidate, Plan},
};
use crate::{
    id::Service,
    registry,
    time::{Mono, Now, Wake},
    window::{Cut, WindowNo},
};

impl Master {
    /// Cuts, stores and publishes whatever is due.
    pub(super) fn cut_what_is_due(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.is_clock_unsure(now) || self.is_clock_off(now) {
            return;
        }
        let current = self.current(now);
        self.board.keep_near(current);
        if !self.lead().is_some_and(|lead| lead.loaded) || self.ears.deaf_since.is_some() {
            return;
        }
        for window in [current, current.next()] {
            if self.may_still_be_cut(now, window) {
                self.propose(now, window);
            }
        }
        self.store(now, out);
    }

    /// From the cut's time on, until too little of the window is left to be worth a message.
    fn may_still_be_cut(&self, now: Now, window: WindowNo) -> bool {
        let timing = self.timing();
        let last = timing.ends(window).minus(2 * timing.guard);
        timing.cut_at(window) <= now.wall && now.wall < last
    }

    fn propose(&mut self, now: Now, window: WindowNo) {
        let heard = self
            .board
            .known
            .iter()
            .filter(|((n, _), known)| *n == window && known.standing == Standing::Heard);
        let mut cuts: Vec<Cut> = heard.map(|(_, known)| known.cut.clone()).collect();
        let services: Vec<Service> = self.board.services.keys().cloned().collect();
        for service in services {
            if self.is_free(now, &service, window) {
                cuts.extend(self.make(&service, window));
            }
        }
        for cut in cuts {
            let since = now.mono;
            self.board
                .proposed
                .entry((window, cut.service.clone()))
                .or_insert(Proposal { cut, since });
        }
    }

    /// Whether nobody cut this window, as far as can be heard, and the service's slaves had the
    /// time to report: otherwise the first that comes back would get the whole ring.
    fn is_free(&self, now: Now, service: &Service, window: WindowNo) -> bool {
        let key = (window, service.clone());
        let quiet = |since: Mono| now.mono.since(since) >= self.quiet();
        let board = &self.board;
        !board.known.contains_key(&key)
            && !board.proposed.contains_key(&key)
            && board.has_room(window)
            && board.reported.get(&key).is_none_or(|at| quiet(*at))
            && board.services.get(service).is_some_and(|at| quiet(*at))
    }

    fn make(&self, service: &Service, window: WindowNo) -> Option<Cut> {
        let term = self.lead()?.term;
        let live: Vec<Candidate> = self
            .roster
            .iter()
            .filter(|(_, m)| m.leaves_after.is_none_or(|last| last >= window))
            .map(|(id, m)| {
                let load = m.role.loads.get(service);
                let live = load.map_or(0, |load| load.live);
                let sick = load.map_or(0, |load| load.sick.min(load.live));
                Candidate {
                    slave: id.clone(),
                    boot: m.boot,
                    live,
                    // A slave that sits out because of its clock is as good as all sick.
                    sick: if m.role.clock_off { live } else { sick },
                }
            })
            .collect();
        let plan = Plan {
            service,
            window,
            term,
            balance: self.config.balance,
            before: self.board.before(service, window),
            live: &live,
        };
        let limit = self.timing().freeze_limit;
        seats::cut(plan, |seat| self.vanished.may_keep(seat, window, limit))
    }

    /// Orders proposals stored; publishes them unstored only when the registry stays away.
    fn store(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.config.alone {
            let cuts = core::mem::take(&mut self.board.proposed);
            self.stored(now, cuts.into_values().map(|p| p.cut).collect(), out);
            return;
        }
        self.publish_from_memory(now, out);
        let board = &mut self.board;
        if board.storing.is_some() || board.store_next > now.mono {
            return;
        }
        let memory = board.known.values();
        let memory = memory.filter(|known| known.standing == Standing::Memory);
        let mut cuts: Vec<Cut> = memory.map(|known| known.cut.clone()).collect();
        cuts.extend(board.proposed.values().map(|p| p.cut.clone()));
        if !cuts.is_empty() {
            board.storing = Some(now.mono);
            let keep = 3 * self.config.timing.len;
            out.push(Order::Registry(registry::Op::StoreCuts { cuts, keep }));
        }
    }

    /// A quarter of the lead is left to the registry; after that windows matter more.
    fn publish_from_memory(&mut self, now: Now, out: &mut Vec<Order>) {
        if self.lease.lost_since.is_none() || !self.has_majority(now) {
            return;
        }
        let patience = self.timing().lead / 4;
        let waited = |p: &Proposal| now.mono.since(p.since) >= patience;
        let late = self
            .board
            .proposed
            .extract_if(.., |_, proposal| waited(proposal));
        let late: Vec<Cut> = late.map(|(_, proposal)| proposal.cut).collect();
        for cut in late {
            self.issue(now, cut, Standing::Memory, out);
        }
    }

    /// The registry holds these now: mine, or older ones that I adopt. A repeat changes nothing.
    ///
    /// An answer without a cut that was to be stored means that what stands in its place can't be
    /// read, a newer program's perhaps. It is asked for again at leisure: an answer follows an
    /// order at once, so asking at once would never end.
    pub(super) fn stored(&mut self, now: Now, cuts: Vec<Cut>, out: &mut Vec<Order>) {
        let ordered = self.board.storing.take();
        for cut in cuts {
            let key = (cut.window, cut.service.clone());
            self.board.proposed.remove(&key);
            self.board.confirm(&cut);
            match self.board.known.get_mut(&key) {
                Some(known) if known.standing == Standing::Memory => {
                    known.standing = Standing::Confirmed;
                    // Slaves hold what was published, so that stays; the other one is counted.
                    let mine = known.cut.clone();
                    self.compare(now, &mine, &cut, out);
                }
                Some(known) if known.standing == Standing::Confirmed => {}
                Some(_) | None => self.issue(now, cut, Standing::Confirmed, out),
            }
        }
        if ordered.is_some_and(|at| self.board.is_unanswered(at)) {
            self.not_stored(now);
        }
    }

    /// The order to store was perhaps not done, or not for all of it; it is repeated, the same.
    pub(super) fn not_stored(&mut self, now: Now) {
        self.board.storing = None;
        self.board.store_next = now.mono.plus(self.timing().heartbeat);
    }

    /// The registry is back: what was published meanwhile is stored before anything else.
    pub(super) fn store_at_once(&mut self, now: Now) {
        self.board.store_next = now.mono;
    }

    /// A service whose last orchestrator is gone starts anew when one comes back.
    pub(super) fn forget_services_without_members(&mut self) {
        let roster = &self.roster;
        self.board.services.retain(|service, _| {
            let mut loads = roster.iter().filter_map(|(_, m)| m.role.loads.get(service));
            loads.any(|load| load.live > 0)
        });
    }

    /// Adds the deadlines of this file.
    pub(super) fn plan_cuts(&self, now: Now, wake: &mut Wake) {
        let Phase::Leading(_) = &self.phase else {
            return;
        };
        let timing = self.timing();
        let next = self.current(now).next();
        let cut_at = timing.cut_at(next);
        if cut_at > now.wall {
            wake.at_wall(cut_at, "the next window is cut");
        } else {
            wake.at_wall(timing.starts(next), "a window starts");
        }
        let board = &self.board;
        let settled = board.services.values().chain(board.reported.values());
        let settled = settled.map(|at| (at.plus(self.quiet()), "a service has settled"));
        let again = board.known.values().filter_map(|known| known.again);
        let again = again.map(|(_, at)| (at, "a window is published again"));
        let waiting = board.proposed.values();
        let waiting = waiting.map(|p| (p.since.plus(timing.lead / 4), "the registry had its time"));
        let store = (!board.proposed.is_empty()).then_some((board.store_next, "cuts are stored"));
        for (at, why) in settled.chain(again).chain(waiting).chain(store) {
            if at > now.mono {
                wake.at_mono(at, why);
            }
        }
    }
}
