//! What the loop last saw of its machine, for health, status and metrics.
//!
//! Decides when such a view is too old to believe: a loop that is stuck must not look ready.

use std::time::Duration;

use ring_core::time::{Mono, Now};
use tokio::sync::watch;

use crate::clock;

/// The loop looks at its machine at least once a second; five missed looks are no hiccup.
const STALE: Duration = Duration::from_secs(5);

/// The loop's end.
#[derive(Debug)]
pub struct Publisher<V>(watch::Sender<Option<(Mono, V)>>);

/// The readers' end.
#[derive(Debug)]
pub struct View<V>(watch::Receiver<Option<(Mono, V)>>);

/// Both ends; nothing has been seen yet.
#[must_use]
pub fn view<V>() -> (Publisher<V>, View<V>) {
    let (publisher, reader) = watch::channel(None);
    (Publisher(publisher), View(reader))
}

impl<V> Publisher<V> {
    /// Replaces what is seen.
    pub fn publish(&self, now: Now, value: V) {
        self.0.send_replace(Some((now.mono, value)));
    }
}

impl<V> Clone for View<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Clone> View<V> {
    /// What was last seen; `None` before the first look.
    #[must_use]
    pub fn seen(&self) -> Option<V> {
        self.0.borrow().as_ref().map(|(_, value)| value.clone())
    }

    /// What was last seen, or the reason why it can't be believed.
    ///
    /// # Errors
    /// A sentence: nothing was seen yet, or the last look is over 5 s old.
    pub fn fresh(&self) -> Result<V, String> {
        self.fresh_at(clock::now().mono)
    }

    /// Waits for the next look. `None` when the loop has ended.
    pub async fn next(&mut self) -> Option<V> {
        self.0.changed().await.ok()?;
        let seen = self.0.borrow_and_update();
        seen.as_ref().map(|(_, value)| value.clone())
    }

    /// Waits for a look that fulfils a condition. `None` when the loop has ended before.
    pub async fn until(&mut self, mut wanted: impl FnMut(&V) -> bool) -> Option<V> {
        let seen = self
            .0
            .wait_for(|seen| seen.as_ref().is_some_and(|(_, value)| wanted(value)))
            .await
            .ok()?;
        seen.as_ref().map(|(_, value)| value.clone())
    }

    fn fresh_at(&self, now: Mono) -> Result<V, String> {
        match &*self.0.borrow() {
            None => Err("it has not started".to_owned()),
            Some((at, value)) if now.since(*at) <= STALE => Ok(value.clone()),
            Some((at, _)) => Err(format!(
                "its loop is stuck: the last look is {} s old",
                now.since(*at).as_secs()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_is_not_renewed_is_not_believed() {
        let (publisher, view) = view();
        assert!(view.fresh().is_err());
        let now = clock::now();
        publisher.publish(now, "fine");
        assert_eq!(view.fresh_at(now.mono), Ok("fine"));
        let later = now.mono.plus(STALE + Duration::from_secs(1));
        let why = view.fresh_at(later).unwrap_err();
        assert_eq!(why, "its loop is stuck: the last look is 6 s old");
    }
}
