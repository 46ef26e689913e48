//! Callers that stop waiting: a future dropped after each number of polls leaves every invariant
//! whole, and who asks again hears what was done.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use ring_core::store::{Started, Written};

use super::{
    Rules, check,
    lane::{Fallible, Lane},
    schedule::Schedule,
    verb::{Answer, Verb},
    world::World,
};
use crate::store_support::Checked;

/// More polls than any verb needs.
const MOST: usize = 40;

/// A future that is dropped after so many polls that did not end it.
pub(crate) struct Impatient<F> {
    asked: Option<Pin<Box<F>>>,
    polls: usize,
}

impl<F> Impatient<F> {
    pub(crate) fn new(asked: F, polls: usize) -> Self {
        Self {
            asked: Some(Box::pin(asked)),
            polls,
        }
    }
}

impl<F: Future> Future for Impatient<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(asked) = &mut self.asked else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(answer) = asked.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        self.polls = self.polls.saturating_sub(1);
        if self.polls > 0 {
            return Poll::Pending;
        }
        self.asked = None;
        Poll::Ready(None)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_stops_waiting_at_any_point_breaks_nothing() -> Checked {
    let mut lane = Lane::new(Rules::default(), "").await?;
    let (mut dropped, mut failures) = (0, String::new());
    for world in World::ALL {
        for verb in world.effective() {
            for polls in 1..MOST {
                let (was_dropped, broken) = drop_after(&mut lane, *world, *verb, polls).await?;
                failures.extend(broken);
                dropped += usize::from(was_dropped);
                if !was_dropped {
                    break;
                }
            }
        }
    }
    lane.close().await;
    println!("{dropped} futures dropped");
    assert!(failures.is_empty(), "{failures}");
    assert!(dropped >= 50, "{dropped} futures dropped");
    Ok(())
}

async fn drop_after(
    lane: &mut Lane,
    world: World,
    verb: Verb,
    polls: usize,
) -> Fallible<(bool, Option<String>)> {
    let schedule = Schedule {
        world,
        verbs: vec![verb],
        turns: Vec::new(),
        fault: None,
    };
    let seen = lane.impatient(&schedule, polls).await?;
    let was_dropped = seen.sessions[0].dropped;
    let mut broken = check::broken(&seen, world, was_dropped);
    // Nobody else was there: whatever the first asking did, the second finds it or does it.
    match &seen.sessions[0].answer {
        Some(Answer::Written(Ok(Written::Done { .. } | Written::Already { .. })))
        | Some(Answer::Started(Ok(Started::New(_)))) => {}
        Some(Answer::Written(other)) => broken.push(format!("asked again: {other:?}")),
        Some(Answer::Started(other)) => broken.push(format!("asked again: {other:?}")),
        _ => {}
    }
    lane.clear(&seen.sessions).await?;
    let word = (verb.word(), world.word());
    let story = (!broken.is_empty()).then(|| format!("{word:?} after {polls} polls: {broken:?}\n"));
    Ok((was_dropped, story))
}
