//! With a real master and slave: retries go by windows, and the sweeper is not needed.

mod support;

use std::{collections::BTreeSet, time::Duration};

use futures_util::StreamExt as _;
use orchestrator_lib::{Node, Times};
use ring_core::{
    id::{Cluster, NodeId, Region, Scope},
    timing::Timing,
    wire,
};
use ring_local::Role;
use ring_shell::{
    bus::{Credentials, Options, server_addresses},
    clock,
};
use support::{Checked, LONG, Lab, Reply, end, quick, saga};
use tokio_util::sync::{CancellationToken, DropGuard};

const WINDOW: Duration = Duration::from_secs(2);

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

impl Lab {
    fn options(&self, role: wire::Role, user: Role, id: &str) -> Fallible<Options> {
        let at = self.set.addresses();
        Ok(Options {
            servers: server_addresses(&at.nats_url)?,
            credentials: Credentials::User {
                user: user.user().to_owned(),
                password: at.nats_password(user).into(),
            },
            ca: None,
            role,
            scope: Scope {
                region: Region::new(&self.scope.region)?,
                cluster: Cluster::new(&self.scope.cluster)?,
            },
            id: NodeId::new(id)?,
            boot: clock::boot(),
            build: "0.0.0".to_owned(),
        })
    }

    /// A master that is alone and one slave; they leave when the guard is dropped.
    fn coordinators(&self) -> Fallible<DropGuard> {
        let stop = CancellationToken::new();
        let timing = Timing::for_window(WINDOW);
        let master = ring_master::Config {
            bus: self.options(wire::Role::Master, Role::Master, "m1")?,
            timing,
            balance: ring_core::master::Balance::Weighted,
            redis: None,
            listen: None,
            numbers: None,
            grace: LONG,
        };
        let slave = ring_slave::Config {
            bus: self.options(wire::Role::Slave, Role::Slave, "s1")?,
            timing,
            listen: None,
            numbers: None,
            grace: LONG,
        };
        drop(tokio::spawn(ring_master::run(master, stop.clone())));
        drop(tokio::spawn(ring_slave::run(slave, stop.clone())));
        Ok(stop.drop_guard())
    }

    /// A node whose sweeper would need an hour.
    async fn member(&self, instance: &str, retries: bool) -> Fallible<Node> {
        let mut config = self.config(instance)?;
        config.nats = Some(self.nats());
        config.timing = Times {
            window: Some(WINDOW),
            owner_lease: Some(Duration::from_secs(3)),
            overdue_after: Some(Duration::from_secs(3600)),
            ..Times::default()
        };
        let node = Node::builder(config)
            .saga(saga(quick()).build()?)
            .retry_node(retries)
            .provide(self.ledger.clone())
            .start()
            .await?;
        Ok(node)
    }
}

#[tokio::test]
async fn what_is_paused_goes_on_in_the_windows_of_the_nodes_own_ranges() -> Checked {
    let lab = Lab::new().await?;
    let coordinators = lab.coordinators()?;
    let (one, two) = (lab.member("n1", true).await?, lab.member("n2", true).await?);
    let whole = || one.degraded().is_empty() && two.degraded().is_empty();
    support::eventually("both hold a range", whole).await;
    assert_eq!(one.ready(), Vec::<String>::new());

    lab.ledger.next("b", vec![Reply::Transient; 60]);
    let saga = saga(quick()).build()?;
    let mut all = BTreeSet::new();
    for n in 0..20 {
        all.insert(one.start(&saga, format!("k{n}"), n).await?.id);
    }
    for id in all {
        assert!(end(&two, id).await?.is_completed());
    }
    one.drain().await;
    two.drain().await;
    drop(coordinators);
    Ok(())
}

#[tokio::test]
async fn a_node_that_retries_nothing_is_given_no_range() -> Checked {
    let lab = Lab::new().await?;
    let coordinators = lab.coordinators()?;
    let at = lab.set.addresses();
    let options = async_nats::ConnectOptions::with_user_and_password(
        Role::Observer.user().into(),
        at.nats_password(Role::Observer),
    );
    let observer = options
        .custom_inbox_prefix(Role::Observer.inbox_prefix())
        .connect(at.nats_url.as_str())
        .await?;
    let subject = format!("ring.{}.{}.orch.*", lab.scope.region, lab.scope.cluster);
    let mut heard = observer.subscribe(subject).await?;
    observer.flush().await?;
    let plain = lab.member("plain", false).await?;
    let retry = lab.member("retry", true).await?;
    support::eventually("the retry node holds a range", || {
        retry.degraded().is_empty()
    })
    .await;
    let mut holders = BTreeSet::new();
    while let Ok(Some(message)) = tokio::time::timeout(2 * WINDOW, heard.next()).await {
        let body: serde_json::Value = serde_json::from_slice(&message.payload)?;
        if body["kind"] == "grant" {
            holders.insert(body["holder"].to_string());
            if body["index"] == 0 && holders.len() == 1 && body["members"] == 1 {
                break;
            }
        }
    }
    assert_eq!(holders, BTreeSet::from(["\"retry\"".to_owned()]));
    plain.drain().await;
    retry.drain().await;
    drop(coordinators);
    Ok(())
}
