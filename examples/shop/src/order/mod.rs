//! The order service: takes orders over HTTP and runs each as a transaction of one saga.
//!
//! Links the saga library; several instances share the work, whichever of them dies. Read
//! [`mod@saga`] first.

mod config;
mod embedded;
mod http;
pub mod saga;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use orchestrator_lib::{Node, Saga};
use ring_participant::client::{Client, Fixed, Settings};
use ring_shell::{
    BUILD,
    health::{self, Pages},
};

pub use self::config::Config;
use self::embedded::Coordinators;
use crate::{Process, serve, wire::Order};

/// A host that does not answer at all is away; one that does, answers at once.
const CONNECT: Duration = Duration::from_secs(1);

/// What a request needs; the node comes when the database has answered.
#[derive(Clone, Debug)]
pub(crate) struct Shop {
    node: Arc<OnceLock<Node>>,
    saga: Saga<Order>,
}

/// Runs the service until it is asked to end, or a newer process has its id.
pub(crate) async fn run(config: Config, process: Process) -> anyhow::Result<()> {
    let shop = Shop {
        node: Arc::default(),
        saga: saga(&config)?,
    };
    let listener = serve::bind(config.listen).await?;
    let ready = shop.clone();
    let pages = health::router(Pages {
        ready: Arc::new(move || ready.unready()),
        numbers: Some(process.numbers.clone()),
        name: "shop-order",
        version: BUILD,
    });
    let pages = pages.merge(http::routes(shop.clone()));
    let work = async {
        let mut coordinators = Coordinators::start(&config, &process);
        let work = work(&config, &shop, &process);
        tokio::pin!(work);
        let ended = tokio::select! {
            ended = &mut work => ended,
            // Without them the service would go on by the sweeper alone, and nobody would know.
            error = coordinators.broken() => {
                tracing::error!(error = format!("{error:#}"), "leaving");
                process.shutdown.cancel();
                work.await.and(Err(error))
            }
        };
        // What ended it comes first.
        let left = coordinators.left().await;
        ended.and(left)
    };
    serve::during(listener, pages, work).await
}

/// The saga over the participants that the configuration names.
fn saga(config: &Config) -> anyhow::Result<Saga<Order>> {
    let nodes = Fixed::new()
        .service("inventory", [config.inventory.as_str()])?
        .service("payment", [config.payment.as_str()])?;
    let client = Client::new(
        nodes,
        Settings {
            connect_within: CONNECT,
            answer_within: config.patience.time_limit,
            ..Settings::default()
        },
    )?;
    let [inventory, payment] = ["inventory", "payment"].map(|name| client.target(name));
    Ok(saga::place_order(&inventory, &payment, &config.patience)?)
}

async fn work(config: &Config, shop: &Shop, process: &Process) -> anyhow::Result<()> {
    let node = Node::builder(config.node.clone()).saga(shop.saga.clone());
    let starting = node.start();
    let Some(node) = process.shutdown.run_until_cancelled(starting).await else {
        return Ok(()); // asked to end before the database answered
    };
    let node = node?;
    // Nobody else sets it.
    drop(shop.node.set(node.clone()));
    tokio::select! {
        () = process.shutdown.cancelled() => {
            let left = node.drain().await;
            tracing::info!(?left, "drained");
            Ok(())
        }
        ended = node.ended() => Ok(ended?),
    }
}

impl Shop {
    fn unready(&self) -> Vec<String> {
        match self.node.get() {
            Some(node) => node.ready(),
            None => vec!["the node is starting: the database has not answered yet".to_owned()],
        }
    }
}
