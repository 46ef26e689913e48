//! Whatever comes in any order: what may be claimed was granted to this boot for this window, and
//! deadlines lie ahead.

use alloc::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::window::WindowNo;

#[derive(Clone, Debug)]
enum Fact {
    Passed(u64),
    Stepped(i64),
    Granted {
        slave: usize,
        n: u64,
        start: i64,
        boot: u128,
    },
    Probed,
    Answered(u8),
    Measured(bool),
    Clock(i64),
    Down,
    Up,
}

const SLAVES: [&str; 3] = ["s-1", "s-2", "s-3"];

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        4 => (0u64..20_000).prop_map(Fact::Passed),
        1 => (-90_000i64..90_000).prop_map(Fact::Stepped),
        6 => (0usize..3, 9u64..16, 0i64..200, 2u128..5)
            .prop_map(|(slave, n, start, boot)| Fact::Granted { slave, n, start, boot }),
        3 => Just(Fact::Probed),
        8 => (0u8..9).prop_map(Fact::Answered),
        1 => any::<bool>().prop_map(Fact::Measured),
        1 => (-1_000i64..1_000).prop_map(Fact::Clock),
        1 => Just(Fact::Down),
        1 => Just(Fact::Up),
    ]
}

/// Answers a question in one of many ways, fitting or not.
fn answer_to(question: &Question, kind: u8) -> Result<Answer, AskError> {
    let by = who(SLAVES[usize::from(kind % 3)], 2);
    let fitting = match question {
        Question::Assign(_) => assigned(SLAVES[usize::from(kind % 3)]),
        Question::Register(_) => Answer::Registered { by, term: None },
        Question::Confirm(_) => Answer::Confirmed { by, grants: vec![] },
        Question::OrchestratorBeat(_) => heard(vec![], kind == 8),
        Question::Window(_) => Answer::Grants { grants: vec![] },
        Question::SlaveBeat(_) | Question::Leave(_) | Question::Status => Answer::Left,
    };
    match kind {
        0 => Err(AskError::TimedOut),
        1 => Err(AskError::NoResponders),
        2 => Ok(no(Refusal::Draining)),
        3 => Ok(no(Refusal::Unregistered)),
        _ => Ok(fitting),
    }
}

/// Every range granted to this boot, by window.
type Granted = BTreeMap<WindowNo, Vec<Range>>;

struct World {
    bench: Bench,
    open: Vec<(AskId, Question)>,
    granted: Granted,
    off: bool,
}

impl World {
    fn note(&mut self, ops: &[Op]) {
        let new = asked(ops).into_iter().map(|(ask, _, q)| (ask, q));
        self.open.extend(new);
    }

    fn apply(&mut self, fact: &Fact) {
        let ops = match fact.clone() {
            Fact::Passed(ms) => self.bench.pass(ms),
            Fact::Stepped(ms) => {
                self.bench.now.wall = Wall(self.bench.now.wall.0 + ms);
                self.bench.pass(0)
            }
            Fact::Granted {
                slave,
                n,
                start,
                boot,
            } => {
                let part = range(start, start + 20);
                let grant = sub(&who(SLAVES[slave], 2), &who("o-1", boot), n, part);
                if boot == 3 {
                    self.granted.entry(WindowNo(n)).or_default().push(part);
                }
                self.bench.publish(Publication::Grant(dressed(grant)))
            }
            Fact::Probed => self.bench.probe(),
            Fact::Answered(kind) => match self.open.pop() {
                Some((ask, question)) => self.bench.answer(ask, answer_to(&question, kind)),
                None => vec![],
            },
            Fact::Measured(sick) => {
                let health = Health {
                    sick,
                    ..Health::default()
                };
                self.bench.ops(Input::Measured(health))
            }
            Fact::Clock(offset_ms) => {
                self.off = offset_ms.abs() > 500;
                self.bench.ops(Input::ClockMeasured { offset_ms })
            }
            Fact::Down => self.bench.tell(Told::Disconnected),
            Fact::Up => self.bench.tell(Told::Connected),
        };
        self.note(&ops);
    }

    fn check(&self) {
        let now = self.bench.now;
        let timing = Timing::default();
        let n = timing.window_at(now.wall);
        let claimable = self.bench.it.claimable(now.wall);
        let may = timing.claimable(n, now.wall) && !self.off;
        assert!(claimable.is_empty() || may, "outside its time");
        let parts = self.granted.get(&n).cloned().unwrap_or_default();
        for piece in &claimable {
            for token in [piece.start(), piece.end()] {
                assert!(parts.iter().any(|p| p.contains(token)), "never granted");
            }
        }
        let apart = claimable
            .windows(2)
            .all(|w| w[0].end().0 + 1 < w[1].start().0);
        assert!(apart, "not merged: {claimable:?}");
        assert!(self.bench.it.grants().count() <= 8 * 4, "bounded");
        if let Some((wait, why)) = self.bench.it.wake_at().after(now) {
            assert!(wait > Duration::ZERO, "{why} is due and nothing was done");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn only_what_was_granted_to_this_boot_is_claimed_whatever_happens(
        facts in proptest::collection::vec(fact(), 0..120)
    ) {
        let (bench, register) = Bench::assigned();
        let build = "1".into();
        let first = Register { who: me(), service: Some(service("orders")), build };
        let open = vec![(register, Question::Register(first))];
        let mut world = World { bench, open, granted: BTreeMap::new(), off: false };
        for fact in &facts {
            world.apply(fact);
            world.check();
        }
    }
}
