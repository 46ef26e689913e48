//! Schedules: which verbs, in which world, whose turn it is, and what goes wrong. A schedule is
//! written as one line, and that line replays it:
//! `late | bury, claim-orphans, next | x y z x z y | kill@4`.

use std::fmt;

use super::{verb::Verb, world::World};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) world: World,
    pub(crate) verbs: Vec<Verb>,
    /// Whose turn it is: the first turn of a session begins its verb, each later one lets it
    /// through one gate.
    pub(crate) turns: Vec<usize>,
    /// At which turn, and instead of it.
    pub(crate) fault: Option<(usize, Fault)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The statement is cancelled, as by a statement's time limit.
    Cancel,
    /// The backend is ended.
    Kill,
    /// The client's connections break; the server does what it does to the end.
    Cut,
    /// The next answer is lost with its connection.
    Swallow,
    /// The caller stops waiting: the future is dropped, and afterwards asked again.
    Drop,
}

impl Fault {
    pub(crate) const ALL: [Self; 5] = [
        Self::Cancel,
        Self::Kill,
        Self::Cut,
        Self::Swallow,
        Self::Drop,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Kill => "kill",
            Self::Cut => "cut",
            Self::Swallow => "swallow",
            Self::Drop => "drop",
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<_> = self.verbs.iter().map(|v| v.word()).collect();
        let turns: Vec<_> = self.turns.iter().map(|t| name(*t).to_string()).collect();
        let (world, verbs, turns) = (self.world.word(), verbs.join(", "), turns.join(" "));
        write!(f, "{world} | {verbs} | {turns} | ")?;
        match self.fault {
            Some((turn, fault)) => write!(f, "{}@{turn}", fault.word()),
            None => f.write_str("-"),
        }
    }
}

impl Schedule {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split('|').map(str::trim);
        let (world, verbs, turns) = (parts.next()?, parts.next()?, parts.next()?);
        let word = |text: &str| {
            let verb = Verb::ALL.iter().find(|v| v.word() == text.trim());
            verb.copied()
        };
        let turn = |text: &str| "xyz".find(text);
        let fault = match parts.next() {
            None | Some("-" | "") => None,
            Some(fault) => {
                let (kind, at) = fault.split_once('@')?;
                let kind = Fault::ALL.into_iter().find(|f| f.word() == kind)?;
                Some((at.parse().ok()?, kind))
            }
        };
        Some(Self {
            world: *World::ALL.iter().find(|w| w.word() == world)?,
            verbs: verbs.split(',').map(word).collect::<Option<_>>()?,
            turns: turns.split_whitespace().map(turn).collect::<Option<_>>()?,
            fault,
        })
    }

    /// Spreads schedules evenly and the same in every run (FNV-1a).
    pub(crate) fn lot(&self) -> u64 {
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let hash = self.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        (hash ^ (hash >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    /// As it is, with something going wrong at a turn that its lot chooses.
    pub(crate) fn with_fault(mut self) -> Self {
        let lot = usize::try_from(self.lot()).unwrap();
        // Not at the first turn of a session: there is nothing to break yet.
        let later: Vec<usize> = (1..self.turns.len())
            .filter(|at| self.turns[..*at].contains(&self.turns[*at]))
            .collect();
        let fault = Fault::ALL[lot / later.len() % Fault::ALL.len()];
        self.fault = Some((later[lot % later.len()], fault));
        self
    }
}

pub(crate) fn name(session: usize) -> char {
    char::from(b"xyz"[session])
}

/// Every pair of verbs of which one changes something in the world, in every interleaving.
pub(crate) fn pairs() -> Vec<Schedule> {
    let mut all = Vec::new();
    for world in World::ALL {
        let effective = world.effective();
        for (i, first) in effective.iter().enumerate() {
            for second in Verb::ALL {
                // The pair was had the other way round.
                if effective[..i].contains(second) {
                    continue;
                }
                all.extend(interleaved(*world, &[*first, *second]));
            }
        }
    }
    all
}

/// Three sessions where three matter.
pub(crate) fn triples() -> Vec<Schedule> {
    use Verb::*;
    let risky: &[(World, [Verb; 3])] = &[
        (World::Late, [Next, Bury, ClaimOrphans]),
        (World::Late, [Park, Bury, ClaimOrphans]),
        (World::Late, [Renew, Bury, ClaimOrphans]),
        (World::Dead, [Next, ClaimOrphans, ClaimOrphans]),
        (World::Running, [Park, Wake, ClaimDue]),
        (World::Running, [Settle, Wake, Cancel]),
        (World::Running, [Stay, Next, Wake]),
        (World::Running, [Back, Next, ClaimDue]),
        (World::Running, [Close, Next, ClaimDue]),
        (World::Due, [ClaimDue, ClaimOverdue, Wake]),
        (World::Due, [ClaimOwn, Close, ClaimOrphans]),
        (World::Undue, [Wake, ClaimDue, ClaimOverdue]),
        (World::Terminated, [Restore, Restore, ClaimDue]),
        (World::Missing, [Push, Push, Wake]),
        (World::New, [Start, Start, StartParked]),
    ];
    let all = risky.iter();
    all.flat_map(|(world, verbs)| interleaved(*world, verbs))
        .collect()
}

/// Every order in which the sessions can take their turns.
pub(crate) fn interleaved(world: World, verbs: &[Verb]) -> Vec<Schedule> {
    let mut orders = Vec::new();
    let mut left: Vec<usize> = verbs.iter().map(|v| v.gates().len() + 1).collect();
    merge(&mut left, &mut Vec::new(), &mut orders);
    let schedule = |turns| Schedule {
        world,
        verbs: verbs.to_vec(),
        turns,
        fault: None,
    };
    let twins = verbs.len() == 2 && verbs[0] == verbs[1];
    let first = |turns: &Vec<usize>| !twins || turns.first() == Some(&0);
    orders.into_iter().filter(first).map(schedule).collect()
}

fn merge(left: &mut [usize], turns: &mut Vec<usize>, orders: &mut Vec<Vec<usize>>) {
    if left.iter().all(|n| *n == 0) {
        orders.push(turns.clone());
        return;
    }
    for session in 0..left.len() {
        if left[session] > 0 {
            left[session] -= 1;
            turns.push(session);
            merge(left, turns, orders);
            turns.pop();
            left[session] += 1;
        }
    }
}
