//! Bringing a node up: store, bus, tasks; waits with backoff while the database is away.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ring_core::{
    bus::Told,
    id::{BootId, SagaName},
    orchestrator::{self, Orchestrator},
    wire::Role,
};
use ring_shell::{
    BUILD,
    bus::{Bus, Options, server_addresses},
    clock,
    drive::Edges,
    tasks::{Spawner, Tasks},
    telemetry::Meter,
};
use secrecy::ExposeSecret as _;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Engine, Life, Strings,
    announce::Announcer,
    inflight::InFlight,
    lease,
    lease::Lease,
    lookout, report, ring,
    targets::{self, Targets},
    waits::Waits,
};
use crate::{
    Config, Error,
    config::{ConfigError, ConfigErrors},
    context::Shared,
    saga::Definition,
    step::ErasedStep,
    store::{self, Operator, Store},
};

/// Measurements waiting for the ring's machine: it takes them within microseconds.
const MEASUREMENTS: usize = 16;

/// What a node is made of.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) sagas: BTreeMap<(SagaName, u32), Arc<Definition>>,
    pub(crate) shared: Shared,
}

/// Starts everything and waits for the first lease.
pub(crate) async fn up(parts: Parts) -> Result<(Arc<Engine>, Strings), Error> {
    let config = parts.config;
    let boot = clock::boot();
    let (store, operator) = open_store(&config).await?;
    describe(&store, parts.sagas.values()).await;
    let tasks = Tasks::new();
    let meter = Meter::new(&config.scope(), Role::Orchestrator);
    let bus = connect(&config, boot, tasks.spawner(), meter.clone()).await?;
    let client = bus.as_ref().map(|(bus, _)| bus.client().clone());
    let (view_sent, view) = watch::channel(ring::View::default());
    let announcer = Announcer::new(config.scope(), config.instance.clone(), boot, client);
    let names: BTreeSet<&SagaName> = parts.sagas.keys().map(|(name, _)| name).collect();
    let sagas = names.len();
    let engine = Arc::new(Engine {
        timing: config.timing(),
        boot,
        shared: parts.shared,
        store,
        operator,
        lease: Lease::new(),
        in_flight: InFlight::new(config.capacity, sagas),
        waits: Waits::default(),
        targets: targets(&parts.sagas, &config),
        sagas: parts.sagas,
        meter,
        announcer,
        spawner: tasks.spawner(),
        polled: watch::Sender::new(None),
        backlog_due: watch::Sender::default(),
        view: view.clone(),
        life: watch::Sender::new(Life::Up),
        superseded: CancellationToken::new(),
        handed_back: 0.into(),
        config,
    });
    let (lease_told, lease_hears) = mpsc::channel(4);
    let strings = Strings {
        tasks,
        lease: lease_told,
        leave_ring: CancellationToken::new(),
        close_bus: CancellationToken::new(),
    };
    let (measured, inputs) = mpsc::channel(MEASUREMENTS);
    engine.spawn(lease::run(
        Arc::clone(&engine),
        lease_hears,
        measured.clone(),
    ));
    if let Some((bus, told)) = bus {
        let port = ring::Port {
            inputs,
            view: view_sent,
        };
        engine.on_bus(bus, told, port, &strings);
    }
    engine.spawn(lookout::run(Arc::clone(&engine), view, measured));
    engine.spawn(targets::run(Arc::clone(&engine)));
    engine.spawn(report::run(Arc::clone(&engine)));
    engine.first_lease().await;
    Ok((engine, strings))
}

impl Engine {
    fn on_bus(
        self: &Arc<Self>,
        bus: Bus,
        told: mpsc::Receiver<Told>,
        port: ring::Port,
        strings: &Strings,
    ) {
        let close = strings.close_bus.clone();
        if !self.config.retry_node {
            return self.spawn(ring::stay_out(bus, told, close));
        }
        let edges = Edges {
            bus,
            told,
            tasks: self.spawner.clone(),
            shutdown: strings.leave_ring.clone(),
            grace: self.config.grace,
            meter: self.meter.clone(),
        };
        self.spawn(ring::run(Arc::clone(self), port, edges, close));
    }

    async fn first_lease(&self) {
        let mut changes = self.lease.changes();
        while self.lease.incarnation().is_none() {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = self.spawner.broken() => return,
            }
        }
    }

    pub(super) fn member(&self) -> Orchestrator {
        let config = orchestrator::Config {
            scope: self.config.scope(),
            id: self.config.instance.clone(),
            service: self.config.service.clone(),
            boot: self.boot,
            timing: self.timing,
            build: BUILD.to_owned(),
        };
        Orchestrator::new(config, clock::chance())
    }
}

async fn open_store(config: &Config) -> Result<(Store, Operator), Error> {
    let url = config.database.url.expose_secret();
    let mut settings = store::Config::new(url).for_lease(config.timing().owner_lease);
    settings.claim_connections = config.database.connections;
    if config.migrate_on_start {
        migrate(&settings).await?;
    }
    let operator = Operator::new(&settings, config.scope())?;
    let store = Store::new(settings, config.scope(), config.service.clone())?;
    let standing = store.ready().await?;
    for warning in &standing.warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(store = %standing.store_id, version = standing.version, "the store is ready");
    Ok((store, operator))
}

/// Names the steps for people; the engine itself needs nothing of it.
async fn describe(store: &Store, sagas: impl Iterator<Item = &Arc<Definition>>) {
    for saga in sagas {
        let names = saga.plan.steps().iter().map(|step| step.name.to_string());
        let names: Vec<String> = names.collect();
        if let Err(error) = store.describe(saga.plan.runs(), &names).await {
            tracing::debug!(%error, "the steps' names were not stored");
        }
    }
}

async fn migrate(settings: &store::Config) -> Result<(), store::Error> {
    let migrated = store::patiently(|| store::migrate(settings)).await?;
    for name in migrated.applied {
        tracing::info!(name, "migrated the store");
    }
    Ok(())
}

/// What the sagas here call.
fn targets(sagas: &BTreeMap<(SagaName, u32), Arc<Definition>>, config: &Config) -> Targets {
    let steps = sagas.values().flat_map(|d| d.steps.values());
    let named = steps.filter_map(ErasedStep::target).cloned().collect();
    Targets::new(named, config.targets.limits(config.capacity))
}

/// Begins to connect; servers may come later. A node that retries nothing claims nothing by the
/// ring, so it is no member, but its events go over the bus.
async fn connect(
    config: &Config,
    boot: BootId,
    spawner: Spawner,
    meter: Meter,
) -> Result<Option<(Bus, mpsc::Receiver<Told>)>, Error> {
    let Some(nats) = &config.nats else {
        tracing::warn!("degraded: no NATS is configured, the node works with Postgres alone");
        return Ok(None);
    };
    let mistake = |error: ConfigError| Error::Config(ConfigErrors(vec![error]));
    let options = Options {
        servers: server_addresses(nats.url.expose_secret()).map_err(|e| mistake(e.into()))?,
        credentials: nats.credentials().map_err(mistake)?,
        ca: nats.ca.clone(),
        role: Role::Orchestrator,
        scope: config.scope(),
        id: config.instance.clone(),
        boot,
        build: BUILD.to_owned(),
    };
    Ok(Some(Bus::connect(options, spawner, meter).await?))
}
