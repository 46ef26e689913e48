//! The end of the story, for people and as JSON.

use std::time::Duration;

use ring_core::time::{Mono, Now};
use ring_shell::clock;
use serde::Serialize;

use super::{books::Drain, ears::Ears, stage::WINDOW, verdict::Verdict};
use crate::{args::Blow, output};

/// A blow that fell.
#[derive(Clone, Debug)]
pub(crate) struct Blown {
    /// What.
    pub(crate) blow: Blow,
    /// On whom.
    pub(crate) who: String,
    /// When.
    pub(crate) at: Now,
}

/// A blow and how long the ring felt it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Felt {
    role: &'static str,
    who: String,
    /// From the first order on.
    at_ms: u64,
    /// Until every part of the ring was looked after again; 0: it always was; absent: not for a
    /// kill, or it never was again.
    #[serde(skip_serializing_if = "Option::is_none")]
    covered_after_ms: Option<u64>,
}

/// Everything that is told at the end.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Whether nothing was lost, doubled or wrong.
    pub(crate) holds: bool,
    verdict: Verdict,
    blows: Vec<Felt>,
    /// From payment's return to the last order settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drain: Option<Drain>,
    /// Requests that customers had to send again.
    pub(crate) resent: usize,
    windows: usize,
    windows_with_overlaps: usize,
    window_ms: u64,
}

impl Report {
    /// From what was seen.
    pub(crate) fn new(verdict: Verdict, blown: Vec<Blown>, ears: &Ears, begun: Mono) -> Self {
        let hits = |blow| !matches!(blow, Blow::PaymentDown | Blow::PaymentUp);
        let kills: Vec<Mono> = blown
            .iter()
            .filter(|b| hits(b.blow))
            .map(|b| b.at.mono)
            .collect();
        let felt = |Blown { blow, who, at }| {
            let next = kills.iter().copied().find(|kill| *kill > at.mono);
            let covered = hits(blow)
                .then(|| ears.timeline.whole_after(at.mono, next))
                .flatten();
            Felt {
                role: blow.name(),
                who,
                at_ms: millis(at.mono.since(begun)),
                covered_after_ms: covered.map(millis),
            }
        };
        let (windows, windows_with_overlaps) = ears.overlaps(clock::now().wall);
        Self {
            holds: verdict.holds(),
            verdict,
            blows: blown.into_iter().map(felt).collect(),
            drain: None,
            resent: 0,
            windows,
            windows_with_overlaps,
            window_ms: millis(WINDOW),
        }
    }

    /// Prints it.
    ///
    /// # Errors
    /// When stdout can't be written.
    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return output::json(self);
        }
        let mut table = output::table(&["WHAT HAPPENED", "AT", "RING WHOLE AGAIN"]);
        for felt in &self.blows {
            let whole = match (felt.covered_after_ms, felt.is_kill()) {
                (_, false) => String::new(),
                (None, true) => "not until the end".to_owned(),
                (Some(0), true) => "never dark".to_owned(),
                (Some(ms), true) => format!("after {}", output::ago(ms)),
            };
            let what = match felt.role {
                "payment-down" | "payment-up" => felt.role.to_owned(),
                role => format!("kill -9 {} ({role})", felt.who),
            };
            table.add_row([what, output::ago(felt.at_ms), whole]);
        }
        output::line("")?;
        output::line(&table.trim_fmt())?;
        output::line("")?;
        for line in self.lines() {
            output::line(&line)?;
        }
        Ok(())
    }

    fn lines(&self) -> Vec<String> {
        let v = &self.verdict;
        let mut lines = Vec::new();
        if let Some(drain) = &self.drain {
            lines.push(format!(
                "payment back: the {} orders that waited were settled after {}, the last of all after {}",
                drain.waiting,
                output::ago(drain.waiting_settled_ms),
                output::ago(drain.last_settled_ms),
            ));
        }
        lines.push(format!(
            "{} windows heard, {} with a part granted twice; {} requests sent again by customers",
            self.windows, self.windows_with_overlaps, self.resent
        ));
        lines.push(format!(
            "{} calls came again and got the stored answer; {} charges came after their order was undone and were refused",
            v.repeated_calls, v.late_actions_refused
        ));
        lines.extend(v.complaints.iter().map(|says| format!("  {says}")));
        lines.push(String::new());
        let word = if self.holds {
            "HOLDS: nothing lost, nothing doubled"
        } else {
            "FAILED"
        };
        lines.push(word.to_owned());
        lines.push(format!(
            "  {} orders: {} completed with one reservation and one charge, {} undone with none left",
            v.orders, v.completed, v.compensated
        ));
        if !self.holds {
            lines.push(format!(
                "  {} lost, {} doubled, {} wrong",
                v.lost, v.doubled, v.wrong
            ));
        }
        lines
    }
}

impl Felt {
    fn is_kill(&self) -> bool {
        !self.role.starts_with("payment")
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
