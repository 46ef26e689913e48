//! How a worker's function says that it did not do what it was asked for.

use std::{error::Error as StdError, fmt, time::Duration};

use crate::wire::{Answer, Word};

/// Why a call was not carried out. The same four words as a saga's `StepError`:
///
/// | made by | applied | the saga |
/// |---|---|---|
/// | [`business`](Self::business) | no | compensates |
/// | [`persistent`](Self::persistent) | no | compensates |
/// | [`transient`](Self::transient) | no | asks again |
/// | [`unknown`](Self::unknown) | perhaps | asks again; compensates this step, too, should it give up |
///
/// Any [`std::error::Error`] becomes one by `?`: *transient* where the database transaction around
/// the function is rolled back ([`Transactional`](super::Transactional)), *unknown* elsewhere.
///
/// A compensation that is refused (business, persistent) ends the saga's transaction as terminated:
/// a person has to look. What may work later is transient.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// None: by `?`, so the kind of work decides.
    word: Option<Word>,
    says: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    /// Not applied, for a reason of the business: the card was declined.
    pub fn business(says: impl fmt::Display) -> Self {
        Self::of(Word::Refused, says)
    }

    /// Not applied, for good: the request is wrong.
    pub fn persistent(says: impl fmt::Display) -> Self {
        Self::of(Word::Persistent, says)
    }

    /// Not applied; will probably work later.
    pub fn transient(says: impl fmt::Display) -> Self {
        Self::of(Word::Transient, says)
    }

    /// Nobody knows whether it was applied.
    pub fn unknown(says: impl fmt::Display) -> Self {
        Self::of(Word::Unknown, says)
    }

    /// When it makes sense to ask again; of a transient one.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// Whether it may have been applied, where `?` alone says nothing.
    #[cfg(feature = "barrier")]
    pub(crate) fn may_be_applied(&self) -> bool {
        self.word.is_none_or(|word| word == Word::Unknown)
    }

    /// As an answer; `by_default` is for what came by `?`.
    pub(crate) fn answer(self, by_default: Word) -> Answer {
        let Self {
            word,
            says,
            retry_after,
        } = self;
        match word.unwrap_or(by_default) {
            Word::Refused => Answer::Refused(says),
            Word::Persistent => Answer::Persistent(says),
            Word::Transient => Answer::Transient { says, retry_after },
            Word::Done | Word::Compensated | Word::InProgress | Word::Unknown => {
                Answer::Unknown(says)
            }
        }
    }

    fn of(word: Word, says: impl fmt::Display) -> Self {
        Self {
            word: Some(word),
            says: says.to_string(),
            retry_after: None,
        }
    }
}

impl<E: StdError> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self {
            word: None,
            says: chain(&error),
            retry_after: None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)
    }
}

/// An error and its causes, each once: some print their causes themselves.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
