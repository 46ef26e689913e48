//! A participant: an HTTP service with a database of its own, called by sagas.
//!
//! What it does for a step is a function over a database transaction ([`inventory`], [`payment`]);
//! that a call which comes twice, late or in the wrong order is harmless, `ring-participant` does.

mod config;
mod database;
pub mod faults;
pub mod inventory;
pub mod payment;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    middleware,
    routing::{get, post},
};
use ring_participant::worker::Worker;
use ring_shell::{
    BUILD,
    health::{self, Pages},
};

pub use self::{
    config::Config,
    database::Database,
    faults::{Faults, Hold, Mode},
    payment::DECLINED,
};
use crate::{Process, Service, serve};

/// Runs a participant until it is asked to end.
pub(crate) async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let listener = serve::bind(config.listen).await?;
    let database = Database::new(&config.database, config.schema())?;
    let faults = Arc::new(Faults::default());
    let worker = match config.service {
        Service::Payment => payment::worker(&database)?,
        Service::Inventory | Service::Order => inventory::worker(&database, config.stock)?,
    };
    let ready = database.clone();
    let pages = health::router(Pages {
        ready: Arc::new(move || ready.unready()),
        numbers: Some(process.numbers),
        name: config.name(),
        version: BUILD,
    });
    let pages = pages.merge(routes(&worker, faults));
    serve::during(listener, pages, async {
        process
            .shutdown
            .run_until_cancelled(database.prepare())
            .await
            .transpose()?;
        process.shutdown.cancelled().await;
        Ok(())
    })
    .await
}

/// The steps behind their switches, and the switches, which always work.
pub fn routes(worker: &Worker, faults: Arc<Faults>) -> Router {
    let held = middleware::from_fn_with_state(Arc::clone(&faults), faults::held);
    let switched = middleware::from_fn_with_state(Arc::clone(&faults), faults::switched);
    let switches = get(async |State(faults): State<Arc<Faults>>| Json(faults.mode()));
    let switches = switches.post(
        async |State(faults): State<Arc<Faults>>, Json(mode): Json<Mode>| {
            faults.switch(mode);
            Json(mode)
        },
    );
    let holds = post(faults::hold);
    let switches = Router::new()
        .route("/faults", switches)
        .route("/holds", holds);
    worker
        .router()
        .layer(held)
        .layer(switched)
        .merge(switches.with_state(faults))
}
