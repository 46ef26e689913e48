//! A saga that calls a participant, on trial: no database, no ring. See examples/polyglot.
//!
//! `cargo run -p ring-participant --all-features --example call -- http://127.0.0.1:9000`

use orchestrator_lib::{Context, Key, Saga, Step, StepError, testing::Trial};
use ring_participant::client::{Client, Fixed, Settings, Target};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    cents: u64,
    /// Whether the parcel gets lost, so that the charge is undone.
    lost: bool,
}

#[derive(Serialize)]
struct Charge {
    cents: u64,
}

#[derive(Serialize, Deserialize)]
struct Receipt {
    receipt: u64,
}

const CHARGE: Key<Receipt> = Key::new("charge");

async fn ship(cx: Context, order: Order) -> Result<(), StepError> {
    let paid = cx.result(CHARGE)?;
    if order.lost {
        let receipt = paid.receipt;
        return Err(StepError::business(format!(
            "the parcel of {receipt} is lost"
        )));
    }
    Ok(())
}

fn place_order(payment: &Target) -> Result<Saga<Order>, Box<dyn std::error::Error>> {
    Ok(Saga::<Order>::new("place-order", 1)
        // Charges and, should it come to that, refunds.
        .step(payment.step(CHARGE, |order: &Order, _| {
            let cents = order.cents;
            Ok(Charge { cents })
        }))
        .step(Step::new("ship", ship))
        .build()?)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example tells what it sees")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let payment = std::env::args().nth(1);
    let payment = payment.unwrap_or_else(|| "http://127.0.0.1:9000".to_owned());
    let nodes = Fixed::new().service("payment", [&*payment])?;
    let client = Client::new(nodes, Settings::default())?;
    let saga = place_order(&client.target("payment"))?;
    for order in [
        Order {
            cents: 700,
            lost: false,
        },
        Order {
            cents: 700,
            lost: true,
        },
        Order {
            cents: 700_000,
            lost: false,
        },
    ] {
        let told = Trial::of(&saga).run(order).await?;
        println!("{:?}: {:?}", told.calls, told.ended);
    }
    Ok(())
}
