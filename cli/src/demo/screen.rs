//! What a person sees while the story is told: lines that redraw in a terminal, plain ones else.
//!
//! It is chatter and goes to stderr; the verdict alone goes to stdout. Knows nothing but texts and
//! numbers.

use std::{
    cell::Cell,
    io::{IsTerminal as _, stderr},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::books::Counts;
use crate::output;

/// Without a terminal a line is printed this often: a log should tell the story, not every move.
const EVERY: Duration = Duration::from_secs(3);

/// One moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Since the first order; none before it.
    pub(crate) at: Option<Duration>,
    /// Orders in all.
    pub(crate) orders: usize,
    /// Orders that were taken.
    pub(crate) placed: usize,
    /// Transactions by state.
    pub(crate) counts: Counts,
    /// Who looks after which share of the ring, in parts per million.
    pub(crate) owners: Vec<(String, u32)>,
    /// The share that nobody looks after.
    pub(crate) dark: u32,
}

/// Where it is shown.
pub(crate) struct Screen {
    live: Option<Live>,
    printed: Cell<Option<Duration>>,
}

struct Live {
    lines: MultiProgress,
    bar: ProgressBar,
    states: ProgressBar,
    ring: ProgressBar,
}

impl Screen {
    /// Finds out whether there is a terminal.
    ///
    /// # Errors
    /// When a template can't be read, which a test would have shown.
    pub(crate) fn open(orders: usize) -> anyhow::Result<Self> {
        let live = if stderr().is_terminal() {
            Some(Live::draw(orders)?)
        } else {
            None
        };
        Ok(Self {
            live,
            printed: Cell::new(None),
        })
    }

    /// Something that happened; it stays to be read.
    pub(crate) fn tell(&self, at: Option<Duration>, text: &str) {
        let line = format!("{} {text}", clock(at));
        match &self.live {
            Some(live) => live.lines.suspend(|| output::chatter(&line)),
            None => output::chatter(&line),
        }
    }

    /// How it stands.
    pub(crate) fn show(&self, now: &Snapshot) {
        match &self.live {
            Some(live) => {
                live.bar
                    .set_position(u64::try_from(now.settled()).unwrap_or(0));
                live.states.set_message(now.states());
                live.ring.set_message(now.ring());
            }
            None => {
                let at = now.at.unwrap_or_default();
                let due = self.printed.get().is_none_or(|last| at >= last + EVERY);
                if now.at.is_some() && due {
                    self.printed.set(Some(at));
                    self.tell(now.at, &format!("{}; {}", now.states(), now.ring()));
                }
            }
        }
    }

    /// Takes the moving lines away.
    pub(crate) fn close(&self) {
        if let Some(live) = &self.live {
            for line in [&live.bar, &live.states, &live.ring] {
                line.finish_and_clear();
            }
        }
    }
}

impl Live {
    fn draw(orders: usize) -> anyhow::Result<Self> {
        let lines = MultiProgress::new();
        let count = u64::try_from(orders).unwrap_or(0);
        let bar = lines.add(ProgressBar::new(count));
        bar.set_style(ProgressStyle::with_template(
            "  settled [{wide_bar:.green}] {pos}/{len}  ",
        )?);
        let text = ProgressStyle::with_template("  {wide_msg}")?;
        let line = || lines.add(ProgressBar::new_spinner().with_style(text.clone()));
        let (states, ring) = (line(), line());
        Ok(Self {
            bar,
            states,
            ring,
            lines,
        })
    }
}

impl Snapshot {
    fn count(&self, state: &str) -> i64 {
        self.counts.get(state).copied().unwrap_or(0)
    }

    /// Transactions that have ended, well or not.
    pub(crate) fn settled(&self) -> i64 {
        self.counts.values().sum::<i64>() - self.open()
    }

    /// Transactions that have not.
    pub(crate) fn open(&self) -> i64 {
        self.count("running") + self.count("paused")
    }

    fn states(&self) -> String {
        let [running, waiting, completed, undone] =
            ["running", "paused", "completed", "compensated"].map(|state| self.count(state));
        let mut text = format!(
            "{}/{} placed: {running} running, {waiting} waiting, {completed} completed, {undone} undone",
            self.placed, self.orders
        );
        for (state, what) in [
            ("terminated", "for a person to repair"),
            ("disabled", "out of time"),
            ("quarantined", "in quarantine"),
        ] {
            match self.count(state) {
                0 => {}
                some => text += &format!(", {some} {what}"),
            }
        }
        text
    }

    fn ring(&self) -> String {
        let owners: Vec<String> = self
            .owners
            .iter()
            .map(|(id, share)| format!("{id} {}", output::share(*share)))
            .collect();
        match (owners.is_empty(), self.dark) {
            (true, _) => "ring: nobody yet".to_owned(),
            (false, 0) => format!("ring: {}", owners.join(", ")),
            (false, dark) => {
                format!(
                    "ring: {}, nobody {}",
                    owners.join(", "),
                    output::share(dark)
                )
            }
        }
    }
}

/// Seconds from the first order, in a column.
fn clock(at: Option<Duration>) -> String {
    match at {
        Some(at) => format!("{:>6.1}s ", at.as_secs_f64()),
        None => "        ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_in_a_line() {
        let counts = [
            ("running", 3),
            ("paused", 4),
            ("completed", 5),
            ("terminated", 1),
        ];
        let now = Snapshot {
            orders: 20,
            placed: 13,
            counts: counts.iter().map(|(s, n)| ((*s).to_owned(), *n)).collect(),
            owners: vec![("order-1".to_owned(), 500_000)],
            dark: 500_000,
            ..Snapshot::default()
        };
        assert_eq!((now.open(), now.settled()), (7, 6));
        let text = format!("{}; {}", now.states(), now.ring());
        assert_eq!(
            text,
            "13/20 placed: 3 running, 4 waiting, 5 completed, 0 undone, 1 for a person to repair; \
             ring: order-1 50.00 %, nobody 50.00 %"
        );
        assert!(Live::draw(1).is_ok());
    }
}
