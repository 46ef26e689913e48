//! What the shipped permissions let each of the five users say and hear, on a live server.

mod common;

use std::time::Duration;

use async_nats::{Client, Event, ServerError, Subscriber};
use common::Checked;
use futures_util::StreamExt as _;
use ring_local::{Binaries, Nats, Role, Settings};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Far above any delivery on loopback, and never waited for in full by a test that passes.
const LIMIT: Duration = Duration::from_secs(5);

struct Ring {
    server: Nats,
    _data: TempDir,
}

/// One user's connection, with what the server refused it.
struct User {
    client: Client,
    refused: mpsc::UnboundedReceiver<String>,
}

impl Ring {
    async fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let binaries = Binaries::find(&Settings::from_env()).await?;
        let data = common::folder()?;
        let server = Nats::start(&binaries.nats, data.path(), &Nats::new_run()?).await?;
        Ok(Self {
            server,
            _data: data,
        })
    }

    async fn user(&self, role: Role) -> Result<User, async_nats::ConnectError> {
        let (refusals, refused) = mpsc::unbounded_channel();
        let client = async_nats::ConnectOptions::new()
            .user_and_password(role.user().into(), self.server.password(role))
            .custom_inbox_prefix(role.inbox_prefix())
            .event_callback(move |event| {
                if let Event::ServerError(ServerError::Other(reason)) = event {
                    refusals.send(reason).unwrap_or_default();
                }
                std::future::ready(())
            })
            .connect(self.server.url())
            .await?;
        Ok(User { client, refused })
    }
}

impl User {
    /// A subscription that the server has in place: a flush only writes, a refusal comes back.
    async fn hears(&mut self, subject: &str) -> Result<Subscriber, Box<dyn std::error::Error>> {
        let heard = self.client.subscribe(subject.to_owned()).await?;
        self.may_not_hear("$SYS.ROUND.TRIP").await?;
        Ok(heard)
    }

    async fn is_refused(&mut self, action: &str, subject: &str) -> Checked {
        let reason = tokio::time::timeout(LIMIT, self.refused.recv()).await;
        let reason = reason.map_err(|_| format!("nobody refused {action} {subject}"))?;
        let reason = reason.ok_or("the connection is gone")?.to_lowercase();
        assert!(
            reason.contains(&subject.to_lowercase()),
            "{reason}, not {action} {subject}"
        );
        assert!(reason.contains(action), "{reason}, not {action} {subject}");
        Ok(())
    }

    async fn may_not_publish(&mut self, subject: &str) -> Checked {
        self.client
            .publish(subject.to_owned(), "forged".into())
            .await?;
        self.is_refused("publish", subject).await
    }

    async fn may_not_hear(&mut self, subject: &str) -> Checked {
        drop(self.client.subscribe(subject.to_owned()).await?);
        self.is_refused("subscription", subject).await
    }
}

async fn next(heard: &mut Subscriber) -> Result<async_nats::Message, Box<dyn std::error::Error>> {
    let message = tokio::time::timeout(LIMIT, heard.next()).await;
    Ok(message
        .map_err(|_| "nothing was heard")?
        .ok_or("the subscription ended")?)
}

#[tokio::test]
async fn every_user_can_say_what_its_role_says_and_an_observer_hears_it() -> Checked {
    let ring = Ring::start().await?;
    let mut observer = ring.user(Role::Observer).await?;
    let mut heard = observer.hears("ring.>").await?;
    for (role, subjects) in [
        (Role::Master, &["slave.s1", "orch.o1", "event.joined"][..]),
        (
            Role::Slave,
            &[
                "master.slave.register",
                "master.slave.confirm",
                "master.slave.heartbeat",
                "master.slave.leave",
                "master.slave.window",
                "orch.o1",
                "event.joined",
                "event.left",
            ],
        ),
        (
            Role::Orchestrator,
            &[
                "master.orch.assign",
                "slave.s1.register",
                "slave.s1.confirm",
                "slave.s1.heartbeat",
                "slave.s1.leave",
                "slave.s1.window",
                "event.tx-disabled",
            ],
        ),
        (Role::Operator, &["master.status", "slave.s1.status"]),
    ] {
        let user = ring.user(role).await?;
        for subject in subjects {
            let subject = format!("ring.eu.c1.{subject}");
            user.client.publish(subject.clone(), "{}".into()).await?;
            assert_eq!(
                next(&mut heard).await?.subject.as_str(),
                subject,
                "{role:?}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn nobody_can_say_what_another_role_says() -> Checked {
    let ring = Ring::start().await?;
    for (role, subjects) in [
        (
            Role::Observer,
            &["slave.s1", "orch.o1", "event.joined", "master.status"][..],
        ),
        // A slave can't cut a window for another, nor answer in its place, nor speak as a leader:
        // standby masters believe what these events say.
        (
            Role::Slave,
            &[
                "slave.s2",
                "slave.s2.heartbeat",
                "event.leader",
                "event.cut",
                "event.frozen",
            ],
        ),
        (
            Role::Orchestrator,
            &[
                "orch.o2",
                "slave.s2",
                "master.slave.register",
                "master.status",
                "event.leader",
                "event.stepped-down",
                "event.cut",
            ],
        ),
        (
            Role::Operator,
            &["slave.s1", "slave.s1.leave", "orch.o1", "event.joined"],
        ),
        (Role::Master, &["master.status", "slave.s1.leave"]),
    ] {
        let mut user = ring.user(role).await?;
        for subject in subjects {
            user.may_not_publish(&format!("ring.eu.c1.{subject}"))
                .await?;
        }
        // Not even as an answer that nobody asked for.
        for other in Role::ALL {
            user.may_not_publish(&format!("{}.guess", other.inbox_prefix()))
                .await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn nobody_reads_another_roles_answers() -> Checked {
    let ring = Ring::start().await?;
    for role in Role::ALL {
        let mut user = ring.user(role).await?;
        for other in Role::ALL.into_iter().filter(|other| *other != role) {
            user.may_not_hear(&format!("{}.>", other.inbox_prefix()))
                .await?;
        }
        for subject in ["_INBOX.>", ">", "$SYS.>"] {
            user.may_not_hear(subject).await?;
        }
        drop(user.hears(&format!("{}.>", role.inbox_prefix())).await?);
        assert!(user.refused.try_recv().is_err(), "{role:?} hears its own");
    }
    Ok(())
}

#[tokio::test]
async fn who_is_asked_can_answer() -> Checked {
    let ring = Ring::start().await?;
    for (asking, answering, subject) in [
        (
            Role::Slave,
            Role::Master,
            "ring.eu.c1.master.slave.register",
        ),
        (
            Role::Orchestrator,
            Role::Master,
            "ring.eu.c1.master.orch.assign",
        ),
        (Role::Operator, Role::Master, "ring.eu.c1.master.status"),
        (
            Role::Orchestrator,
            Role::Slave,
            "ring.eu.c1.slave.s1.heartbeat",
        ),
        (Role::Operator, Role::Slave, "ring.eu.c1.slave.s1.status"),
        (Role::Observer, Role::Master, "$SRV.PING"),
        (Role::Operator, Role::Slave, "$SRV.INFO.ring-slave"),
    ] {
        let (asking, mut answering) = (ring.user(asking).await?, ring.user(answering).await?);
        let mut asked = answering.hears(subject).await?;
        let answer = tokio::spawn({
            let client = answering.client.clone();
            async move {
                let reply = asked.next().await.and_then(|message| message.reply);
                client
                    .publish(reply.unwrap_or_else(|| "none".into()), "yes".into())
                    .await
            }
        });
        let answered = asking.client.request(subject, "".into());
        let answered = tokio::time::timeout(LIMIT, answered).await;
        let answered = answered.map_err(|_| format!("no answer on {subject}"))??;
        assert_eq!(answered.payload.as_ref(), b"yes", "{subject}");
        answer.await??;
    }
    Ok(())
}

#[tokio::test]
async fn a_standby_hears_heartbeats_and_windows_and_a_slave_its_own() -> Checked {
    let ring = Ring::start().await?;
    let (mut standby, master) = (
        ring.user(Role::Master).await?,
        ring.user(Role::Master).await?,
    );
    let mut requests = standby.hears("ring.*.*.master.>").await?;
    let mut windows = standby.hears("ring.*.*.slave.*").await?;
    let mut slave = ring.user(Role::Slave).await?;
    let mut own = slave.hears("ring.eu.c1.slave.s1").await?;

    slave
        .client
        .publish("ring.eu.c1.master.slave.heartbeat", "{}".into())
        .await?;
    assert_eq!(
        next(&mut requests).await?.subject.as_str(),
        "ring.eu.c1.master.slave.heartbeat"
    );
    master
        .client
        .publish("ring.eu.c1.slave.s1", "{}".into())
        .await?;
    assert_eq!(
        next(&mut windows).await?.subject.as_str(),
        "ring.eu.c1.slave.s1"
    );
    assert_eq!(
        next(&mut own).await?.subject.as_str(),
        "ring.eu.c1.slave.s1"
    );
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_opens_nothing() -> Checked {
    let ring = Ring::start().await?;
    let refused = async_nats::ConnectOptions::new()
        .user_and_password("master".into(), ring.server.password(Role::Slave))
        .connect(ring.server.url())
        .await;
    assert!(refused.is_err());
    assert!(
        async_nats::connect(ring.server.url()).await.is_err(),
        "nor does no password"
    );
    Ok(())
}

#[tokio::test]
async fn the_production_configuration_is_valid() -> Checked {
    let binaries = Binaries::find(&Settings::from_env()).await?;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/nats/cluster.conf");
    let data = common::folder()?;
    let mut spec =
        ring_local::Spec::new("nats -t", binaries.nats, data.path().join("log")).args(["-t", "-c"]);
    for role in Role::ALL {
        spec = spec.env(role.password_variable(), "secret");
    }
    let spec = spec
        .args([file])
        .env("NATS_NAME", "nats-1")
        .env("NATS_ROUTE_PASSWORD", "secret")
        .env("NATS_ROUTES", r#"["nats://route:secret@nats-1:6222"]"#);
    let mut checked = ring_local::Process::spawn(&spec).await?;
    let status = checked.wait().await?;
    assert!(
        status.success(),
        "{}",
        std::fs::read_to_string(checked.log())?
    );
    Ok(())
}
