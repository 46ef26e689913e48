//! The engine as a service uses it: a node, a saga of three steps that do nothing, start and wait.

use std::{sync::Arc, time::Duration};

use orchestrator_lib::{Config, Context, Node, Saga, Step, StepError};

use crate::{
    Outcome,
    measure::{self, Round, Runs},
};

/// The input as JSON, the same in both programs: about what an order's ids and amounts take.
pub(crate) const INPUT: &str = r#""order 4711, customer 0815, 3 items, 20.00 EUR, ship to 12345""#;

/// Nothing here takes longer, unless the engine hangs.
const LIMIT: Duration = Duration::from_secs(30);

struct Engine {
    node: Node,
    saga: Saga<String>,
    input: String,
}

impl Runs for Engine {
    async fn one(&self, number: u64) -> Outcome<()> {
        let key = format!("order-{number}");
        let started = self.node.start(&self.saga, key, self.input.clone()).await?;
        let ended = self.node.wait(started.id, LIMIT).await?;
        if ended.is_completed() {
            Ok(())
        } else {
            Err(format!("a saga ended otherwise: {ended:?}").into())
        }
    }
}

/// A step that does nothing.
pub(crate) async fn nothing(_: Context, _: String) -> Result<(), StepError> {
    Ok(())
}

/// One round on an empty database.
pub(crate) async fn run(url: &str, in_flight: usize) -> Outcome<Round> {
    let saga = Saga::<String>::new("three-steps", 1)
        .step(Step::new("a", nothing))
        .step(Step::new("b", nothing))
        .step(Step::new("c", nothing))
        .build()?;
    // Without room a start would be left to a later poll.
    let node = node(url, &saga, 2 * in_flight).await?;
    let input = serde_json::from_str(INPUT)?;
    let engine = Arc::new(Engine { node, saga, input });
    let round = measure::closed_loop(Arc::clone(&engine), in_flight).await?;
    let _ = engine.node.drain().await;
    Ok(round)
}

/// A node with room for so many.
pub(crate) async fn node(url: &str, saga: &Saga<String>, capacity: usize) -> Outcome<Node> {
    let mut config = Config::new("bench", "main", "orders", "orders-1", url)?;
    config.migrate_on_start = true;
    config.capacity = capacity;
    let node = Node::builder(config)
        .saga(saga.clone())
        .retry_node(true)
        .start()
        .await?;
    Ok(node)
}
