//! `ringsaga ring status`: who leads, who lives, who owns which range, and the backlog.

use ring_core::wire::{GrantWire, MemberStatus, SlaveStatus};

use super::{
    ear::Ear,
    view::{View, collect},
};
use crate::{args::Seen, exit::Exit, output};

/// Prints every ring asked for; exit 4 when one has no leader.
pub(crate) async fn run(seen: &Seen, json: bool) -> anyhow::Result<()> {
    let ear = Ear::open(seen).await?;
    let views = collect(&ear, seen).await?;
    for view in &views {
        if json {
            output::json(view)?;
        } else {
            print(view, &ear)?;
        }
    }
    match views.iter().find(|view| view.master.is_none()) {
        Some(view) => Err(Exit::NotReachable.because(format!("nobody leads {}", view.scope))),
        None => Ok(()),
    }
}

fn print(view: &View, ear: &Ear) -> anyhow::Result<()> {
    let Some(master) = &view.master else {
        return Ok(());
    };
    let degraded = master
        .degraded
        .as_ref()
        .map_or_else(String::new, |why| format!(", {why}"));
    output::line(&format!(
        "{}: {} leads in term {} since {}, windows of {}{degraded}",
        view.scope,
        master.who.id,
        master.term,
        master.since.0.rfc3339(),
        output::ago(master.window_ms),
    ))?;
    let mut slaves = output::table(&["SLAVE", "HEARD", "CLOCK", "ORCHESTRATORS", "BUILD"]);
    for slave in &master.slaves {
        let counts = slave
            .loads
            .iter()
            .map(|l| format!("{} {}", l.service, l.live));
        let counts: Vec<String> = counts.collect();
        let silent = if view.silent.contains(&slave.who.id) {
            " (no answer)"
        } else {
            ""
        };
        slaves.add_row([
            format!("{}{silent}", slave.who.id),
            output::ago(slave.heard_ms),
            format!("{:+}ms", slave.clock_offset_ms),
            counts.join(", "),
            slave.build.clone(),
        ]);
    }
    output::line(&slaves.trim_fmt())?;
    output::line(&owners(view, ear))?;
    frozen(view)
}

/// One line an orchestrator: its part now, and how it works.
fn owners(view: &View, ear: &Ear) -> String {
    let header = [
        "SERVICE",
        "ORCHESTRATOR",
        "SLAVE",
        "SHARE",
        "RANGE",
        "BACKLOG",
        "OLDEST",
        "POLLED",
    ];
    let mut table = output::table(&header);
    let now = ring_shell::clock::now().wall;
    for slave in &view.slaves {
        for member in &slave.orchestrators {
            let Some(service) = member.service.as_ref().filter(|s| ear.wants(s)) else {
                continue;
            };
            let grant = slave.granted.iter().find(|g| {
                g.holder == member.who.id
                    && g.service == *service
                    && g.starts_at.0 <= now
                    && now < g.ends_at.0
            });
            table.add_row(owner(service.as_str(), slave, member, grant));
        }
    }
    table.trim_fmt()
}

fn owner(
    service: &str,
    slave: &SlaveStatus,
    member: &MemberStatus,
    grant: Option<&GrantWire>,
) -> [String; 8] {
    let none = || "-".to_owned();
    let health = member.health.unwrap_or_default();
    [
        service.to_owned(),
        format!(
            "{}{}",
            member.who.id,
            if health.sick { " (sick)" } else { "" }
        ),
        slave.who.id.to_string(),
        grant.map_or_else(none, |g| output::share(g.range.ppm())),
        grant.map_or_else(none, |g| g.range.to_string()),
        health.backlog.to_string(),
        output::ago(health.oldest_due_ms),
        health.polled_ms.map_or_else(none, output::ago),
    ]
}

fn frozen(view: &View) -> anyhow::Result<()> {
    for cut in view
        .master
        .iter()
        .flat_map(|m| &m.cuts)
        .filter(|cut| cut.frozen_ppm > 0)
    {
        let share = output::share(cut.frozen_ppm);
        let text = format!("{} n={}: {share} frozen", cut.cut.service, cut.cut.window);
        output::line(&text)?;
    }
    Ok(())
}
