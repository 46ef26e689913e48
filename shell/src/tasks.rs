//! Background tasks that can't end in silence.
//!
//! Decides that a panic in any of them ends the whole role: a process that lost its reader of
//! windows but still heartbeats would be alive and useless.

use std::future::Future;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The background tasks of one role. Dropping it ends them.
#[derive(Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    broken: CancellationToken,
}

/// Spawns into a [`Tasks`].
#[derive(Clone, Debug)]
pub struct Spawner {
    tracker: TaskTracker,
    stop: CancellationToken,
    broken: CancellationToken,
}

impl Tasks {
    /// No task yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Something that spawns into here.
    #[must_use]
    pub fn spawner(&self) -> Spawner {
        Spawner {
            tracker: self.tracker.clone(),
            stop: self.stop.clone(),
            broken: self.broken.clone(),
        }
    }

    /// Ends all tasks and waits until they have ended.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Spawner {
    /// Starts a task that ends with the role at the latest.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let alarm = Alarm(self.broken.clone());
        let stop = self.stop.clone();
        // The handle is not needed: the tracker knows the task, the alarm tells of its panic.
        drop(self.tracker.spawn(async move {
            let _alarm = alarm;
            stop.run_until_cancelled(task).await;
        }));
    }

    /// Completes when one of the tasks has panicked.
    pub async fn broken(&self) {
        self.broken.cancelled().await;
    }

    /// Whether one of the tasks has panicked.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.is_cancelled()
    }
}

struct Alarm(CancellationToken);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_a_task_is_noticed() {
        let tasks = Tasks::new();
        let spawner = tasks.spawner();
        spawner.spawn(async { panic!("on purpose") });
        spawner.broken().await;
        assert!(spawner.is_broken());
    }

    #[tokio::test]
    async fn stopping_ends_a_task_that_would_never_end() {
        let tasks = Tasks::new();
        let spawner = tasks.spawner();
        spawner.spawn(std::future::pending());
        tasks.stop().await;
        assert!(!spawner.is_broken());
    }
}
