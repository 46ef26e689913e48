//! A saga and its participants, together: in Rust over HTTP, and in Python without our SDK.
#![cfg(all(feature = "client", feature = "http"))]

use std::{
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orchestrator_lib::{Context, Ended, Key, Recovery, Saga, Step, StepError, testing::Trial};
use ring_participant::{
    client::{Client, Fixed, Settings},
    token::{Key as Secret, Signer, Verifier},
    worker::{Call, Plain, Refusal, Worker},
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    cents: u64,
    lost: bool,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    receipt: u64,
}

const CHARGE: Key<Receipt> = Key::new("charge");

async fn ship(cx: Context, order: Order) -> Result<(), StepError> {
    let Receipt { receipt } = cx.result(CHARGE)?;
    if order.lost {
        return Err(StepError::business(format!("parcel {receipt} is lost")));
    }
    Ok(())
}

fn charging(client: &Client) -> Checked<Saga<Order>> {
    let charge = client.target("payment").step(CHARGE, |order: &Order, _| {
        Ok(serde_json::json!({ "cents": order.cents }))
    });
    let saga = Saga::<Order>::new("place-order", 1)
        .step(charge)
        .step(Step::new("ship", ship));
    Ok(saga.build()?)
}

async fn serve(worker: &Worker) -> Checked<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/pay", listener.local_addr()?);
    // Below a path of the service's own.
    let router = axum::Router::new().nest("/pay", worker.router());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(base)
}

/// What a worker in Rust was asked for.
#[derive(Clone, Default)]
struct Books(Arc<Mutex<Vec<String>>>);

impl Books {
    fn note(&self, what: String) -> usize {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(what);
        notes.len()
    }

    fn worker(&self, verifier: Verifier) -> Checked<Worker> {
        let (charges, refunds) = (self.clone(), self.clone());
        let work = Plain::new(move |call: Call, ask: serde_json::Value| {
            // The first attempt of each call is not answered in time.
            let first = call.attempt() == 1;
            let count = charges.note(format!("charge {}", ask["cents"]));
            async move {
                if first {
                    return Err(Refusal::transient("not yet"));
                }
                Ok::<_, Refusal>(Receipt {
                    receipt: count as u64,
                })
            }
        });
        let work = work.compensate(move |_: Call, ask: serde_json::Value, paid| {
            refunds.note(format!("refund {} {paid:?}", ask["cents"]));
            std::future::ready(Ok(()))
        });
        Ok(Worker::builder()
            .on("charge", work)
            .verify(verifier)
            .build()?)
    }
}

#[tokio::test]
async fn a_saga_charges_over_http_and_refunds_with_the_receipt() -> Checked {
    let secret = || Secret::new("k1", "s".repeat(32));
    let books = Books::default();
    let worker = books.worker(Verifier::new("payment").key(secret()?))?;
    let base = serve(&worker).await?;
    let settings = Settings {
        signer: Some(Signer::new("orders", secret()?)),
        ..Settings::default()
    };
    let client = Client::new(Fixed::new().service("payment", [&*base])?, settings)?;
    let saga = charging(&client)?;

    let told = Trial::of(&saga)
        .run(Order {
            cents: 7,
            lost: false,
        })
        .await?;
    assert_eq!(told.calls, ["charge", "charge", "ship"]);
    let told = Trial::of(&saga)
        .run(Order {
            cents: 8,
            lost: true,
        })
        .await?;
    assert_eq!(told.calls, ["charge", "charge", "ship", "undo charge"]);
    assert!(
        matches!(told.ended, Some(Ended::Compensated { .. })),
        "{told:?}"
    );
    let notes = books.0.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(notes[4], "refund 8 Some(Receipt { receipt: 4 })");
    Ok(())
}

#[tokio::test]
async fn without_a_token_the_saga_waits_and_undoes_nothing() -> Checked {
    let books = Books::default();
    let secret = Secret::new("k1", "s".repeat(32))?;
    let base = serve(&books.worker(Verifier::new("payment").key(secret))?).await?;
    let client = Client::new(
        Fixed::new().service("payment", [&*base])?,
        Settings::default(),
    )?;
    let charge = client
        .target("payment")
        .action(CHARGE, |order: &Order, _| Ok(order.cents));
    let saga = Saga::<Order>::new("place-order", 1)
        .step(charge.recovery(Recovery::ForwardOnly))
        .build()?;
    let trial = Trial::of(&saga);
    let run = trial.run(Order {
        cents: 7,
        lost: false,
    });
    // Retried and retried: a trial ends with the lifetime or after its most calls.
    let told = tokio::time::timeout(Duration::from_secs(60), run).await??;
    assert!(told.calls.len() > 3 && told.calls.iter().all(|call| call == "charge"));
    assert!(
        books
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    );
    Ok(())
}

/// The worker of examples/polyglot and its address; none without Python.
async fn python() -> Checked<Option<(Child, String)>> {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/polyglot/worker.py"
    );
    let started = Command::new("python3")
        .arg(script)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let Ok(mut child) = started else {
        return Ok(None);
    };
    let out = child.stdout.take().ok_or("no output")?;
    let mut lines = BufReader::new(out).lines();
    let base = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await??;
    // Whoever stops reading stops a writer one day.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok(base.map(|base| (child, base)))
}

#[tokio::test]
async fn a_worker_in_thirty_lines_of_python_takes_part() -> Checked {
    let Some((mut child, base)) = python().await? else {
        return Ok(());
    };
    let client = Client::new(
        Fixed::new().service("payment", [&*base])?,
        Settings::default(),
    )?;
    let saga = charging(&client)?;
    for (order, calls, completed) in [
        (
            Order {
                cents: 700,
                lost: false,
            },
            vec!["charge", "ship"],
            true,
        ),
        (
            Order {
                cents: 700,
                lost: true,
            },
            vec!["charge", "ship", "undo charge"],
            false,
        ),
        (
            Order {
                cents: 700_000,
                lost: false,
            },
            vec!["charge"],
            false,
        ),
    ] {
        let told = Trial::of(&saga).run(order).await?;
        assert_eq!(told.calls, calls);
        assert!(
            told.ended
                .is_some_and(|end| end.is_completed() == completed)
        );
    }
    child.kill().await?;
    Ok(())
}
