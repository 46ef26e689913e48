//! The member's side of a session.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use super::bench::{START, asked, leader, nonce, only, term, who};
use super::*;
use crate::subject::Place;
use crate::wire::Time;

struct Bench {
    joining: Joining,
    chance: Chance,
    asks: Asks,
    now: Now,
}

impl Bench {
    fn new() -> Self {
        let with = Coordinator::Master;
        let timing = Timing::default();
        Self {
            joining: Joining::new(who("s-1", 2), None, "1".into(), with, timing),
            chance: Chance::new(7),
            asks: Asks::default(),
            now: START,
        }
    }

    /// Time passes: what the machine asks, and what it tells.
    fn pass(&mut self, ms: u64) -> (Vec<Op>, Option<Event>) {
        self.now.mono = self.now.mono.plus(Duration::from_millis(ms));
        self.now.wall = self.now.wall.plus(Duration::from_millis(ms));
        let mut out = Vec::new();
        let event = self
            .joining
            .woke(self.now, &mut self.chance, &mut self.asks, &mut out);
        if self.joining.beat_due(self.now.mono) {
            let beat = Question::Status;
            self.joining.beat(self.now, beat, &mut self.asks, &mut out);
        }
        (out, event)
    }

    fn answer(&mut self, ask: AskId, answer: Result<Answer, AskError>) -> (Vec<Op>, Option<Event>) {
        let mut out = Vec::new();
        let event = self
            .joining
            .answered(self.now, ask, answer, &mut self.chance, &mut out);
        (out, event)
    }

    fn probe(&mut self, boot: u128) -> Vec<Op> {
        let mut out = Vec::new();
        let probe = Probe {
            boot: bench::boot(boot),
            nonce: nonce(77),
        };
        self.joining.probed(&probe, &mut self.asks, &mut out);
        out
    }

    fn member() -> Self {
        let mut it = Self::new();
        let (ask, ..) = only(&it.pass(0).0);
        it.answer(ask, Ok(registered()));
        let (ask, ..) = only(&it.probe(2));
        it.answer(ask, Ok(confirmed()));
        it
    }

    /// One heartbeat, answered like this.
    fn beat(&mut self, answer: Result<Answer, AskError>) -> (Vec<Op>, Option<Event>) {
        let (ops, _) = self.pass(5_000);
        let (ask, ..) = only(&ops);
        self.answer(ask, answer)
    }
}

fn registered() -> Answer {
    Answer::Registered {
        by: leader(5),
        term: Some(term(5)),
    }
}

fn confirmed() -> Answer {
    Answer::Confirmed {
        by: leader(5),
        grants: vec![],
    }
}

fn heard() -> Answer {
    Answer::Heard {
        by: leader(5),
        term: Some(term(5)),
        now: Time(START.wall),
        grants: vec![],
        hints: vec![],
        moves: false,
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands where an answer or an error stands"
)]
fn no(reason: Refusal, retry_after_ms: u64) -> Result<Answer, AskError> {
    Ok(Answer::Refused {
        reason,
        retry_after_ms,
    })
}

#[test]
fn it_registers_then_confirms_the_probe_that_it_hears() {
    let mut it = Bench::new();
    let (ask, place, question) = only(&it.pass(0).0);
    assert_eq!(place, Place::Master(Verb::Register));
    let build = "1".into();
    let register = Register {
        who: who("s-1", 2),
        service: None,
        build,
    };
    assert_eq!(question, Question::Register(register));
    assert_eq!(it.answer(ask, Ok(registered())), (vec![], None));
    assert!(!it.joining.is_member());
    let (ask, place, question) = only(&it.probe(2));
    assert_eq!(place, Place::Master(Verb::Confirm));
    let confirm = Confirm {
        who: who("s-1", 2),
        nonce: nonce(77),
    };
    assert_eq!(question, Question::Confirm(confirm));
    let joined = Event::Joined {
        by: leader(5),
        grants: vec![],
    };
    assert_eq!(it.answer(ask, Ok(confirmed())), (vec![], Some(joined)));
    assert!(it.joining.is_member());
}

#[test]
fn a_probe_that_overtakes_the_answer_to_register_is_confirmed() {
    let mut it = Bench::new();
    let (register, ..) = only(&it.pass(0).0);
    let (confirm, ..) = only(&it.probe(2));
    assert_eq!(it.answer(register, Ok(registered())), (vec![], None));
    it.answer(confirm, Ok(confirmed()));
    assert!(it.joining.is_member());
}

#[test]
fn a_probe_for_another_boot_is_not_confirmed() {
    let mut it = Bench::new();
    it.pass(0);
    assert_eq!(it.probe(1), vec![]);
}

#[test]
fn who_does_not_hear_its_probe_starts_again_and_says_that_it_is_deaf() {
    let mut it = Bench::new();
    let (ask, ..) = only(&it.pass(0).0);
    it.answer(ask, Ok(registered()));
    assert_eq!(it.pass(2_000).1, Some(Event::Failed(Failure::Deaf)));
    let (_, place, _) = only(&it.pass(500).0);
    assert_eq!(place, Place::Master(Verb::Register));
}

#[test]
fn no_responders_and_timed_out_are_told_apart() {
    let mut it = Bench::new();
    let (ask, ..) = only(&it.pass(0).0);
    let (_, event) = it.answer(ask, Err(AskError::NoResponders));
    assert_eq!(event, Some(Event::Failed(Failure::NoResponders)));
    let (ask, ..) = only(&it.pass(500).0);
    let (_, event) = it.answer(ask, Err(AskError::TimedOut));
    assert_eq!(event, Some(Event::Failed(Failure::TimedOut)));
}

#[test]
fn pauses_between_attempts_grow_with_jitter_up_to_a_quarter_of_a_window() {
    let mut it = Bench::new();
    let mut whole = 500;
    let (mut ask, ..) = only(&it.pass(0).0);
    for _ in 0..12 {
        it.answer(ask, Err(AskError::NoResponders));
        assert_eq!(asked(&it.pass(whole / 2 - 1).0), vec![], "too early");
        (ask, ..) = only(&it.pass(whole / 2 + 1).0);
        whole = (whole * 2).min(15_000);
    }
}

#[test]
fn a_busy_coordinator_says_when_to_come_again() {
    let mut it = Bench::new();
    let (ask, ..) = only(&it.pass(0).0);
    it.answer(ask, no(Refusal::Busy, 5_000));
    assert_eq!(it.pass(5_249).0, vec![]);
    only(&it.pass(251).0);
}

#[test]
fn heartbeats_keep_their_rhythm_with_a_fifth_of_jitter() {
    let mut it = Bench::member();
    let (ask, ..) = only(&it.pass(0).0);
    let (_, event) = it.answer(ask, Ok(heard()));
    assert!(matches!(event, Some(Event::Heard(_))));
    assert_eq!(it.pass(3_999).0, vec![]);
    only(&it.pass(1_001).0);
}

#[test]
fn one_heartbeat_is_under_way_at_a_time() {
    let mut it = Bench::member();
    only(&it.pass(0).0);
    assert_eq!(it.pass(60_000).0, vec![]);
}

#[test]
fn two_unanswered_heartbeats_leave_the_connection_for_another() {
    let mut it = Bench::member();
    assert_eq!(it.beat(Err(AskError::TimedOut)).0, vec![]);
    assert_eq!(it.beat(Err(AskError::TimedOut)).0, vec![Op::Reconnect]);
    assert_eq!(it.beat(Err(AskError::TimedOut)).0, vec![]);
    assert_eq!(it.beat(Err(AskError::TimedOut)).0, vec![Op::Reconnect]);
}

#[test]
fn no_responders_is_an_answer_of_a_live_connection() {
    let mut it = Bench::member();
    it.beat(Err(AskError::TimedOut));
    it.beat(Err(AskError::NoResponders));
    assert_eq!(it.beat(Err(AskError::TimedOut)).0, vec![]);
}

#[test]
fn a_session_without_an_answer_is_told_once_and_heartbeats_go_on() {
    let mut it = Bench::member();
    it.beat(Err(AskError::NoResponders));
    it.beat(Err(AskError::NoResponders));
    let (ops, event) = it.pass(5_000);
    assert_eq!(event, Some(Event::Silent));
    let (ask, place, _) = only(&ops);
    assert_eq!(place, Place::Master(Verb::Heartbeat));
    it.answer(ask, Err(AskError::NoResponders));
    assert_eq!(it.pass(1).1, None);
    assert!(it.joining.is_member());
}

#[test]
fn who_was_suspended_for_a_session_asks_first() {
    let mut it = Bench::member();
    let (ops, event) = it.pass(600_000);
    assert_eq!(event, None);
    only(&ops);
}

#[test]
fn a_member_that_was_forgotten_registers_again_soon() {
    let mut it = Bench::member();
    let (_, event) = it.beat(no(Refusal::Unregistered, 5_000));
    let why = Failure::Refused(Refusal::Unregistered);
    assert_eq!(event, Some(Event::Failed(why)));
    let (_, place, _) = only(&it.pass(1_000).0);
    assert_eq!(place, Place::Master(Verb::Register));
}

#[test]
fn a_live_twin_is_waited_for_and_said() {
    let mut it = Bench::new();
    let (ask, ..) = only(&it.pass(0).0);
    it.answer(ask, no(Refusal::TwinAlive, 9_000));
    assert!(it.joining.waits_for_twin());
    it.joining.hurry(it.now.mono);
    assert_eq!(it.pass(9_249).0, vec![]);
    let (ask, ..) = only(&it.pass(251).0);
    it.answer(ask, Ok(registered()));
    let (ask, ..) = only(&it.probe(2));
    it.answer(ask, Ok(confirmed()));
    assert!(!it.joining.waits_for_twin());
}

#[test]
fn who_is_superseded_asks_nothing_more() {
    let mut it = Bench::member();
    let (_, event) = it.beat(no(Refusal::Superseded, 0));
    assert_eq!(event, Some(Event::Superseded));
    assert_eq!(it.pass(600_000), (vec![], None));
    assert_eq!(it.joining.wake_at(), Wake::NEVER);
}

#[test]
fn an_answer_that_is_not_awaited_changes_nothing() {
    let mut it = Bench::member();
    let (first, ..) = only(&it.pass(0).0);
    it.answer(first, Ok(heard()));
    let before = alloc::format!("{:?}", it.joining);
    assert_eq!(it.answer(first, no(Refusal::Superseded, 0)), (vec![], None));
    assert_eq!(alloc::format!("{:?}", it.joining), before);
}

#[test]
fn a_heartbeat_can_be_brought_forward() {
    let mut it = Bench::member();
    let (ask, ..) = only(&it.pass(0).0);
    it.answer(ask, Ok(heard()));
    assert_eq!(it.pass(1).0, vec![]);
    it.joining.hurry(it.now.mono);
    only(&it.pass(0).0);
}

#[test]
fn a_strange_answer_silences_nobody_for_longer_than_a_minute() {
    let mut it = Bench::new();
    let (ask, ..) = only(&it.pass(0).0);
    it.answer(ask, no(Refusal::Busy, u64::MAX));
    only(&it.pass(60_500).0);
}

#[test]
fn a_term_beyond_any_count_of_leaders_is_not_learnt() {
    let mut known = None;
    assert!(!learn(&mut known, term(LARGEST_TERM)));
    assert!(learn(&mut known, term(6)));
    assert!(!learn(&mut known, term(5)));
    assert_eq!(known, Some(term(6)));
}
