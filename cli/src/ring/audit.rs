//! `ringsaga ring audit`: proves from outside, for N windows, that published ranges cover the
//! ring. A window is judged when it ends: late cuts are allowed until then.

use std::{collections::BTreeMap, time::Duration};

use ring_core::{
    id::Scope,
    time::Wall,
    token::Range,
    window::WindowNo,
    wire::{Fact, Publication},
};
use serde::Serialize;

use super::{
    ear::{Ear, Heard, hear},
    ledger::{Ledger, Ring, Verdict},
};
use crate::{args::Audit, exit::Exit, output};

/// One judged window.
#[derive(Serialize)]
struct Row {
    region: String,
    cluster: String,
    service: String,
    window: WindowNo,
    orchestrators: usize,
    holds: bool,
    gaps: Vec<Range>,
    overlaps: Vec<Range>,
    frozen: BTreeMap<String, Range>,
    frozen_ppm: u32,
    changed: u32,
}

/// How far a ring's windows are judged. Its windows follow each other without a break, so one that
/// was never heard of is judged like any other: as one gap.
#[derive(Clone, Copy)]
struct Course {
    /// The next window to judge, and when it is over.
    next: WindowNo,
    ends_at: Wall,
    len: Duration,
    judged: u32,
}

/// Late messages are waited for this long after a window's end.
const LATE: Duration = Duration::from_millis(500);

/// Listens, judges, prints; exit 1 when a window does not hold.
pub(crate) async fn run(audit: &Audit, json: bool) -> anyhow::Result<()> {
    let ear = Ear::open(&audit.seen).await?;
    let mut from = ear.listen().await?;
    let opened = now();
    let mut ledger = Ledger::default();
    let mut courses: BTreeMap<Ring, Course> = BTreeMap::new();
    let (mut failed, mut judged) = (0_u32, 0_u32);
    loop {
        tokio::select! {
            heard = hear(&mut from) => match heard {
                Some(heard) => note(&mut ledger, &ear, heard),
                None => return Err(Exit::NotReachable.because("the connection was closed")),
            },
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        if ear.was_cut_off() {
            return Err(Exit::NotReachable.because(
                "the connection was lost or too slow: what was published meanwhile was not heard, so nothing is proven",
            ));
        }
        let at = now();
        for row in due(&mut ledger, &mut courses, opened, at, audit) {
            judged += 1;
            failed += u32::from(!row.holds);
            print(&row, json)?;
        }
        if !courses.is_empty()
            && courses
                .values()
                .all(|course| course.judged >= audit.windows)
        {
            break;
        }
        if courses.is_empty() && at.since(opened) > Duration::from_secs(audit.patience) {
            return Err(Exit::NotReachable.because(
                "no window was heard: a ring has windows once a master leads and a service's retry node \
                 has joined; may this user subscribe to ring.>?",
            ));
        }
    }
    if failed > 0 {
        return Err(Exit::Failed.because(format!("{failed} of {judged} windows do not hold")));
    }
    output::chatter(&format!("{judged} windows hold: no gap, no overlap"));
    Ok(())
}

fn now() -> Wall {
    ring_shell::clock::now().wall
}

fn note(ledger: &mut Ledger, ear: &Ear, heard: Heard) {
    match heard {
        Heard::Published(_, Publication::Grant(grant)) if ear.wants(&grant.service) => {
            ledger.grant(grant);
        }
        Heard::Event(subject, event) => declared(ledger, ear, subject.scope, event.fact),
        Heard::Published(..) | Heard::Request(_) | Heard::Strange(_) => {}
    }
}

/// What masters declare about a window; other events prove nothing.
fn declared(ledger: &mut Ledger, ear: &Ear, scope: Scope, fact: Fact) {
    if let Fact::Cut { cut } = fact {
        if ear.wants(&cut.service) {
            ledger.cut(scope, cut);
        }
    } else if let Fact::Frozen {
        service,
        slave,
        window,
        range,
    } = fact
        && ear.wants(&service)
    {
        ledger.frozen(Ring { scope, service }, window, slave, range);
    }
}

/// The windows that are over and were not judged yet. A ring's first is the first that started a
/// whole window after the listening began: all that was published for it was heard.
fn due(
    ledger: &mut Ledger,
    courses: &mut BTreeMap<Ring, Course>,
    opened: Wall,
    at: Wall,
    audit: &Audit,
) -> Vec<Row> {
    for (ring, n, sheet) in ledger.windows() {
        let len = sheet.ends_at.since(sheet.starts_at);
        if sheet.starts_at >= opened.plus(len) {
            let first = Course {
                next: n,
                ends_at: sheet.ends_at,
                len,
                judged: 0,
            };
            courses.entry(ring.clone()).or_insert(first);
        }
    }
    let mut rows = Vec::new();
    for (ring, course) in courses.iter_mut() {
        while course.judged < audit.windows && course.ends_at.plus(LATE) <= at {
            rows.push(row(ledger, ring, course.next, audit.strict));
            course.next = course.next.next();
            course.ends_at = course.ends_at.plus(course.len);
            course.judged += 1;
        }
    }
    // What was judged is done with, and what came before the first is not asked for.
    let oldest = courses.values().map(|course| course.ends_at).min();
    if let Some(oldest) = oldest {
        ledger.forget(oldest);
    }
    rows
}

fn row(ledger: &Ledger, ring: &Ring, n: WindowNo, strict: bool) -> Row {
    let verdict = ledger.verdict(ring, n);
    let holds = verdict.holds(strict);
    let Verdict {
        gaps,
        overlaps,
        frozen,
        changed,
    } = verdict;
    Row {
        region: ring.scope.region.to_string(),
        cluster: ring.scope.cluster.to_string(),
        service: ring.service.to_string(),
        window: n,
        orchestrators: ledger.window(ring, n).map_or(0, |sheet| sheet.grants.len()),
        holds,
        gaps,
        overlaps,
        frozen_ppm: frozen.iter().map(|(_, range)| range.ppm()).sum(),
        frozen: frozen
            .into_iter()
            .map(|(slave, range)| (slave.to_string(), range))
            .collect(),
        changed,
    }
}

fn print(row: &Row, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(row);
    }
    let mut text = format!(
        "{} {}.{} {} n={}: {} orchestrators",
        if row.holds { "ok  " } else { "FAIL" },
        row.region,
        row.cluster,
        row.service,
        row.window,
        row.orchestrators,
    );
    for (slave, range) in &row.frozen {
        text += &format!("; frozen: {slave} {} ({range})", output::share(range.ppm()));
    }
    for gap in &row.gaps {
        text += &format!("; gap {} ({gap})", output::share(gap.ppm()));
    }
    for overlap in &row.overlaps {
        text += &format!("; overlap {} ({overlap})", output::share(overlap.ppm()));
    }
    if row.changed > 0 {
        text += &format!("; {} grants changed", row.changed);
    }
    output::line(&text)?;
    Ok(())
}
