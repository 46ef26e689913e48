//! Sub-sagas of a trial: each a row of its own, run where it is started.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use ring_core::saga::{Call, Outcome, Payload};

use super::{
    faults::{Faults, Script},
    row::Row,
};
use crate::{
    Ended, StepError,
    context::Shared,
    engine::{Answer, Children},
    saga::Definition,
};

/// Sub-sagas, run where they are started: a trial has one thread of time.
pub(super) struct Nested {
    shared: Shared,
    rows: Mutex<BTreeMap<String, Row>>,
}

impl Nested {
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            rows: Mutex::default(),
        }
    }

    fn take(&self, key: &str) -> Option<Row> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.remove(key)
    }

    fn put(&self, key: String, row: Row) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.insert(key, row);
    }
}

impl Children for Nested {
    fn start(&self, child: Arc<Definition>, call: Call, input: Payload) -> Answer<'_> {
        Box::pin(async move {
            let key = call.step.to_string();
            let mut row = match self.take(&key) {
                Some(row) => row,
                None => Row::new(&child, input, Vec::new()),
            };
            if row.told.ended.is_none() {
                let (script, faults) = (Script::default(), Faults::default());
                Box::pin(row.run(&child, &self.shared, script, faults)).await;
            }
            let outcome = match &row.told.ended {
                Some(Ended::Completed(output)) => Ok(Outcome::Done(output.0.clone())),
                Some(Ended::Compensated { reason }) => Err(StepError::business(reason)),
                ended => Err(StepError::persistent(format_args!(
                    "the sub-saga: {ended:?}"
                ))),
            };
            self.put(key, row);
            outcome
        })
    }

    fn undo(&self, child: Arc<Definition>, call: Call) -> Answer<'_> {
        Box::pin(async move {
            let key = call.step.to_string();
            let Some(mut row) = self.take(&key) else {
                return Ok(Outcome::Done(Payload::null()));
            };
            if matches!(row.told.ended, Some(Ended::Completed(_))) {
                row.reopen();
                let (script, faults) = (Script::default(), Faults::default());
                Box::pin(row.run(&child, &self.shared, script, faults)).await;
            }
            let undone = matches!(row.told.ended, Some(Ended::Compensated { .. }));
            let ended = format!("the sub-saga can't be undone: {:?}", row.told.ended);
            self.put(key, row);
            if undone {
                return Ok(Outcome::Done(Payload::null()));
            }
            Err(StepError::persistent(ended))
        })
    }
}
