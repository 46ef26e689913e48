//! An expense that a person approves: a signal with a deadline, and a decision on its amount.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@localhost/orders cargo run -p orchestrator-lib --example approval
//! ```
//!
//! Small amounts are paid at once. Larger ones wait for a person, for days if need be: nothing is
//! held meanwhile, any node goes on when the answer comes. Who does not answer in time has refused.

use std::time::Duration;

use orchestrator_lib::{Config, Context, Ended, Key, Node, Saga, Step, StepError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Serialize, Deserialize)]
struct Expense {
    who: String,
    cents: u64,
}

/// What the person says. Its name is the signal's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Approval {
    by: String,
    granted: bool,
}

const APPROVAL: Key<Approval> = Key::new("approval");

async fn file(_: Context, expense: Expense) -> Result<String, StepError> {
    Ok(format!("{}: {} cents", expense.who, expense.cents))
}

async fn withdraw(_: Context, _: Expense, _: Option<String>) -> Result<(), StepError> {
    Ok(())
}

async fn pay(cx: Context, expense: Expense) -> Result<String, StepError> {
    // There is no approval where none was needed; one that can't be read is an error.
    match cx.find(APPROVAL)? {
        Some(Approval { by, granted: false }) => {
            Err(StepError::business(format_args!("{by} says no")))
        }
        Some(Approval { by, .. }) => Ok(format!("{} cents, approved by {by}", expense.cents)),
        None => Ok(format!("{} cents", expense.cents)),
    }
}

fn saga(deadline: Duration) -> Result<Saga<Expense>, orchestrator_lib::Mistakes> {
    Saga::new("expense", 1)
        .step(Step::new("file", file).compensate(withdraw))
        .when(
            "large",
            |_, expense: &Expense| Ok(expense.cents > 10_000),
            |flow| flow.step(Step::signal(APPROVAL).within(deadline)),
        )
        .step(Step::new("pay", pay))
        .lifetime(Duration::from_secs(7 * 24 * 3600))
        .build()
}

/// Three expenses: a small one, one that is approved, one that nobody looks at.
pub(crate) async fn run(mut config: Config) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    config.migrate_on_start = true;
    let saga = saga(Duration::from_secs(3))?;
    let node = Node::builder(config)
        .saga(saga.clone())
        .retry_node(true)
        .start()
        .await?;
    let mut told = Vec::new();
    for (who, cents) in [("ann", 900), ("bob", 50_000), ("eve", 70_000)] {
        let expense = Expense {
            who: who.into(),
            cents,
        };
        let key = format!("expense-of-{who}-{}", Uuid::new_v4());
        let started = node.start(&saga, key, expense).await?;
        if who == "bob" {
            let granted = Approval {
                by: "the boss".into(),
                granted: true,
            };
            // In a service this is the handler of the button that the boss clicks; the id makes a
            // double click harmless.
            node.signal(Uuid::new_v4(), started.id, APPROVAL, &granted)
                .await?;
        }
        told.push(
            match node.wait(started.id, Duration::from_secs(60)).await? {
                Ended::Completed(paid) => format!("{who}: paid {}", paid.read::<String>()?),
                Ended::Compensated { reason } => format!("{who}: withdrawn, because {reason}"),
                ended @ (Ended::Terminated { .. }
                | Ended::Disabled { .. }
                | Ended::Quarantined { .. }) => format!("{who}: a person is needed: {ended:?}"),
            },
        );
    }
    node.drain().await;
    Ok(told)
}

#[cfg_attr(test, expect(dead_code, reason = "the test calls run"))]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an example has no configuration file"
    )]
    let url = std::env::var("DATABASE_URL")?;
    let config = Config::new("local", "example", "expenses", "expenses-1", url)?;
    #[expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]
    for line in run(config).await? {
        println!("{line}");
    }
    Ok(())
}
