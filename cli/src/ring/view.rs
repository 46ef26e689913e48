//! What masters and slaves tell about themselves, collected for one moment.

use std::{collections::BTreeSet, time::Duration};

use ring_core::{
    id::{NodeId, Scope},
    subject::{Place, Verb},
    wire::{Answer, MasterStatus, SlaveStatus},
};
use serde::Serialize;

use super::ear::{Ear, Heard, hear};
use crate::{args::Seen, exit::Exit};

/// How long is listened for scopes when none is named: a default heartbeat (5 s) and a little.
const LISTEN: Duration = Duration::from_secs(7);

/// One region and cluster.
#[derive(Serialize)]
pub(crate) struct View {
    /// Where.
    #[serde(serialize_with = "text")]
    pub(crate) scope: Scope,
    /// The leader; none when nobody leads.
    pub(crate) master: Option<MasterStatus>,
    /// Slaves that answered.
    pub(crate) slaves: Vec<SlaveStatus>,
    /// Slaves that the master counts and that did not answer.
    pub(crate) silent: Vec<NodeId>,
}

/// Collects one view for each scope asked for, or heard of.
///
/// # Errors
/// Exit 4 when nothing can be reached, or no ring is heard of.
pub(crate) async fn collect(ear: &Ear, seen: &Seen) -> anyhow::Result<Vec<View>> {
    let mut views = Vec::new();
    for scope in scopes(ear, seen).await? {
        views.push(one(ear, scope).await?);
    }
    if views.is_empty() {
        return Err(Exit::NotReachable.because(
            "no ring was heard of for 7s: name --region and --cluster, or start a master",
        ));
    }
    Ok(views)
}

async fn one(ear: &Ear, scope: Scope) -> anyhow::Result<View> {
    let master = match ear.status(&scope, Place::Master(Verb::Status)).await? {
        Some(Answer::Master(status)) => Some(status),
        Some(_) | None => None,
    };
    let (mut slaves, mut silent) = (Vec::new(), Vec::new());
    for member in master.iter().flat_map(|m| &m.slaves) {
        let id = member.who.id.clone();
        match ear
            .status(&scope, Place::Slave(id.clone(), Verb::Status))
            .await
        {
            Ok(Some(Answer::Slave(status))) => slaves.push(status),
            Ok(_) | Err(_) => silent.push(id),
        }
    }
    Ok(View {
        scope,
        master,
        slaves,
        silent,
    })
}

/// The scope named, or every scope that is heard of for a while.
async fn scopes(ear: &Ear, seen: &Seen) -> anyhow::Result<BTreeSet<Scope>> {
    if let (Some(region), Some(cluster)) = (&seen.region, &seen.cluster) {
        return Ok([Scope {
            region: region.clone(),
            cluster: cluster.clone(),
        }]
        .into());
    }
    let mut from = ear.listen().await?;
    let mut found = BTreeSet::new();
    let end = tokio::time::sleep(LISTEN);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return Ok(found),
            heard = hear(&mut from) => match heard {
                Some(Heard::Published(subject, _) | Heard::Event(subject, _)) => {
                    found.insert(subject.scope);
                }
                Some(Heard::Request(subject)) => {
                    found.insert(subject.scope);
                }
                Some(Heard::Strange(_)) => {}
                None => return Ok(found),
            },
        }
    }
}

fn text<S: serde::Serializer>(scope: &Scope, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(scope)
}
