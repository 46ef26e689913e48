//! The lease, sentence by sentence.

use alloc::{vec, vec::Vec};

use uuid::Uuid;

use super::*;

const LEASE: Duration = Duration::from_secs(6);
const ONE: Incarnation = Incarnation(1);
const TWO: Incarnation = Incarnation(2);

/// A machine with a local clock; the database's clock reads the same plus a million.
struct Bench {
    owner: Owner,
    at: u64,
    skew: i64,
}

impl Bench {
    fn new() -> Self {
        let owner = Owner::new(LEASE, 7);
        Self {
            owner,
            at: 0,
            skew: 1_000_000,
        }
    }

    fn held() -> Self {
        let mut b = Self::new();
        assert_eq!(b.woke(0), [Order::Open]);
        assert_eq!(b.opened(0, ONE), []);
        b
    }

    fn check(&mut self, at: u64, input: Input) -> Vec<Order> {
        self.at = at;
        let now = Now {
            wall: Wall(0),
            mono: Mono(at),
        };
        let mut out = Vec::new();
        self.owner.handle(now, input, &mut out);
        out
    }

    fn woke(&mut self, at: u64) -> Vec<Order> {
        self.check(at, Input::Woke)
    }

    fn clock(&self, at: u64) -> Wall {
        Wall(i64::try_from(at).unwrap() + self.skew)
    }

    fn opened(&mut self, at: u64, incarnation: Incarnation) -> Vec<Order> {
        let clock = self.clock(at);
        let sent_at = Mono(at);
        self.check(
            at,
            Input::Opened {
                sent_at,
                incarnation,
                clock,
            },
        )
    }

    fn renewed(&mut self, sent: u64, at: u64, running: &[u128], known: &[u128]) -> Vec<Order> {
        let answer = Renewed::Held {
            clock: self.clock(sent),
            running: running.iter().map(|n| row(*n)).collect(),
            woken: vec![],
        };
        let known = known.iter().map(|n| Nonce(Uuid::from_u128(*n))).collect();
        let sent_at = Mono(sent);
        let incarnation = self.owner.incarnation().unwrap();
        self.check(
            at,
            Input::Renewed {
                sent_at,
                incarnation,
                answer,
                known,
            },
        )
    }

    fn dead(&mut self, at: u64, incarnation: Incarnation) -> Vec<Order> {
        let sent_at = Mono(at);
        let answer = Renewed::Dead;
        self.check(
            at,
            Input::Renewed {
                sent_at,
                incarnation,
                answer,
                known: vec![],
            },
        )
    }
}

fn row(n: u128) -> (TransactionId, Fence) {
    let fence = Fence {
        epoch: 1,
        nonce: Nonce(Uuid::from_u128(n)),
    };
    (TransactionId(Uuid::from_u128(n)), fence)
}

#[test]
fn a_lease_is_renewed_a_third_after_the_renewal_was_sent() {
    let mut b = Bench::held();
    assert_eq!(b.woke(1_999), []);
    assert_eq!(b.woke(2_000), [Order::Renew(ONE)]);
    assert_eq!(b.renewed(2_000, 2_900, &[], &[]), []);
    assert_eq!(b.owner.deadline(), Some(Mono(8_000)));
    assert_eq!(b.woke(3_999), []);
    assert_eq!(b.woke(4_000), [Order::Renew(ONE)]);
}

#[test]
fn a_call_needs_a_third_of_the_lease() {
    let mut b = Bench::new();
    assert_eq!(b.owner.start_until(), None);
    b.woke(0);
    b.opened(0, ONE);
    assert_eq!(b.owner.start_until(), Some(Mono(4_000)));
}

#[test]
fn at_the_local_deadline_calls_are_dropped_once() {
    let mut b = Bench::held();
    b.woke(2_000);
    b.check(2_100, Input::Unreachable);
    let mut seen = Vec::new();
    for at in (2_100..9_000).step_by(100) {
        seen.extend(
            b.woke(at)
                .into_iter()
                .filter(|o| *o == Order::DropCalls)
                .map(|_| at),
        );
    }
    assert_eq!(seen, [6_000]);
}

#[test]
fn a_failed_renewal_is_tried_again_well_before_the_lease_ends() {
    let mut b = Bench::held();
    assert_eq!(b.woke(2_000), [Order::Renew(ONE)]);
    b.check(2_050, Input::Unreachable);
    let (at, _) = b.owner.wake_at().mono.unwrap();
    assert!(at <= Mono(2_150), "{at:?}");
    assert_eq!(b.woke(at.0), [Order::Renew(ONE)]);
}

#[test]
fn a_lease_that_was_late_holds_again_when_the_store_says_so() {
    let mut b = Bench::held();
    b.check(100, Input::Unreachable);
    assert!(b.woke(6_500).contains(&Order::DropCalls));
    assert_eq!(b.renewed(6_500, 6_600, &[], &[]), []);
    assert_eq!(b.owner.start_until(), Some(Mono(10_500)));
    assert!(b.woke(12_500).contains(&Order::DropCalls));
}

#[test]
fn a_process_found_dead_forgets_its_rows_and_opens_at_once() {
    let mut b = Bench::held();
    b.woke(2_000);
    let got = b.dead(2_100, ONE);
    assert_eq!(got, [Order::DropCalls, Order::Forget(ONE), Order::Open]);
    assert_eq!(b.owner.start_until(), None);
    b.opened(2_200, TWO);
    assert_eq!(
        b.dead(2_300, ONE),
        [],
        "an answer for the old one is old news"
    );
    assert_eq!(b.owner.incarnation(), Some(TWO));
}

#[test]
fn others_are_declared_dead_only_after_a_lease_of_unbroken_contact() {
    let mut b = Bench::held();
    assert_eq!(b.renewed(2_000, 2_010, &[], &[]), []);
    assert_eq!(b.renewed(4_000, 4_010, &[], &[]), []);
    assert_eq!(b.renewed(6_000, 6_010, &[], &[]), [Order::DeclareDead(ONE)]);
    b.check(7_000, Input::Unreachable);
    assert_eq!(b.renewed(7_100, 7_110, &[], &[]), []);
    assert_eq!(b.renewed(13_000, 13_050, &[], &[]), []);
    assert_eq!(
        b.renewed(13_200, 13_250, &[], &[]),
        [Order::DeclareDead(ONE)]
    );
}

#[test]
fn a_database_clock_that_jumped_breaks_contact() {
    for jump in [-1_500, 1_500] {
        let mut b = Bench::held();
        b.renewed(2_000, 2_010, &[], &[]);
        b.renewed(4_000, 4_010, &[], &[]);
        b.skew += jump;
        assert_eq!(b.renewed(6_000, 6_010, &[], &[]), [], "{jump}");
        assert_eq!(b.renewed(8_000, 8_010, &[], &[]), [], "{jump}");
        b.renewed(10_000, 10_010, &[], &[]);
        assert_eq!(
            b.renewed(12_000, 12_010, &[], &[]),
            [Order::DeclareDead(ONE)]
        );
    }
}

#[test]
fn a_slow_answer_is_no_jump() {
    let mut b = Bench::held();
    b.renewed(2_000, 3_900, &[], &[]);
    b.renewed(4_000, 4_010, &[], &[]);
    assert_eq!(b.renewed(6_000, 6_010, &[], &[]), [Order::DeclareDead(ONE)]);
}

#[test]
fn a_stray_is_handed_back_when_seen_twice() {
    let mut b = Bench::held();
    assert_eq!(b.renewed(1_000, 1_010, &[1, 2, 3], &[1]), []);
    let got = b.renewed(2_000, 2_010, &[1, 2, 4], &[1]);
    assert_eq!(got, [Order::HandBack(ONE, vec![row(2)])]);
    assert_eq!(b.renewed(3_000, 3_010, &[1], &[1]), []);
}

#[test]
fn a_pending_claims_row_is_no_stray() {
    let mut b = Bench::held();
    for at in [1_000, 1_500, 1_900] {
        assert_eq!(b.renewed(at, at + 10, &[5], &[5]), []);
    }
}

#[test]
fn a_draining_process_declares_nobody_dead_and_closes_when_empty() {
    let mut b = Bench::held();
    b.renewed(2_000, 2_010, &[], &[]);
    b.check(2_020, Input::Drained);
    b.renewed(4_000, 4_010, &[], &[]);
    assert_eq!(b.renewed(6_000, 6_010, &[], &[]), []);
    assert_eq!(b.check(6_100, Input::Emptied), [Order::Close(ONE)]);
    assert_eq!(b.check(6_200, Input::Closed), [Order::Stop]);
    assert_eq!(b.check(6_300, Input::Closed), []);
    assert_eq!(b.owner.wake_at(), Wake::NEVER);
}

#[test]
fn a_request_that_nobody_answers_is_sent_again() {
    let mut b = Bench::new();
    b.woke(0);
    assert_eq!(b.woke(1_999), []);
    assert_eq!(b.woke(2_000), [Order::Open]);
    b.opened(2_100, ONE);
    assert_eq!(b.woke(4_100), [Order::Renew(ONE)]);
    assert_eq!(b.woke(6_100), [Order::Renew(ONE)]);
}
