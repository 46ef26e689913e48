//! `ringsaga demo`: the whole system on this machine, an outage, four kills, and a verdict.
//!
//! Read `plan` (what happens when), `story` (how it is told), `verdict` (how it is judged).

mod books;
mod coverage;
mod customers;
mod ears;
mod plan;
mod report;
mod screen;
mod stage;
mod story;
mod verdict;

use std::{path::Path, time::Duration};

use ring_core::timing::Timing;
use ring_shell::shutdown;
use shop::wire::Order;
use tokio_util::sync::CancellationToken;

use self::{
    plan::{MASTERS, NATS_NODES, ORDER_SERVICES, Plan, RETRY_NODES, SLAVES},
    report::Report,
    screen::Screen,
    stage::{CLUSTER, REGION, Stage, WINDOW},
    story::Story,
};
use crate::{args::Demo, exit::Exit, output};

/// What a shell reports of a process that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Runs it; exit 1 when something was lost or doubled.
pub(crate) fn run(demo: &Demo, json: bool) -> anyhow::Result<()> {
    let orders = orders(demo)?;
    let plan = Plan::draw(demo, orders).map_err(|says| Exit::Usage.because(says))?;
    if let Some(folder) = &demo.data {
        new(folder)?;
    }
    // Ours is the binary: a second installation is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stop = shutdown::on_signals()?;
        // On the heap, here and below: the whole story is a large future.
        Box::pin(show(demo, &plan, json, &stop)).await
    })
}

/// Refuses a folder that holds something: with yesterday's orders in it nothing would happen.
fn new(folder: &Path) -> anyhow::Result<()> {
    let holds = |mut entries: std::fs::ReadDir| entries.next().is_some();
    if std::fs::read_dir(folder).is_ok_and(holds) {
        let folder = folder.display();
        return Err(Exit::Usage.because(format!("--data {folder} is not empty: name a new folder")));
    }
    Ok(())
}

/// Reads the orders before anything starts; every bad row is named.
fn orders(demo: &Demo) -> anyhow::Result<Vec<Order>> {
    let (name, text) = match &demo.orders {
        None => (
            "the shipped orders".to_owned(),
            shop::csv::SHIPPED.to_owned(),
        ),
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file)
                .map_err(|error| Exit::Usage.because(format!("can't read {name}: {error}")))?;
            (name, text)
        }
    };
    shop::csv::read(&text).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(|m| format!("\n  {m}")).collect();
        Exit::Usage.because(format!("{name} can't be used:{}", lines.concat()))
    })
}

async fn show(
    demo: &Demo,
    plan: &Plan,
    json: bool,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    introduce(demo, plan);
    let started = stop
        .run_until_cancelled(Stage::start(demo.data.as_deref()))
        .await;
    let mut stage = started.ok_or_else(interrupted)??;
    let screen = Screen::open(plan.orders.len())?;
    let told = stop
        .run_until_cancelled(Box::pin(Story::tell(&mut stage, plan, &screen)))
        .await;
    screen.close();
    let told = told.unwrap_or_else(|| Err(interrupted()));
    let printed = told.and_then(|report| report.print(json).map(|()| report));
    if let (true, Ok(_)) = (demo.keep, &printed) {
        look_around(&stage);
        stop.cancelled().await;
    }
    output::chatter("stopping everything");
    let stopped = stage.stop().await;
    let report = printed?;
    stopped?;
    next_steps(demo, &report);
    if report.holds {
        Ok(())
    } else {
        Err(Exit::Failed.because("something was lost or doubled, see above"))
    }
}

fn interrupted() -> anyhow::Error {
    Exit::Passed(INTERRUPTED).because("interrupted, everything was stopped")
}

fn introduce(demo: &Demo, plan: &Plan) {
    let usual = Timing::default();
    let here = Timing::for_window(WINDOW);
    let seconds = |time: Duration| format!("{} s", time.as_secs_f64());
    output::chatter(&format!(
        "ringsaga demo, seed {}: {NATS_NODES} NATS nodes, Redis, Postgres, {MASTERS} masters, {SLAVES} slaves, \
         {ORDER_SERVICES} order services ({RETRY_NODES} of them retry nodes), inventory, payment",
        demo.seed
    ));
    output::chatter(&format!(
        "windows of {} cut {} ahead, so a dead holder's part is whole again within {}; by default \
         {}, {} and {}",
        seconds(here.len),
        seconds(here.lead),
        seconds(3 * here.len),
        seconds(usual.len),
        seconds(usual.lead),
        seconds(3 * usual.len),
    ));
    output::chatter(&format!(
        "until then due work is swept after {}; a dead process' running work goes on after its \
         lease of {}: both the same by default",
        seconds(here.overdue_after),
        seconds(here.owner_lease),
    ));
    let acts: Vec<String> = plan
        .acts
        .iter()
        .map(|act| format!("{} {:.1} s", act.blow.name(), act.at.as_secs_f64()))
        .collect();
    output::chatter(&format!(
        "{} orders; {}",
        plan.orders.len(),
        acts.join(", ")
    ));
    output::chatter("starting");
}

fn look_around(stage: &Stage) {
    let places = stage.places();
    let servers = &places.servers;
    let role = ring_local::Role::Operator;
    for line in [
        String::new(),
        "everything is still running; in another terminal:".to_owned(),
        format!("  export NATS_URL='{}'", servers.nats_url),
        format!(
            "  export NATS_USER={} NATS_PASSWORD='{}'",
            role.user(),
            servers.nats_password(role)
        ),
        format!("  ringsaga ring status --region {REGION} --cluster {CLUSTER}"),
        format!("  ringsaga ring watch --region {REGION} --cluster {CLUSTER}"),
        format!(
            "  psql '{}' -c 'select state, count(*) from ringsaga.transaction group by 1'",
            places.orders_database
        ),
        format!(
            "  psql '{}' -c 'select * from entry'",
            places.payment_database
        ),
        format!("order services: {}", places.orders.join(" ")),
        format!(
            "payment: {} (POST /faults {{\"mode\":\"down\"}})",
            places.payment
        ),
        format!("logs: {}", servers.data.display()),
        "Ctrl-C stops everything".to_owned(),
    ] {
        output::chatter(&line);
    }
}

fn next_steps(demo: &Demo, report: &Report) {
    let again = demo.seed.wrapping_add(1);
    if !report.holds {
        output::chatter(&format!(
            "try next: ringsaga demo --seed {} --data DIR keeps all logs",
            demo.seed
        ));
        return;
    }
    output::chatter("\ntry next:");
    for (command, what) in [
        (format!("--seed {again}"), "others die, at other times"),
        ("--kill-at slave=3s".to_owned(), "you say when"),
        ("--orders FILE".to_owned(), "your own orders"),
        (
            "--keep".to_owned(),
            "look around with ringsaga ring status, psql, curl",
        ),
    ] {
        output::chatter(&format!("  ringsaga demo {command:<20} {what}"));
    }
    output::chatter("what a user writes is in examples/shop");
}
