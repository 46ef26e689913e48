//! What a check found, and what is compared to find it.

use std::fmt;

use super::Told;
use crate::Ended;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was done.
    pub case: String,
    /// What was wrong.
    pub problem: String,
    /// What happened, as a table.
    pub table: String,
}

/// All that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Findings(pub Vec<Finding>);

/// One run with what can be seen after it.
pub(super) struct Ran {
    pub(super) told: Told,
    pub(super) seen: Option<String>,
    /// What is seen of a world in which nothing happened.
    pub(super) fresh: Option<String>,
    /// Whether some step goes to a person when it may have been applied.
    pub(super) asks_people: bool,
}

impl Findings {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Expects that nothing is wrong.
    ///
    /// # Panics
    /// With every finding and its table.
    #[track_caller]
    pub fn assert_none(&self) {
        assert!(self.is_empty(), "{self}");
    }

    pub(super) fn push(&mut self, case: &str, problem: String, told: &Told) {
        self.0.push(Finding {
            case: case.to_owned(),
            problem,
            table: told.to_string(),
        });
    }

    /// It ended, and if it was undone, nothing of it is left.
    pub(super) fn ended(&mut self, case: &str, ran: &Ran) {
        match &ran.told.ended {
            None => self.push(case, "it does not end".to_owned(), &ran.told),
            Some(Ended::Compensated { .. }) if ran.seen != ran.fresh => {
                let text = |seen: &Option<String>| seen.clone().unwrap_or_default();
                let (seen, fresh) = (text(&ran.seen), text(&ran.fresh));
                let problem = format!("it was undone, but the world is {seen} and was {fresh}");
                self.push(case, problem, &ran.told);
            }
            Some(_) => {}
        }
    }

    /// The same end and the same world. A saga may also go back for it, or to a person where a
    /// step says that it can't be repeated.
    pub(super) fn same(&mut self, case: &str, ran: &Ran, other: &Ran) {
        let kind = |ended: &Option<Ended>| ended.as_ref().map(std::mem::discriminant);
        if kind(&ran.told.ended) != kind(&other.told.ended) {
            match ran.told.ended {
                Some(Ended::Compensated { .. }) => {
                    return self.ended(case, ran);
                }
                Some(Ended::Terminated { .. }) if ran.asks_people => return,
                Some(_) | None => {}
            }
            let problem = format!(
                "it ended otherwise than undisturbed: {:?}",
                other.told.ended
            );
            self.push(case, problem, &ran.told);
        } else if ran.seen != other.seen {
            let problem = format!(
                "the world is {}, undisturbed it is {}",
                ran.seen.as_deref().unwrap_or("?"),
                other.seen.as_deref().unwrap_or("?")
            );
            self.push(case, problem, &ran.told);
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} findings", self.0.len())?;
        for finding in &self.0 {
            writeln!(f, "\n{}: {}", finding.case, finding.problem)?;
            writeln!(f, "{}", finding.table)?;
        }
        Ok(())
    }
}
