//! The one driver of these tests: clocks that it moves, a registry that does what it is told.

use super::*;

pub(super) struct Bench {
    pub(super) master: Master,
    pub(super) now: Now,
    replies: u64,
}

impl Bench {
    pub(super) fn new(config: Config) -> Self {
        Self {
            master: Master::new(config, 1),
            now: Now {
                wall: Wall(60_000 * 1000),
                mono: Mono(5_000_000),
            },
            replies: 0,
        }
    }

    /// A standby that runs.
    pub(super) fn standby() -> Self {
        let mut bench = Self::new(config());
        bench.does(Input::Started);
        bench
    }

    /// A leader under term 1 that found nothing stored.
    pub(super) fn leader() -> Self {
        Self::leader_of(config())
    }

    pub(super) fn leader_of(config: Config) -> Self {
        let alone = config.alone;
        let mut bench = Self::new(config);
        bench.does(Input::Started);
        bench.listen();
        if !alone {
            bench.does(bench.mine(1));
            bench.does(bench.loaded(vec![]));
        }
        assert_eq!(bench.master.leading(), Some(term(1)));
        bench
    }

    /// Two heartbeat intervals, so that it competes.
    pub(super) fn listen(&mut self) -> Vec<Order> {
        self.pass(10)
    }

    pub(super) fn does(&mut self, input: Input) -> Vec<Order> {
        let mut out = Vec::new();
        self.master.handle(self.now, input, &mut out);
        out
    }

    /// The one place that compares orders.
    #[track_caller]
    pub(super) fn check(&mut self, input: Input, expected: &[Order]) {
        assert_eq!(self.does(input), expected);
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.now.wall = self.now.wall.plus(by);
        self.now.mono = self.now.mono.plus(by);
    }

    /// Lets seconds pass, woken each second as the shell does.
    pub(super) fn pass(&mut self, seconds: u64) -> Vec<Order> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            self.advance(Duration::from_secs(1));
            all.extend(self.does(Input::Woke));
        }
        all
    }

    /// Lets seconds pass while these slaves send heartbeats and the registry does what it is told.
    pub(super) fn live(&mut self, seconds: u64, slaves: &[(&str, u128, u32)]) -> Vec<Order> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            self.advance(Duration::from_secs(1));
            let mut orders = Vec::new();
            for (name, boot, live) in slaves {
                let loads = vec![load("orders", *live, 0)];
                orders.extend(self.beat(name, *boot, loads));
            }
            orders.extend(self.does(Input::Woke));
            all.extend(self.settle(orders, Self::obey));
        }
        all
    }

    /// Lets the registry answer until nothing more is ordered; all that was ordered.
    pub(super) fn settle(
        &mut self,
        orders: Vec<Order>,
        answers: impl Fn(&Self, &[Order]) -> Vec<Input>,
    ) -> Vec<Order> {
        let (mut all, mut next) = (Vec::new(), orders);
        while !next.is_empty() {
            let told = answers(self, &next);
            all.append(&mut next);
            for answer in told {
                next.extend(self.does(answer));
            }
        }
        all
    }

    /// A registry that holds nothing else and answers at once.
    pub(super) fn obey(&self, orders: &[Order]) -> Vec<Input> {
        let answer = |order: &Order| match order {
            Order::Registry(registry::Op::Renew { term, .. }) => Some(registry::Told::Mine {
                term: *term,
                clock: self.now.wall,
            }),
            Order::Registry(registry::Op::StoreCuts { cuts, .. }) => {
                Some(registry::Told::Stored { cuts: cuts.clone() })
            }
            Order::Registry(op) => panic!("{op:?} is not expected here"),
            Order::Bus(_) | Order::Stop(_) => None,
        };
        orders.iter().filter_map(answer).map(told).collect()
    }

    pub(super) fn mine(&self, number: u64) -> Input {
        told(registry::Told::Mine {
            term: term(number),
            clock: self.now.wall,
        })
    }

    pub(super) fn theirs(&self, number: u64) -> Input {
        told(registry::Told::Theirs {
            holder: id("m-2"),
            term: foreign_term(number),
            left: Duration::from_secs(10),
            clock: self.now.wall,
        })
    }

    pub(super) fn loaded(&self, cuts: Vec<Cut>) -> Input {
        let current = self.master.current(self.now);
        told(registry::Told::Loaded {
            windows: vec![current, current.next()],
            cuts,
        })
    }

    pub(super) fn ask(&mut self, place: Place, question: Question) -> (ReplyTo, Vec<Order>) {
        self.replies += 1;
        let to = ReplyTo(self.replies);
        let orders = self.does(Input::Bus(Told::Asked {
            to,
            place,
            question,
            chance: Nonce(Uuid::from_u128(u128::from(self.replies))),
        }));
        (to, orders)
    }

    /// The answer to a question, and whatever else was ordered.
    #[track_caller]
    pub(super) fn asked(&mut self, place: Place, question: Question) -> (Answer, Vec<Order>) {
        let (mine, mut orders) = self.ask(place, question);
        let at = orders.iter().position(
            |order| matches!(order, Order::Bus(bus::Op::Answer { to, .. }) if *to == mine),
        );
        let Order::Bus(bus::Op::Answer { answer, .. }) = orders.remove(at.expect("an answer"))
        else {
            unreachable!("its place was just found")
        };
        (answer, orders)
    }

    pub(super) fn question(&self, name: &str, boot_no: u128, loads: Vec<Load>) -> SlaveBeat {
        SlaveBeat {
            who: who(name, boot_no),
            sent_at: Time(self.now.wall),
            term: None,
            loads,
            granted: vec![],
            clock_off: false,
        }
    }

    /// A slave's heartbeat; what was ordered beside the answer.
    pub(super) fn beat(&mut self, name: &str, boot_no: u128, loads: Vec<Load>) -> Vec<Order> {
        let beat = self.question(name, boot_no, loads);
        self.asked(Place::Master(Verb::Heartbeat), Question::SlaveBeat(beat))
            .1
    }

    pub(super) fn overhear(&mut self, beat: SlaveBeat) -> Vec<Order> {
        self.does(Input::Bus(Told::Overheard {
            place: Place::Master(Verb::Heartbeat),
            question: Question::SlaveBeat(beat),
        }))
    }

    pub(super) fn register(&mut self, name: &str, boot_no: u128) -> Answer {
        let register = Register {
            who: who(name, boot_no),
            service: None,
            build: "1".into(),
        };
        self.asked(Place::Master(Verb::Register), Question::Register(register))
            .0
    }

    /// Both phases of joining.
    #[track_caller]
    pub(super) fn join(&mut self, name: &str, boot_no: u128) -> Vec<Order> {
        let register = Register {
            who: who(name, boot_no),
            service: None,
            build: "1".into(),
        };
        let (_, orders) = self.asked(Place::Master(Verb::Register), Question::Register(register));
        let nonce = orders.iter().find_map(|order| {
            if let Order::Bus(bus::Op::Publish {
                body: Publication::Probe(probe),
                ..
            }) = order
            {
                Some(probe.nonce)
            } else {
                None
            }
        });
        let confirm = Confirm {
            who: who(name, boot_no),
            nonce: nonce.expect("a probe"),
        };
        let (answer, orders) = self.asked(Place::Master(Verb::Confirm), Question::Confirm(confirm));
        assert!(matches!(answer, Answer::Confirmed { .. }), "{answer:?}");
        orders
    }

    pub(super) fn event(&self, fact: Fact) -> Order {
        let by = Author {
            role: Role::Master,
            id: id("m-1"),
            boot: boot(ME),
        };
        Order::Bus(bus::Op::Tell(Event::new(self.now.wall, by, fact)))
    }

    pub(super) fn foreign_event(&self, fact: Fact) -> Input {
        let by = Author {
            role: Role::Master,
            id: id("m-2"),
            boot: boot(ME + 1),
        };
        Input::Bus(Told::Event(Event::new(self.now.wall, by, fact)))
    }

    pub(super) fn cut_event(&self, cut: &Cut) -> Order {
        let cut = CutWire::new(&Timing::default(), cut);
        self.event(Fact::Cut { cut })
    }

    /// A grant of a cut as published by this master.
    pub(super) fn grant(&self, cut: &Cut, index: usize) -> GrantWire {
        let seat = &cut.seats[index];
        let grant = Grant {
            service: cut.service.clone(),
            window: cut.window,
            range: seat.range.unwrap(),
            term: self.master.leading().unwrap(),
            holder: seat.slave.clone(),
            boot: seat.boot,
            index: u32::try_from(index).unwrap(),
            members: u32::try_from(cut.seats.len()).unwrap(),
            parent: None,
        };
        GrantWire::new(&config().scope, &Timing::default(), grant)
    }

    pub(super) fn publication(&self, cut: &Cut, index: usize) -> Order {
        Order::Bus(bus::Op::Publish {
            place: Place::SlaveWindows(cut.seats[index].slave.clone()),
            body: Publication::Grant(self.grant(cut, index)),
        })
    }
}
