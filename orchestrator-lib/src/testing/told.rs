//! What a run told, what is expected of it, and how it reads.

use std::{fmt, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use crate::Ended;

/// What a run told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// How it ended; none after [`MOST_CALLS`](super::MOST_CALLS).
    pub ended: Option<Ended>,
    /// Every call in order: a step's name, or `undo` and the name.
    pub calls: Vec<String>,
    /// How much time would have passed in pauses.
    pub paused: Duration,
    /// Everything that happened, in order.
    pub lines: Vec<Line>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How long after the start.
    pub at: Duration,
    /// A call, a pause, a death, the end.
    pub what: String,
    /// Its outcome.
    pub how: String,
}

impl Told {
    /// Expects that every action is done.
    ///
    /// # Panics
    /// With the table of what happened, like all of these.
    #[track_caller]
    pub fn expect_completed(&self) -> &Self {
        let holds = matches!(self.ended, Some(Ended::Completed(_)));
        self.expect(holds, "it was to be completed")
    }

    /// Expects this result.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    pub fn expect_result<R>(&self, result: &R) -> &Self
    where
        R: DeserializeOwned + PartialEq + fmt::Debug + Serialize,
    {
        let holds = match &self.ended {
            Some(Ended::Completed(output)) => output.read::<R>().is_ok_and(|got| got == *result),
            _ => false,
        };
        self.expect(holds, &format!("the result was to be {result:?}"))
    }

    /// Expects that everything was undone.
    ///
    /// # Panics
    /// When it ended otherwise.
    #[track_caller]
    pub fn expect_undone(&self) -> &Self {
        let holds = matches!(self.ended, Some(Ended::Compensated { .. }));
        self.expect(holds, "it was to be undone")
    }

    /// Expects that a person is needed: terminated or disabled.
    ///
    /// # Panics
    /// When it ended otherwise.
    #[track_caller]
    pub fn expect_a_person(&self) -> &Self {
        let holds = matches!(
            self.ended,
            Some(Ended::Terminated { .. } | Ended::Disabled { .. })
        );
        self.expect(holds, "it was to need a person")
    }

    /// Expects that the reason of a bad end holds this text.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn expect_reason(&self, text: &str) -> &Self {
        let reason = match &self.ended {
            Some(
                Ended::Compensated { reason }
                | Ended::Terminated { reason }
                | Ended::Disabled { reason }
                | Ended::Quarantined { reason },
            ) => reason.as_str(),
            Some(Ended::Completed(_)) | None => "",
        };
        self.expect(
            reason.contains(text),
            &format!("the reason was to say {text:?}"),
        )
    }

    /// Expects exactly these calls in this order.
    ///
    /// # Panics
    /// When there were others.
    #[track_caller]
    pub fn expect_calls<'a>(&self, calls: impl IntoIterator<Item = &'a str>) -> &Self {
        let expected: Vec<&str> = calls.into_iter().collect();
        let holds = self.calls == expected;
        self.expect(holds, &format!("the calls were to be {expected:?}"))
    }

    /// Expects that a step was never called.
    ///
    /// # Panics
    /// When it was.
    #[track_caller]
    pub fn expect_not_called(&self, call: &str) -> &Self {
        let holds = !self.calls.iter().any(|c| c == call);
        self.expect(holds, &format!("{call} was not to be called"))
    }

    #[track_caller]
    fn expect(&self, holds: bool, what: &str) -> &Self {
        assert!(holds, "{what}\n{self}");
        self
    }

    pub(super) fn note(&mut self, what: impl Into<String>, how: impl Into<String>) {
        self.lines.push(Line {
            at: self.paused,
            what: what.into(),
            how: how.into(),
        });
    }
}

impl fmt::Display for Told {
    /// A table: when, what, how.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = |of: fn(&Line) -> String| self.lines.iter().map(|l| of(l).len()).max();
        let at = widest(|l| format!("{:?}", l.at)).unwrap_or(0);
        let what = widest(|l| l.what.clone()).unwrap_or(0);
        for line in &self.lines {
            let when = format!("{:?}", line.at);
            writeln!(f, "  {when:>at$}  {:<what$}  {}", line.what, line.how)?;
        }
        match &self.ended {
            Some(Ended::Completed(output)) => write!(f, "  completed: {}", output.json()),
            Some(ended) => write!(f, "  ended: {ended:?}"),
            None => write!(f, "  did not end within {} calls", super::MOST_CALLS),
        }
    }
}
