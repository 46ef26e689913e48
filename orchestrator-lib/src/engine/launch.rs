//! From a claimed row to a running task, and what is told when it stopped.

use std::sync::{Arc, atomic::Ordering};

use ring_core::{
    id::{SagaName, TransactionId},
    saga::{State, Stopped, Transaction, Unrunnable},
    store::{Claimed, Incarnation, SUSPECT_FROM},
    wire::{Fact, Tx},
};

use super::{
    Engine,
    inflight::{Entering, Room, Slot},
    run::{Ran, Run},
};
use crate::{
    context::Here,
    node::{Ended, Output},
    saga::Definition,
    store::Outcome,
    telemetry::{CLAIMED, IN_FLIGHT, STOPPED},
};

impl Engine {
    /// Runs what a look claimed, each in the room that was kept for it.
    pub(super) fn launch_all(
        self: &Arc<Self>,
        incarnation: Incarnation,
        rows: Vec<Claimed>,
        room: Vec<Room>,
        way: &'static str,
    ) {
        for (claimed, room) in rows.into_iter().zip(room) {
            self.meter.count_as(CLAIMED, "way", way);
            let definition = self.definition(&claimed.saga, claimed.version);
            let here = Here {
                transaction: claimed.id,
                saga: claimed.saga.clone(),
            };
            let suspect = claimed.deaths >= SUSPECT_FROM;
            let nonce = claimed.fence.nonce;
            let entering = Entering {
                id: claimed.id,
                saga: claimed.saga.clone(),
                nonce,
                incarnation,
                suspect,
            };
            let slot = self.in_flight.enter(entering, room);
            let plan = definition.as_ref().map(|d| Arc::clone(&d.plan));
            let version = claimed.version;
            let machine = Transaction::new(plan, claimed);
            self.launch(definition, version, machine, here, slot);
        }
    }

    pub(super) fn launch(
        self: &Arc<Self>,
        definition: Option<Arc<Definition>>,
        version: u32,
        machine: Transaction,
        here: Here,
        slot: Slot,
    ) {
        let engine = Arc::clone(self);
        let Here { transaction, saga } = here.clone();
        let run = Run::new(Arc::clone(self), definition, machine, here, slot);
        self.in_flight_changed();
        self.spawn(async move {
            // The slot is left before anybody is told.
            let ran = run.run().await;
            engine.in_flight_changed();
            engine.stopped(transaction, &saga, version, ran).await;
        });
    }

    pub(super) fn definition(&self, saga: &SagaName, version: u32) -> Option<Arc<Definition>> {
        self.sagas.get(&(saga.clone(), version)).cloned()
    }

    fn in_flight_changed(&self) {
        #[expect(clippy::cast_precision_loss, reason = "a metric")]
        self.meter.set(IN_FLIGHT, self.in_flight.running() as f64);
    }

    async fn stopped(&self, id: TransactionId, saga: &SagaName, version: u32, ran: Ran) {
        let result = match &ran.stopped {
            Stopped::Settled(state) => state.as_str(),
            Stopped::Parked => "parked",
            Stopped::HandedBack => "handed_back",
            Stopped::Lost => "lost",
            Stopped::Unrunnable(_) => "unrunnable",
            Stopped::Refused(_) => "refused",
            Stopped::Inconsistent(_) => "inconsistent",
        };
        self.meter.count_as(STOPPED, "result", result);
        tracing::debug!(%id, %saga, result, "a run stopped");
        match ran.stopped {
            Stopped::Settled(state) => {
                self.waits
                    .ended(id, ran.result.map(|r| Ended::Completed(Output(r))));
                let reason = ran.why.unwrap_or_default();
                self.announce_end(id, saga, version, state, reason).await;
            }
            Stopped::HandedBack => {
                self.handed_back.fetch_add(1, Ordering::Relaxed);
            }
            Stopped::Unrunnable(Unrunnable::Mismatch(why)) => {
                tracing::error!(%id, %saga, version, %why, "can't be run by the definition here");
            }
            Stopped::Refused(why) => tracing::error!(%id, %saga, %why, "the store refuses it"),
            Stopped::Inconsistent(why) => tracing::error!(%id, %saga, %why, "let go of"),
            Stopped::Parked | Stopped::Lost | Stopped::Unrunnable(Unrunnable::Missing(_)) => {}
        }
    }

    /// An end that a look met on its way, as the row says it.
    pub(super) async fn announce_met(&self, end: Outcome) {
        self.meter.count_as(STOPPED, "result", end.state.as_str());
        let reason = end.error.unwrap_or_default();
        self.announce_end(end.id, &end.saga, end.version, end.state, reason)
            .await;
    }

    /// Ends that a person must see are events and warnings.
    pub(super) async fn announce_end(
        &self,
        transaction: TransactionId,
        saga: &SagaName,
        version: u32,
        state: State,
        reason: String,
    ) {
        let kind = match state {
            State::Disabled => Fact::TxDisabled,
            State::Terminated => Fact::TxTerminated,
            State::Quarantined => Fact::TxQuarantined,
            State::Running | State::Paused | State::Completed | State::Compensated => return,
        };
        tracing::warn!(id = %transaction, %saga, state = state.as_str(), reason, "a person is needed");
        let service = self.config.service.clone();
        let tx = Tx::new(transaction, service, saga.clone(), version, &reason);
        self.announcer.tell(kind(tx)).await;
    }
}
