//! A database of its own with three sessions behind gates: runs schedules on it, one after the
//! other, and looks at what became of each. Decides whose turn it is; refuses to judge.

use std::time::Duration;

use orchestrator_lib::store::{Config, Operator, Store};
use tokio::{task::JoinHandle, time::sleep};
use tokio_postgres::Client;

use super::{
    dropped::Impatient,
    history::{self, History},
    schedule::{Fault, Schedule, name},
    verb::{Actor, Answer, Marks, Scene, Verb},
    wire::{Rules, Wire},
};
use crate::store_support::{self as support, Bench, LEASE, Node};

/// Longer than a session ever needs on a busy machine: beyond it the schedule hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A write that finds its row held asks again every 10 ms and stands at no gate.
const SPINNING: Duration = Duration::from_millis(25);

pub(crate) type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

pub(crate) struct Lane {
    pub(crate) bench: Bench,
    /// Holds the gates.
    pub(crate) desk: Client,
    pub(crate) keeper: Node,
    pub(crate) actors: Vec<Actor>,
    wires: Vec<Wire>,
}

/// One session of a schedule.
pub(crate) struct Session {
    pub(crate) verb: Verb,
    pub(crate) marks: Marks,
    pub(crate) actor: Actor,
    task: Option<JoinHandle<Answer>>,
    pub(crate) answer: Option<Answer>,
    /// Nobody waits for its answer.
    pub(crate) dropped: bool,
    /// Gates it has not been let through.
    closed: Vec<i32>,
}

/// What was seen.
pub(crate) struct Seen {
    pub(crate) scene: Scene,
    pub(crate) sessions: Vec<Session>,
    pub(crate) history: History,
    /// Turn by turn: what was done and where everybody stood then.
    pub(crate) table: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Stand {
    NotBegun,
    Gate(i64),
    /// Behind another session's row or key.
    Blocked,
    Busy,
    Ended,
}

impl Lane {
    /// `rules` change statements on their way; `settings` is SQL for the database, before any
    /// session connects.
    pub(crate) async fn new(rules: Rules, settings: &str) -> Fallible<Self> {
        let bench = Bench::new().await?;
        bench.run(include_str!("gates.sql")).await?;
        bench.run(settings).await?;
        let desk = bench.session().await?;
        let keeper = bench.node("keeper", &["buy", "sell"]).await?;
        keeper.store.close_lease(keeper.me).await?;
        let address: tokio_postgres::Config = bench.config.url.parse()?;
        let server = *address.get_ports().first().ok_or("no port")?;
        let (mut actors, mut wires) = (Vec::new(), Vec::new());
        for session in 0..3 {
            let wire = Wire::to(server, rules.clone()).await?;
            actors.push(actor(name(session), &bench.config, server, wire.port).await?);
            wires.push(wire);
        }
        Ok(Self {
            bench,
            desk,
            keeper,
            actors,
            wires,
        })
    }

    /// How many statements were changed on their way.
    pub(crate) fn replaced(&self) -> u64 {
        self.wires.iter().map(Wire::replaced).sum()
    }

    /// Runs one schedule from its world to its end.
    pub(crate) async fn run(&mut self, schedule: &Schedule) -> Fallible<Seen> {
        let scene = schedule.world.build(&self.desk, &self.keeper).await?;
        let before = history::mark(&self.desk).await?;
        let mut sessions = self.sessions(schedule, &scene);
        self.close_gates(&sessions).await?;
        let mut table = Vec::new();
        for (turn, session) in schedule.turns.iter().enumerate() {
            let fault = schedule.fault.filter(|f| f.0 == turn).map(|f| f.1);
            let deed = self.turn(*session, &mut sessions, &scene, fault).await?;
            let stands = self.settled(&mut sessions).await?;
            table.push(format!(
                "{turn:>2}  {}  {deed:<12} {stands:?}",
                name(*session)
            ));
        }
        self.open_gates().await?;
        for (at, session) in sessions.iter_mut().enumerate() {
            self.wires[at].swallow(false);
            if let Some(task) = session.task.take() {
                let answer = tokio::time::timeout(PATIENCE, task).await;
                session.answer = Some(answer.map_err(|_| format!("{schedule}: hangs"))??);
            }
        }
        self.wait_for_the_late().await?;
        self.ask_again(&mut sessions, &scene).await?;
        let history = history::read(&self.desk, before).await?;
        Ok(Seen {
            scene,
            sessions,
            history,
            table,
        })
    }

    fn sessions(&self, schedule: &Schedule, scene: &Scene) -> Vec<Session> {
        let verbs = schedule.verbs.iter().zip(&self.actors);
        let session = |(verb, actor): (&Verb, &Actor)| Session {
            verb: *verb,
            marks: Marks::new(scene, *verb),
            actor: actor.clone(),
            task: None,
            answer: None,
            dropped: false,
            closed: verb.gates().to_vec(),
        };
        verbs.map(session).collect()
    }

    /// Asks one verb and stops waiting after so many polls; then asks again.
    pub(crate) async fn impatient(&mut self, schedule: &Schedule, polls: usize) -> Fallible<Seen> {
        let scene = schedule.world.build(&self.desk, &self.keeper).await?;
        let before = history::mark(&self.desk).await?;
        let mut sessions = self.sessions(schedule, &scene);
        for session in &mut sessions {
            let asked = session.actor.clone();
            let asked = asked.ask(session.verb, scene.clone(), session.marks.clone());
            let asked = Impatient::new(asked, polls);
            session.answer = tokio::spawn(asked).await?;
            session.dropped = session.answer.is_none();
        }
        self.wait_for_the_late().await?;
        self.ask_again(&mut sessions, &scene).await?;
        Ok(Seen {
            history: history::read(&self.desk, before).await?,
            scene,
            sessions,
            table: Vec::new(),
        })
    }

    async fn turn(
        &self,
        at: usize,
        sessions: &mut [Session],
        scene: &Scene,
        fault: Option<Fault>,
    ) -> Fallible<String> {
        let session = &mut sessions[at];
        if session.task.is_none() && session.answer.is_none() && !session.dropped {
            let asked = session.actor.clone();
            let asked = asked.ask(session.verb, scene.clone(), session.marks.clone());
            session.task = Some(tokio::spawn(asked));
            return Ok(session.verb.word().to_owned());
        }
        if let Some(fault) = fault {
            match fault {
                Fault::Cancel | Fault::Kill => self.signal(at, fault).await?,
                Fault::Cut => self.wires[at].cut(),
                Fault::Swallow => self.wires[at].swallow(true),
                Fault::Drop => {
                    if let Some(task) = session.task.take() {
                        task.abort();
                        session.dropped = true;
                    }
                }
            }
            if fault != Fault::Swallow {
                return Ok(fault.word().to_owned());
            }
        }
        if session.closed.is_empty() {
            return Ok("nothing".to_owned());
        }
        let gate = session.closed.remove(0);
        let key = i32::try_from(u32::from(session.actor.name))?;
        let open = "select pg_advisory_unlock($1, $2)";
        self.desk.execute(open, &[&key, &gate]).await?;
        Ok(format!("through {gate}"))
    }

    /// Whoever stopped waiting asks the same again, and by then hears of what it did.
    async fn ask_again(&self, sessions: &mut [Session], scene: &Scene) -> Fallible<()> {
        for session in sessions.iter_mut().filter(|session| session.dropped) {
            if session.verb.is_claim() {
                // Not asked again: what it took shows as a stray at the next renewal. The store's
                // one connection for claims is free when this is answered.
                session.actor.store.backlog(&[]).await?;
            } else {
                let asked = session.actor.clone();
                let asked = asked.ask(session.verb, scene.clone(), session.marks.clone());
                session.answer = Some(asked.await);
            }
        }
        Ok(())
    }

    async fn signal(&self, at: usize, fault: Fault) -> Fallible<()> {
        let verb = if fault == Fault::Kill {
            "pg_terminate_backend"
        } else {
            "pg_cancel_backend"
        };
        let statement = format!(
            "select {verb}(pid) from pg_stat_activity where pid = any($1) and state = 'active'"
        );
        let pids = self.wires[at].backends();
        self.desk.query(&statement, &[&pids]).await?;
        Ok(())
    }

    /// Waits until nobody moves any more without being let through.
    async fn settled(&self, sessions: &mut [Session]) -> Fallible<Vec<Stand>> {
        let began = tokio::time::Instant::now();
        loop {
            let stands = self.stands(sessions).await?;
            let waited = began.elapsed();
            let busy = stands.contains(&Stand::Busy);
            if !busy || waited > SPINNING {
                return Ok(stands);
            }
            if waited > Duration::from_millis(2) {
                sleep(Duration::from_millis(1)).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn stands(&self, sessions: &mut [Session]) -> Fallible<Vec<Stand>> {
        let waiting = self
            .desk
            .query(
                "select pid, case when locktype = 'advisory' then objid::bigint end as gate \
                 from pg_locks where not granted",
                &[],
            )
            .await?;
        let mut stands = Vec::new();
        for (at, session) in sessions.iter_mut().enumerate() {
            if session.task.as_ref().is_some_and(JoinHandle::is_finished)
                && let Some(task) = session.task.take()
            {
                session.answer = Some(task.await?);
            }
            let pids = self.wires[at].backends();
            let held = waiting
                .iter()
                .find(|row| pids.contains(&row.get::<_, i32>("pid")));
            let held = held.map(|row| row.get::<_, Option<i64>>("gate"));
            stands.push(match held {
                _ if session.answer.is_some() => Stand::Ended,
                Some(Some(gate)) => Stand::Gate(gate),
                Some(None) => Stand::Blocked,
                None if session.dropped => Stand::Ended,
                None if session.task.is_none() => Stand::NotBegun,
                None => Stand::Busy,
            });
        }
        Ok(stands)
    }

    /// Only those of its verb: every session passes a few others, too.
    async fn close_gates(&self, sessions: &[Session]) -> Fallible<()> {
        for session in sessions {
            let key = i32::try_from(u32::from(session.actor.name))?;
            let close = "select pg_advisory_lock($1, g) from unnest($2::integer[]) g";
            self.desk.query(close, &[&key, &session.closed]).await?;
        }
        Ok(())
    }

    async fn open_gates(&self) -> Fallible<()> {
        self.desk
            .query("select pg_advisory_unlock_all()", &[])
            .await?;
        Ok(())
    }

    /// A statement whose client went away may still be under way.
    async fn wait_for_the_late(&self) -> Fallible<()> {
        let busy = "select count(*) from pg_stat_activity where datname = current_database() \
            and state <> 'idle' and pid <> pg_backend_pid()";
        for _ in 0..2_000 {
            if self.desk.query_one(busy, &[]).await?.get::<_, i64>(0) == 0 {
                return Ok(());
            }
            sleep(Duration::from_millis(1)).await;
        }
        Err("a statement never ends".into())
    }

    /// Everything as before the first schedule.
    pub(crate) async fn clear(&mut self, sessions: &[Session]) -> Fallible<()> {
        for (actor, session) in self.actors.iter_mut().zip(sessions) {
            if session.verb == Verb::Close {
                let process = support::process(&actor.name.to_string(), &["buy"]);
                actor.me = actor.store.open(&process, LEASE).await?;
            }
        }
        let live: Vec<i64> = self.actors.iter().map(|actor| actor.me.0).collect();
        let forget = "delete from ringsaga.owner where incarnation <> all($1)";
        self.desk.execute(forget, &[&live]).await?;
        self.desk
            .batch_execute(
                "delete from ringsaga.transaction; delete from ringsaga.step; \
                 delete from ringsaga.payload; delete from ringsaga.idempotency; \
                 delete from ringsaga.wake; delete from ringsaga.audit; delete from gate.history; \
                 update ringsaga.owner set lease_until = now() + interval '1 h', suspect = null",
            )
            .await?;
        Ok(())
    }

    pub(crate) async fn close(self) {
        for actor in &self.actors {
            actor.store.close().await;
        }
        self.keeper.store.close().await;
        drop(self.bench);
    }
}

/// A store whose connections say their name and go over the wire.
async fn actor(name: char, config: &Config, server: u16, port: u16) -> Fallible<Actor> {
    let mut config = config.clone();
    config.url = config
        .url
        .replace(&format!(":{server}/"), &format!(":{port}/"));
    let joint = if config.url.contains('?') { '&' } else { '?' };
    config.url += &format!("{joint}sslmode=disable&options=-c%20gate.session%3D{name}");
    (config.claim_connections, config.admin_connections) = (1, 1);
    // A held session waits for its turn, however slow the machine.
    (config.call_timeout, config.renew_timeout) = (PATIENCE, PATIENCE);
    let store = Store::new(config.clone(), support::scope(), support::service())?;
    let process = support::process(&name.to_string(), &["buy"]);
    let me = store.open(&process, LEASE).await?;
    let desk = Operator::new(&config, support::scope())?;
    desk.counts(None).await?;
    Ok(Actor {
        name,
        store,
        desk,
        me,
    })
}
