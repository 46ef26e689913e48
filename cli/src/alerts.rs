//! Alerts as people see them, straight from Postgres; and a test of a hook, past the store.

use orchestrator_lib::store::{self, Config, Delivery, Listed};
use ring_core::{id::TransactionId, wire::Time};
use ring_notifier::Error;
use secrecy::ExposeSecret;
use serde::Serialize;
use uuid::Uuid;

use crate::{
    args::{Alerts, ListAlerts, RetryHook, StoreOf, TestHook},
    exit::Exit,
    output,
    run::notifier_config,
    tx::{block_on, scope, told},
};

/// Runs an `alerts` command.
pub(crate) fn run(command: Alerts, json: bool) -> anyhow::Result<()> {
    match command {
        Alerts::List(args) => block_on(list(&args, json)),
        Alerts::Test(args) => test(&args),
        Alerts::Retry(args) => block_on(retry(&args)),
    }
}

/// An alert and one of its deliveries.
#[derive(Serialize)]
struct Line {
    id: Uuid,
    at: Time,
    kind: &'static str,
    service: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx: Option<TransactionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<String>,
    delivery: &'static str,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Line {
    fn new(listed: Listed) -> Self {
        let Listed { alert, delivery } = listed;
        let stands = match &delivery {
            None => "no notifier saw it",
            Some(Delivery {
                delivered_at: Some(_),
                ..
            }) => "delivered",
            Some(Delivery {
                given_up_at: Some(_),
                ..
            }) => "given up",
            Some(_) => "on its way",
        };
        let attempts = delivery.as_ref().map_or(0, |d| d.attempts);
        let (hook, error) = delivery.map_or((None, None), |d| (Some(d.hook), d.error));
        Self {
            id: alert.id,
            at: Time(alert.at),
            kind: alert.kind.as_str(),
            service: alert.service,
            tx: alert.transaction,
            step: alert.step,
            text: alert.text,
            hook,
            delivery: stands,
            attempts,
            error,
        }
    }
}

async fn list(args: &ListAlerts, json: bool) -> anyhow::Result<()> {
    let listed = alerts(&args.store)?.list(args.all, args.limit).await;
    let lines: Vec<Line> = listed.map_err(told)?.into_iter().map(Line::new).collect();
    if json {
        return lines.iter().try_for_each(output::json);
    }
    let mut table = output::table(&[
        "AT",
        "KIND",
        "SERVICE",
        "TRANSACTION",
        "TEXT",
        "HOOK",
        "DELIVERY",
        "ERROR",
    ]);
    for line in lines {
        let tx = line.tx.map(|id| id.to_string()).unwrap_or_default();
        table.add_row([
            line.at.0.rfc3339(),
            line.kind.to_owned(),
            line.service,
            tx,
            line.text,
            line.hook.unwrap_or_default(),
            format!("{} ({})", line.delivery, line.attempts),
            line.error.unwrap_or_default(),
        ]);
    }
    output::line(&table.trim_fmt())?;
    Ok(())
}

async fn retry(args: &RetryHook) -> anyhow::Result<()> {
    let again = alerts(&args.store)?.try_again(&args.hook).await;
    let again = again.map_err(told)?;
    output::line(&format!("{again} alerts are due again for {}", args.hook))?;
    Ok(())
}

fn test(args: &TestHook) -> anyhow::Result<()> {
    let config = notifier_config(&args.sourced)?;
    let hook = config.hooks.iter().find(|hook| hook.name() == args.hook);
    let hook = hook.ok_or_else(|| {
        let names: Vec<&str> = config.hooks.iter().map(|hook| hook.name()).collect();
        let says = format!("no hook {:?}: there are {}", args.hook, names.join(", "));
        Exit::NotFound.because(says)
    })?;
    block_on(async {
        match ring_notifier::send_test(hook, &config.scope).await {
            Ok(()) => {
                output::line(&format!("{} took it", args.hook))?;
                Ok(())
            }
            Err(Error::Refused(says)) => Err(Exit::Refused.because(says)),
            Err(error) => Err(error.into()),
        }
    })
}

fn alerts(of: &StoreOf) -> anyhow::Result<store::Alerts> {
    let config = Config::new(of.database.url.expose_secret());
    store::Alerts::new(&config, scope(of)).map_err(told)
}
