//! Everything that runs in the demo: servers, ring, services. Starts it, kills parts, stops it.
//!
//! Decides addresses and settings of the processes. Knows nothing of orders.

use std::{collections::BTreeSet, path::Path, time::Duration};

use futures_util::future::join_all;
use ring_local::{Addresses, Process, Role, Set, SetOptions, Settings, Spec, free_ports};

use super::plan::{MASTERS, NATS_NODES, ORDER_SERVICES, RETRY_NODES, SLAVES};
use crate::exit::Exit;

/// Where the demo's ring lives.
pub(crate) const REGION: &str = "demo";
/// Its cluster.
pub(crate) const CLUSTER: &str = "c1";
/// The service whose transactions it carries.
pub(crate) const SERVICE: &str = "orders";

/// Length of a window; 60 s by default in production.
pub(crate) const WINDOW: Duration = Duration::from_secs(4);

/// How the shop's saga retries, in seconds instead of minutes.
const PATIENCE: [(&str, &str); 4] = [
    ("RINGSAGA__SHOP__PATIENCE__TIME_LIMIT", "1s"),
    ("RINGSAGA__SHOP__PATIENCE__FIRST", "400ms"),
    ("RINGSAGA__SHOP__PATIENCE__CAP", "2s"),
    ("RINGSAGA__SHOP__PATIENCE__ATTEMPTS", "1000"),
];

/// Longer than any step here; what does not end in it is handed back or left to its lease.
const GRACE: &str = "3s";

/// Everything that runs.
pub(crate) struct Stage {
    /// Ours first: they end before the servers do.
    programs: Vec<Program>,
    set: Set,
    places: Places,
}

/// A process of ours.
struct Program {
    kind: Kind,
    process: Process,
    /// Whether its end is no surprise.
    killed: bool,
}

/// What a process of ours is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cuts the ring.
    Master,
    /// Cuts its slice.
    Slave,
    /// The shop's order service.
    Order,
    /// The shop's inventory.
    Inventory,
    /// The shop's payment.
    Payment,
}

/// Addresses that the story needs.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The servers.
    pub(crate) servers: Addresses,
    /// The order services, `http://…`.
    pub(crate) orders: Vec<String>,
    /// The payment service.
    pub(crate) payment: String,
    /// The inventory.
    pub(crate) inventory: String,
    /// The saga store.
    pub(crate) orders_database: String,
    /// The inventory's database.
    pub(crate) inventory_database: String,
    /// Payment's database.
    pub(crate) payment_database: String,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Slave => "slave",
            Self::Order => "order",
            Self::Inventory => "inventory",
            Self::Payment => "payment",
        }
    }
}

/// The id of one of several: `slave-1` is number 0.
pub(crate) fn id(kind: Kind, index: usize) -> String {
    match kind {
        Kind::Inventory | Kind::Payment => kind.name().to_owned(),
        Kind::Master | Kind::Slave | Kind::Order => format!("{}-{}", kind.name(), index + 1),
    }
}

impl Stage {
    /// Starts the servers, then everything of ours at once.
    ///
    /// # Errors
    /// When something can't be started; what was started is stopped.
    pub(crate) async fn start(data: Option<&Path>) -> anyhow::Result<Self> {
        let options = SetOptions {
            data: data.map(Path::to_path_buf),
            nats_nodes: NATS_NODES,
            ..SetOptions::default()
        };
        let set = Set::start(&Settings::from_env(), &options).await?;
        let places = Places::choose(set.addresses()).await?;
        let mut stage = Self {
            programs: Vec::new(),
            set,
            places,
        };
        for (kind, count) in [
            (Kind::Master, MASTERS),
            (Kind::Slave, SLAVES),
            (Kind::Inventory, 1),
            (Kind::Payment, 1),
            (Kind::Order, ORDER_SERVICES),
        ] {
            for index in 0..count {
                let process = Process::spawn(&stage.places.spec(kind, index)?).await?;
                stage.programs.push(Program {
                    kind,
                    process,
                    killed: false,
                });
            }
        }
        Ok(stage)
    }

    /// The addresses.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Kills a process of ours as a power cut would; gives its id and process id.
    ///
    /// # Errors
    /// When it can't be signalled.
    pub(crate) async fn kill(&mut self, id: &str) -> anyhow::Result<u32> {
        let named = |program: &&mut Program| program.process.name() == id;
        let Some(program) = self.programs.iter_mut().find(named) else {
            return Err(Exit::Failed.because(format!("there is no {id} to kill")));
        };
        program.killed = true;
        program.process.kill9().await?;
        Ok(program.process.pid())
    }

    /// Kills a NATS node.
    ///
    /// # Errors
    /// When it can't be signalled.
    pub(crate) async fn kill_nats(&mut self, index: usize) -> anyhow::Result<u32> {
        let Some(node) = self.set.nats().and_then(|cluster| cluster.node(index)) else {
            return Err(Exit::Failed.because(format!("there is no NATS node {index} to kill")));
        };
        node.kill9().await?;
        Ok(node.pid())
    }

    /// The ids of those that we killed.
    pub(crate) fn killed(&self) -> BTreeSet<String> {
        let killed = self.programs.iter().filter(|program| program.killed);
        killed
            .map(|program| program.process.name().to_owned())
            .collect()
    }

    /// Fails when a process ended that nobody killed.
    ///
    /// # Errors
    /// With its name, its end and the last lines of its log.
    pub(crate) fn all_live(&self) -> anyhow::Result<()> {
        for Program {
            process, killed, ..
        } in &self.programs
        {
            if let (Some(status), false) = (process.exit(), killed) {
                let (name, log) = (process.name(), process.log());
                let text = std::fs::read_to_string(log).unwrap_or_default();
                let lines: Vec<&str> = text.lines().collect();
                let tail = lines[lines.len().saturating_sub(12)..].join("\n  ");
                let says = format!("{name} ended by itself ({status}); its last words:\n  {tail}");
                return Err(Exit::Failed.because(says));
            }
        }
        Ok(())
    }

    /// Stops everything, orderly: services, then the ring, then the servers.
    ///
    /// # Errors
    /// The first that could not be stopped; all others are stopped all the same.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let mut end: anyhow::Result<()> = Ok(());
        for kinds in [
            [Kind::Order, Kind::Inventory, Kind::Payment].as_slice(),
            [Kind::Slave, Kind::Master].as_slice(),
        ] {
            let these = self.programs.iter_mut().filter(|p| kinds.contains(&p.kind));
            for stopped in join_all(these.map(|p| p.process.stop())).await {
                if let (Err(error), true) = (stopped, end.is_ok()) {
                    end = Err(error.into());
                }
            }
        }
        let servers = self.set.stop().await;
        end?;
        Ok(servers?)
    }
}

impl Places {
    async fn choose(servers: &Addresses) -> anyhow::Result<Self> {
        let ports = free_ports(ORDER_SERVICES + 2)?;
        let mut urls = ports
            .into_iter()
            .map(|port| format!("http://127.0.0.1:{port}"));
        let mut next = || urls.next().unwrap_or_default();
        Ok(Self {
            payment: next(),
            inventory: next(),
            orders: (0..ORDER_SERVICES).map(|_| next()).collect(),
            orders_database: servers.create_database("orders").await?,
            inventory_database: servers.create_database("inventory").await?,
            payment_database: servers.create_database("payment").await?,
            servers: servers.clone(),
        })
    }

    fn spec(&self, kind: Kind, index: usize) -> anyhow::Result<Spec> {
        let (executable, id) = (std::env::current_exe()?, id(kind, index));
        let log = self.servers.data.join(format!("{id}.log"));
        let spec = Spec::new(&id, executable, log).clean_env();
        let listen = |url: &str| url.trim_start_matches("http://").to_owned();
        Ok(match kind {
            Kind::Master => self
                .member(spec.args(["master"]), &id, Role::Master)
                .env("RINGSAGA__REDIS__URL", &self.servers.redis_url),
            Kind::Slave => self.member(spec.args(["slave"]), &id, Role::Slave),
            Kind::Inventory => spec
                .args(["shop", "inventory"])
                .env("RINGSAGA__HTTP__LISTEN", listen(&self.inventory))
                .env("RINGSAGA__DATABASE__URL", &self.inventory_database),
            Kind::Payment => spec
                .args(["shop", "payment"])
                .env("RINGSAGA__HTTP__LISTEN", listen(&self.payment))
                .env("RINGSAGA__DATABASE__URL", &self.payment_database),
            Kind::Order => {
                let own = self.orders.get(index).map_or("", String::as_str);
                let mut spec = self
                    .member(spec.args(["shop", "order"]), &id, Role::Orchestrator)
                    .env("RINGSAGA__HTTP__LISTEN", listen(own))
                    .env("RINGSAGA__DATABASE__URL", &self.orders_database)
                    .env("RINGSAGA__SERVICE", SERVICE)
                    .env("RINGSAGA__RETRY_NODE", (index < RETRY_NODES).to_string())
                    .env("RINGSAGA__SHOP__INVENTORY", &self.inventory)
                    .env("RINGSAGA__SHOP__PAYMENT", &self.payment);
                for (name, value) in PATIENCE {
                    spec = spec.env(name, value);
                }
                spec
            }
        })
    }

    /// What every member of the ring is told.
    fn member(&self, spec: Spec, id: &str, role: Role) -> Spec {
        spec.env("RINGSAGA__REGION", REGION)
            .env("RINGSAGA__CLUSTER", CLUSTER)
            .env("RINGSAGA__ID", id)
            .env("RINGSAGA__NATS__URL", &self.servers.nats_url)
            .env("RINGSAGA__NATS__USER", role.user())
            .env("RINGSAGA__NATS__PASSWORD", self.servers.nats_password(role))
            .env(
                "RINGSAGA__RING__WINDOW",
                humantime::format_duration(WINDOW).to_string(),
            )
            .env("RINGSAGA__SHUTDOWN__GRACE", GRACE)
    }
}
