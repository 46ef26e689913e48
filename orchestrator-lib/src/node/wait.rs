//! Waiting for an end: told at once when it comes here, looked up with a growing pause otherwise.

use std::time::Duration;

use ring_core::{
    id::TransactionId,
    saga::{Attempt, Direction, Entry, Payload, State},
};

use serde::de::DeserializeOwned;

use crate::{Ended, Error, Key, Output, Reached, engine::Engine, store::Outcome};

/// First look into the store for a transaction that does not run here.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// How late an end elsewhere is seen at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) async fn wait(
    engine: &Engine,
    id: TransactionId,
    within: Duration,
) -> Result<Ended, Error> {
    let mut last = Err(Error::NoTransaction(id));
    let found = tokio::time::timeout(within, until_ended(engine, id, &mut last)).await;
    match (found, last) {
        (Ok(ended), _) => ended,
        (Err(_), Ok(state)) => Err(Error::NotEnded { id, state }),
        (Err(_), Err(error)) => Err(error),
    }
}

pub(super) async fn step<R: DeserializeOwned>(
    engine: &Engine,
    id: TransactionId,
    key: Key<R>,
    within: Duration,
) -> Result<Reached<R>, Error> {
    let mut last = Err(Error::NoTransaction(id));
    let found = tokio::time::timeout(within, until_reached(engine, id, key, &mut last)).await;
    match (found, last) {
        (Ok(reached), _) => reached,
        (Err(_), Ok(state)) => Err(Error::NotEnded { id, state }),
        (Err(_), Err(error)) => Err(error),
    }
}

async fn until_reached<R: DeserializeOwned>(
    engine: &Engine,
    id: TransactionId,
    key: Key<R>,
    last: &mut Result<State, Error>,
) -> Result<Reached<R>, Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        match engine.operator.show(id).await {
            Ok(None) => return Err(Error::NoTransaction(id)),
            Ok(Some(shown)) => {
                let forward = |e: &&Entry| {
                    e.position.direction == Direction::Forward && e.step.as_str() == key.name()
                };
                let record = shown.log.iter().find(forward).map(|e| &e.attempt);
                if let Some(Attempt::Done(result)) = record {
                    let result = result.clone();
                    return Output(result).read().map(Reached::Done);
                }
                let (state, at) = (shown.summary.state, shown.summary.position);
                if state.is_settled() || at.direction == Direction::Compensating {
                    return Ok(Reached::Passed);
                }
                *last = Ok(state);
            }
            Err(error) => *last = Err(error.into()),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Ends with the end, or when there is none to wait for; `last` holds what was seen meanwhile.
async fn until_ended(
    engine: &Engine,
    id: TransactionId,
    last: &mut Result<State, Error>,
) -> Result<Ended, Error> {
    let mut wait = engine.wait(id);
    let mut pause = FIRST_PAUSE;
    loop {
        // What runs here tells its end by itself.
        let look_in = if engine.runs(id) {
            LONGEST_PAUSE
        } else {
            pause
        };
        if let Ok(Some(ended)) = tokio::time::timeout(look_in, wait.ended()).await {
            return Ok(ended);
        }
        if engine.runs(id) {
            *last = Ok(State::Running);
            continue;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        match engine.store.outcomes(&[id]).await.map(|mut all| all.pop()) {
            Ok(None) => return Err(Error::NoTransaction(id)),
            Ok(Some(outcome)) => {
                *last = Ok(outcome.state);
                if let Some(ended) = ended(engine, outcome).await {
                    return Ok(ended);
                }
            }
            Err(error) => *last = Err(error.into()),
        }
    }
}

async fn ended(engine: &Engine, outcome: Outcome) -> Option<Ended> {
    let (id, said) = (outcome.id, outcome.error.unwrap_or_default());
    Some(match outcome.state {
        State::Running | State::Paused => return None,
        State::Completed => {
            let result = outcome.result.unwrap_or_else(Payload::null);
            Ended::Completed(Output(result))
        }
        State::Compensated => {
            let reason = refusal(engine, id).await.unwrap_or(said);
            Ended::Compensated { reason }
        }
        State::Terminated => Ended::Terminated { reason: said },
        State::Disabled => Ended::Disabled { reason: said },
        State::Quarantined => Ended::Quarantined { reason: said },
    })
}

/// What refused a transaction that was undone: the record of its last action says so.
async fn refusal(engine: &Engine, id: TransactionId) -> Option<String> {
    let shown = engine.operator.show(id).await.ok().flatten()?;
    let forward = |e: &&Entry| e.position.direction == Direction::Forward;
    let last = shown
        .log
        .iter()
        .filter(forward)
        .max_by_key(|e| e.position.seq)?;
    match &last.attempt {
        Attempt::Refused { error, .. } | Attempt::Paused { error, .. } => {
            Some(format!("{}: {error}", last.step))
        }
        Attempt::Done(_) | Attempt::Skipped => None,
    }
}
