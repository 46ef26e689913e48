//! How a step says that it failed, and which way that sends the transaction.
//!
//! Decides nothing: the class that comes out of here is a fact for the transaction machine. An
//! error that nobody classified is *unknown*, because nobody can say whether it was applied.

use std::{any::Any, error::Error as StdError, fmt, sync::Arc, time::Duration};

pub use ring_core::saga::Class;

/// Why a step failed. Made by one of four words, each of which decides what comes next:
///
/// | made by | the target … | then |
/// |---|---|---|
/// | [`transient`](Self::transient) | did not apply it, but will probably do so later | retried, then paused and retried |
/// | [`business`](Self::business) | refused it, for a reason of the business | compensation |
/// | [`persistent`](Self::persistent) | refused it, for good (a bug, a missing thing) | compensation |
/// | [`unknown`](Self::unknown) | may or may not have applied it | retried first; stays in doubt until it succeeds or is compensated |
///
/// Any [`std::error::Error`] becomes one by `?`, as *unknown*, until a saga's
/// [classifier](crate::SagaBuilder::classify) knows better. For the same reason this type is not
/// itself a [`std::error::Error`].
#[derive(Clone)]
pub struct StepError {
    class: Option<Class>,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    retry_after: Option<Duration>,
}

/// Turns errors into classes; `None` leaves the class as the step gave it.
pub(crate) type Classifier = Arc<dyn Fn(&StepError) -> Option<Class> + Send + Sync>;

impl StepError {
    /// Not applied; will probably work later (connection refused, 503, a lock).
    pub fn transient(message: impl fmt::Display) -> Self {
        Self::of(Class::Transient, message)
    }

    /// Not applied; refused for a reason of the business (card declined, out of stock).
    pub fn business(message: impl fmt::Display) -> Self {
        Self::of(Class::Business, message)
    }

    /// Not applied; refused for good (a malformed request, a missing account).
    pub fn persistent(message: impl fmt::Display) -> Self {
        Self::of(Class::Persistent, message)
    }

    /// Nobody knows whether it was applied (a time limit, a reset connection).
    pub fn unknown(message: impl fmt::Display) -> Self {
        Self::of(Class::Unknown, message)
    }

    /// The target asked for this pause before the next attempt (`Retry-After`).
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// Keeps the cause, for the text in the log and for classifiers.
    #[must_use]
    pub fn because(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(cause));
        self
    }

    /// The class given by the step; `None` when it came by `?` and nobody classified it.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        self.class
    }

    /// The cause, when it is of this type: what a classifier asks for.
    #[must_use]
    pub fn cause<E: StdError + 'static>(&self) -> Option<&E> {
        self.source.as_deref().and_then(|e| e.downcast_ref())
    }

    /// The pause that the target asked for.
    #[must_use]
    pub fn asked_pause(&self) -> Option<Duration> {
        self.retry_after
    }

    pub(crate) fn classed(mut self, class: Class) -> Self {
        self.class = Some(class);
        self
    }

    /// What a panic of a step becomes: it may have happened after the effect.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Self::unknown(format_args!("the step panicked: {text}"))
    }

    fn of(class: Class, message: impl fmt::Display) -> Self {
        Self {
            class: Some(class),
            message: message.to_string(),
            source: None,
            retry_after: None,
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        Self {
            class: None,
            message: error.to_string(),
            source: Some(Arc::new(error)),
            retry_after: None,
        }
    }
}

impl fmt::Display for StepError {
    /// The message and its causes, as it is kept in the step log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut last = self.message.clone();
        let mut next: Option<&dyn StdError> = self.source.as_deref().map(|e| e as _);
        while let Some(cause) = next {
            let text = cause.to_string();
            if text != last {
                write!(f, ": {text}")?;
            }
            last = text;
            next = cause.source();
        }
        Ok(())
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class.unwrap_or(Class::Unknown);
        write!(f, "StepError({class:?}: {self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks() -> Result<(), StepError> {
        "x".parse::<i32>()?;
        Ok(())
    }

    #[test]
    fn an_unclassified_error_keeps_its_cause_for_the_classifier() {
        let error = asks().unwrap_err();
        assert_eq!(error.class(), None);
        assert!(error.cause::<std::num::ParseIntError>().is_some());
        assert_eq!(error.to_string(), "invalid digit found in string");
    }

    #[test]
    fn the_text_holds_the_message_and_its_causes_once() {
        let cause = std::io::Error::other("reset by peer");
        let error = StepError::transient("payment is away").because(cause);
        assert_eq!(error.to_string(), "payment is away: reset by peer");
        assert_eq!(error.class(), Some(Class::Transient));
    }
}
