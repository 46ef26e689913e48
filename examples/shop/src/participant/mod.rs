//! A participant: an HTTP service with a database of its own, called by sagas.
//!
//! Read [`barrier`] first: what makes a call that comes twice, late or in the wrong order
//! harmless. It knows nothing of sagas but that a call's key names transaction, direction and step.

mod answer;
pub mod barrier;
mod config;
mod database;
pub mod faults;
mod inventory;
mod payment;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    middleware,
    routing::{get, post},
};
use ring_shell::{
    BUILD,
    health::{self, Pages},
};

pub use self::{
    answer::{Answer, KEY},
    barrier::{Barrier, Direction, Entered, Key},
    config::Config,
    database::Database,
    faults::{Faults, Hold, Mode},
    inventory::Inventory,
    payment::{DECLINED, Payment},
};
use crate::{Process, Service, serve};

/// Runs a participant until it is asked to end.
pub(crate) async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let listener = serve::bind(config.listen).await?;
    let database = Database::new(&config.database, config.schema())?;
    let faults = Arc::new(Faults::default());
    let business = match config.service {
        Service::Payment => payment::routes(Payment::new(database.clone(), Arc::clone(&faults))),
        Service::Inventory | Service::Order => {
            inventory::routes(Inventory::new(database.clone(), config.stock))
        }
    };
    let ready = database.clone();
    let pages = health::router(Pages {
        ready: Arc::new(move || ready.unready()),
        numbers: Some(process.numbers),
        name: config.name(),
        version: BUILD,
    });
    let pages = pages.merge(routes(business, faults));
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

/// The business behind its switches, and the switches, which always work.
fn routes(business: Router, faults: Arc<Faults>) -> Router {
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
    business.layer(switched).merge(switches.with_state(faults))
}
