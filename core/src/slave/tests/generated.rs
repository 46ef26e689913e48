//! Whatever comes in any order: the slave's invariants hold and its deadlines lie ahead.

use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{time::Wall, token::coverage};

#[derive(Clone, Debug)]
enum Fact {
    Passed(u64),
    Stepped(i64),
    Granted {
        n: u64,
        part: i64,
        term: u64,
        boot: u128,
    },
    Entered {
        id: usize,
        boot: u128,
        other: bool,
    },
    Left {
        id: usize,
        boot: u128,
        after: Option<u64>,
    },
    Beat {
        id: usize,
        boot: u128,
        sick: bool,
    },
    Answered(u8),
    Down,
    Up,
}

const IDS: [&str; 4] = ["a", "b", "c", "d"];

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        4 => (0u64..20_000).prop_map(Fact::Passed),
        1 => (-90_000i64..90_000).prop_map(Fact::Stepped),
        4 => (9u64..16, 1i64..4, 4u64..8, 1u128..3)
            .prop_map(|(n, part, term, boot)| Fact::Granted { n, part, term, boot }),
        4 => (0usize..4, 10u128..13, any::<bool>())
            .prop_map(|(id, boot, other)| Fact::Entered { id, boot, other }),
        1 => (0usize..4, 10u128..13, proptest::option::of(9u64..16))
            .prop_map(|(id, boot, after)| Fact::Left { id, boot, after }),
        4 => (0usize..4, 10u128..13, any::<bool>())
            .prop_map(|(id, boot, sick)| Fact::Beat { id, boot, sick }),
        3 => (0u8..6).prop_map(Fact::Answered),
        1 => Just(Fact::Down),
        1 => Just(Fact::Up),
    ]
}

fn shift(wall: Wall, ms: i64) -> Wall {
    Wall(wall.0 + ms)
}

/// Answers the newest open question of the slave in one of many ways.
fn answer(it: &mut Bench, open: &mut Option<AskId>, kind: u8) {
    let Some(ask) = open.take() else { return };
    let no = |reason| {
        Ok(Answer::Refused {
            reason,
            retry_after_ms: 10,
        })
    };
    let answer = match kind {
        0 => Err(AskError::TimedOut),
        1 => Err(AskError::NoResponders),
        2 => no(Refusal::Unregistered),
        3 => no(Refusal::TwinAlive),
        4 => Ok(hinting(it.now, 2)),
        _ => Ok(heard(6, it.now, vec![])),
    };
    let ops = it.answer(ask, answer);
    note(open, &ops);
}

fn note(open: &mut Option<AskId>, ops: &[Op]) {
    if let Some((ask, ..)) = asked(ops).pop() {
        *open = Some(ask);
    }
}

fn apply(it: &mut Bench, open: &mut Option<AskId>, fact: &Fact) {
    let member = |id: usize, boot| who(IDS[id], boot);
    match fact.clone() {
        Fact::Passed(ms) => {
            let ops = it.pass(ms);
            note(open, &ops);
        }
        Fact::Stepped(ms) => {
            it.now.wall = shift(it.now.wall, ms);
            let ops = it.pass(0);
            note(open, &ops);
        }
        Fact::Granted {
            n,
            part,
            term: number,
            boot,
        } => {
            let whole = grant(&who("s-1", boot), n, range(0, 1_000 * part));
            it.grant(Grant {
                term: term(number),
                ..whole
            });
        }
        Fact::Entered { id, boot, other } => {
            it.enter(IDS[id], boot, if other { "payments" } else { "orders" });
        }
        Fact::Left { id, boot, after } => {
            let leave = Leave {
                who: member(id, boot),
                after: after.map(WindowNo),
            };
            it.ask(Verb::Leave, Question::Leave(leave));
        }
        Fact::Beat { id, boot, sick } => {
            let health = Health {
                sick,
                ..Health::default()
            };
            it.beat_with(IDS[id], boot, health, 0);
        }
        Fact::Answered(kind) => answer(it, open, kind),
        Fact::Down => {
            it.tell(Told::Disconnected);
        }
        Fact::Up => {
            let ops = it.tell(Told::Connected);
            note(open, &ops);
        }
    }
}

/// All sub-grants ever seen, by service and window: RI2 and RI3.
type Seen = BTreeMap<(Service, WindowNo), (Range, Vec<Grant>)>;

fn check(it: &Bench, seen: &mut Seen) {
    let mut now: Seen = BTreeMap::new();
    for sub in it.slave.issued(it.now) {
        let parent = sub.parent.clone().unwrap();
        assert_eq!((parent.slave, parent.boot), (node("s-1"), boot(2)));
        let key = (sub.service.clone(), sub.window);
        let entry = now.entry(key).or_insert((parent.range, Vec::new()));
        entry.1.push(sub.clone());
    }
    for (key, (whole, subs)) in now {
        let parts: Vec<_> = subs.iter().map(|g| g.range).collect();
        assert_eq!(coverage(whole, &parts), (vec![], vec![]), "{key:?}");
        let first = seen.entry(key).or_insert_with(|| (whole, subs.clone()));
        assert_eq!(*first, (whole, subs), "cut twice");
    }
    if let Some((wait, why)) = it.slave.wake_at().after(it.now) {
        assert!(wait > Duration::ZERO, "{why} is due and nothing was done");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_window_is_cut_once_and_whole_whatever_happens(
        facts in proptest::collection::vec(fact(), 0..120)
    ) {
        let (mut it, ask) = Bench::joined();
        let mut open = Some(ask);
        let mut seen = BTreeMap::new();
        for fact in &facts {
            apply(&mut it, &mut open, fact);
            check(&it, &mut seen);
        }
    }
}
