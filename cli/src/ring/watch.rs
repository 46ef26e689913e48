//! `ringsaga ring watch`: windows and events as they come, one line each.

use ring_core::{
    subject::Subject,
    wire::{Event, Fact, GrantWire, Publication, Tx},
};
use serde::Serialize;

use super::ear::{Ear, Heard, hear};
use crate::{args::Watch, output};

#[derive(Serialize)]
struct Line<'a, T> {
    subject: String,
    #[serde(flatten)]
    body: &'a T,
}

/// Prints until the connection or the reader ends.
pub(crate) async fn run(watch: &Watch, json: bool) -> anyhow::Result<()> {
    let ear = Ear::open(&watch.seen).await?;
    let mut from = ear.listen().await?;
    let mut left = watch.count.unwrap_or(u64::MAX);
    while left > 0 {
        let Some(heard) = hear(&mut from).await else {
            break;
        };
        let printed = match heard {
            Heard::Published(subject, body) => published(&ear, &subject, &body, json)?,
            Heard::Event(subject, event) => happened(&subject, &event, json)?,
            Heard::Request(_) => false,
            Heard::Strange(why) => {
                output::chatter(&format!("dropped: {why}"));
                false
            }
        };
        left -= u64::from(printed);
    }
    Ok(())
}

fn published(ear: &Ear, subject: &Subject, body: &Publication, json: bool) -> anyhow::Result<bool> {
    let Publication::Grant(grant) = body else {
        return Ok(false);
    };
    if !ear.wants(&grant.service) {
        return Ok(false);
    }
    if json {
        output::json(&Line {
            subject: subject.to_string(),
            body,
        })?;
    } else {
        output::line(&grant_line(subject, grant))?;
    }
    Ok(true)
}

fn happened(subject: &Subject, event: &Event, json: bool) -> anyhow::Result<bool> {
    if json {
        output::json(&Line {
            subject: subject.to_string(),
            body: event,
        })?;
    } else {
        output::line(&event_line(subject, event))?;
    }
    Ok(true)
}

fn grant_line(subject: &Subject, grant: &GrantWire) -> String {
    let from = grant
        .parent
        .as_ref()
        .map_or_else(String::new, |p| format!(" of {}", p.slave));
    format!(
        "window  {} {} n={} {}{from} {}/{} {} {}",
        subject.scope,
        grant.service,
        grant.window,
        grant.holder,
        grant.index + 1,
        grant.members,
        output::share(grant.range.ppm()),
        grant.range,
    )
}

fn event_line(subject: &Subject, event: &Event) -> String {
    let by = &event.by.id;
    let at = event.at.0.rfc3339();
    format!(
        "event   {} {at} {by} {}",
        subject.scope,
        sentence(&event.fact)
    )
}

/// An event in words.
pub(crate) fn sentence(fact: &Fact) -> String {
    match fact {
        Fact::Cut { cut } => {
            let seats = cut.seats.len();
            format!("cut {} n={} among {seats} seats", cut.service, cut.window)
        }
        Fact::Leader { term } => format!("leads, term {term}"),
        Fact::SteppedDown { term, reason } => format!("stepped down, term {term}: {reason}"),
        Fact::Degraded { reason } => format!("degraded: {reason}"),
        Fact::Recovered { reason } => format!("recovered: {reason}"),
        Fact::Joined { role, id, .. } => format!("{role:?} {id} joined"),
        Fact::Left {
            role, id, graceful, ..
        } => {
            format!(
                "{role:?} {id} {}",
                if *graceful { "left" } else { "fell silent" }
            )
        }
        Fact::Frozen {
            service,
            slave,
            window,
            range,
        } => {
            let share = output::share(range.ppm());
            format!("{service} n={window}: {slave}'s seat is frozen ({share})")
        }
        Fact::Thawed {
            service,
            slave,
            window,
        } => {
            format!("{service} n={window}: cut without {slave}")
        }
        Fact::Superseded => "superseded by a newer boot of the same id".to_owned(),
        Fact::Overlap {
            service,
            window,
            range,
        } => {
            format!("{service} n={window}: granted twice: {range}")
        }
        Fact::TxDisabled(tx) => about(tx, "disabled"),
        Fact::TxTerminated(tx) => about(tx, "terminated"),
        Fact::TxQuarantined(tx) => about(tx, "quarantined"),
        Fact::TxRestored(tx) => about(tx, "restored"),
        Fact::IrreversibleFailed(tx) => about(tx, "stands still half done"),
        Fact::CompensationFailing(tx) => about(tx, "can't be undone so far"),
        Fact::ExecutorMissing {
            service,
            saga,
            version,
            transactions,
            first_expires_at,
        } => {
            let first = first_expires_at.0.rfc3339();
            format!(
                "{service}: nobody runs {saga} v{version}: {transactions} wait, first until {first}"
            )
        }
        Fact::RetryNodeMissing {
            service,
            transactions,
        } => {
            format!("{service}: no retry node lives: {transactions} wait")
        }
        Fact::TargetDown { target } => format!("{target} is down: its transactions wait"),
        Fact::TargetUp { target } => format!("{target} works again"),
    }
}

fn about(tx: &Tx, what: &str) -> String {
    let Tx {
        transaction,
        saga,
        version,
        reason,
        ..
    } = tx;
    format!("{what} {transaction} ({saga} v{version}): {reason}")
}
