//! The story: orders come in, things break, payment returns, everything settles.
//!
//! Decides when the story goes on and when it is over. What breaks is the plan's, how it is judged
//! the verdict's.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, StatusCode};
use ring_core::time::{Mono, Now};
use ring_shell::clock;
use shop::participant::{Hold, Mode};

use super::{
    books::Readers,
    customers::Customers,
    ears::Ears,
    plan::{Act, Plan},
    report::{Blown, Report},
    screen::{Screen, Snapshot},
    stage::{Kind, Stage, id},
    verdict::Verdict,
};
use crate::{args::Blow, exit::Exit};

/// Starting takes some seconds on two idle cores.
const READY_WITHIN: Duration = Duration::from_secs(25);

/// The story ends here whatever is open: with the start it stays under two minutes.
const SETTLED_WITHIN: Duration = Duration::from_secs(90);

/// A held charge is waited for this long after it was due.
const LATE_WITHIN: Duration = Duration::from_secs(5);

/// How often the ring and the clock are looked at; times in the report are as exact as this.
const LOOK: Duration = Duration::from_millis(100);

/// The counts are read at every so many looks.
const COUNT_EVERY: u32 = 4;

/// Milliseconds by which inventory answers late when an order service is about to die: below the
/// time limit of a call, so that the calls are done, and nobody has recorded it.
const LATE_ANSWER: u64 = 700;

/// How long inventory answers late before that.
const AMID: Duration = Duration::from_millis(600);

/// A request to a switch.
const SWITCH: Duration = Duration::from_secs(5);

/// A story that is being told.
pub(crate) struct Story<'a> {
    stage: &'a mut Stage,
    plan: &'a Plan,
    screen: &'a Screen,
    http: Client,
    ears: Ears,
    readers: Readers,
    customers: Customers,
    blown: Vec<Blown>,
    snapshot: Snapshot,
    /// When the first order was placed.
    begun: Option<Mono>,
}

impl<'a> Story<'a> {
    /// Tells it.
    ///
    /// # Errors
    /// When a part ends that nobody killed, or does not become ready.
    pub(crate) async fn tell(
        stage: &'a mut Stage,
        plan: &'a Plan,
        screen: &'a Screen,
    ) -> anyhow::Result<Report> {
        let mut story = Self {
            http: Client::builder().timeout(SWITCH).build()?,
            ears: Ears::open(stage.places()).await?,
            readers: Readers::open(stage.places()).await?,
            customers: Customers::default(),
            blown: Vec::new(),
            snapshot: Snapshot {
                orders: plan.orders.len(),
                ..Snapshot::default()
            },
            begun: None,
            stage,
            plan,
            screen,
        };
        story.ready().await?;
        story.hold().await?;
        story.work().await?;
        story.report().await
    }

    /// Waits until every service works and every part of the ring is looked after.
    async fn ready(&mut self) -> anyhow::Result<()> {
        let begun = clock::now().mono;
        let mut waiting = String::new();
        while clock::now().mono.since(begun) < READY_WITHIN {
            self.listen(LOOK).await?;
            self.look()?;
            match self.unready().await {
                Some(why) => waiting = why,
                None => {
                    let took = clock::now().mono.since(begun).as_secs_f64();
                    self.say(&format!(
                        "ready after {took:.1} s: every part of the ring has an owner"
                    ));
                    return Ok(());
                }
            }
        }
        Err(Exit::Failed.because(format!("not ready after 60 s: {waiting}")))
    }

    async fn unready(&self) -> Option<String> {
        if !self.ears.standing.is_whole() {
            return Some("some part of the ring has no owner".to_owned());
        }
        let places = self.stage.places();
        for service in places
            .orders
            .iter()
            .chain([&places.inventory, &places.payment])
        {
            let asked = self.http.get(format!("{service}/readyz")).send().await;
            match asked.map(|answer| (answer.status(), answer)) {
                Ok((StatusCode::OK, _)) => {}
                Ok((_, answer)) => return answer.text().await.ok(),
                Err(error) => return Some(error.to_string()),
            }
        }
        None
    }

    /// Holds the first charges back: they will arrive after their orders were undone.
    async fn hold(&mut self) -> anyhow::Result<()> {
        for order in &self.plan.orders[..self.plan.late] {
            let hold = Hold {
                order_id: order.order_id.clone(),
                ms: u64::try_from(self.plan.hold.as_millis()).unwrap_or(u64::MAX),
            };
            let url = format!("{}/holds", self.stage.places().payment);
            self.http
                .post(url)
                .json(&hold)
                .send()
                .await?
                .error_for_status()?;
        }
        Ok(())
    }

    /// Places the orders and lets the blows fall until all is settled.
    async fn work(&mut self) -> anyhow::Result<()> {
        let services: Arc<[String]> = self.stage.places().orders.clone().into();
        let orders = self.plan.orders.clone();
        let placing =
            self.customers
                .clone()
                .place(self.http.clone(), services, orders, self.plan.placing);
        let placing = tokio::spawn(placing);
        let begun = clock::now().mono;
        self.begun = Some(begun);
        self.say(&format!(
            "{} orders come in over {:.0} s",
            self.plan.orders.len(),
            self.plan.placing.as_secs_f64()
        ));
        let mut acts = self.plan.acts.iter().copied().peekable();
        let mut looks = 0_u32;
        loop {
            self.listen(LOOK).await?;
            self.look()?;
            let at = clock::now().mono.since(begun);
            if let Some(act) = acts.next_if(|act| act.at <= at) {
                self.act(act).await?;
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(COUNT_EVERY) {
                self.count().await?;
                let over = placing.is_finished() && acts.peek().is_none();
                if over && self.is_settled(at).await? {
                    return Ok(());
                }
            }
            if at > SETTLED_WITHIN {
                self.say("time is over, some orders are not settled");
                return Ok(());
            }
        }
    }

    /// Whether every order has ended and every held charge has arrived.
    async fn is_settled(&self, at: Duration) -> anyhow::Result<bool> {
        let taken = i64::try_from(self.customers.placed()).unwrap_or(i64::MAX);
        if self.snapshot.open() > 0 || self.snapshot.settled() < taken {
            return Ok(false);
        }
        let late = i64::try_from(self.plan.late).unwrap_or(0);
        Ok(at > self.plan.hold + LATE_WITHIN || self.readers.blocked().await? >= late)
    }

    /// Lets one blow fall.
    async fn act(&mut self, act: Act) -> anyhow::Result<()> {
        if act.blow == Blow::Order {
            self.say(">> inventory answers late, so that calls are under way");
            self.switch(Kind::Inventory, Mode::Slow { ms: LATE_ANSWER })
                .await?;
            self.listen(AMID).await?;
        }
        let at = clock::now();
        let who = match act.blow {
            Blow::PaymentDown => self.switch(Kind::Payment, Mode::Down).await?,
            Blow::PaymentUp => self.switch(Kind::Payment, Mode::Up).await?,
            Blow::Slave => self.kill(id(Kind::Slave, act.victim)).await?,
            Blow::Order => self.kill(id(Kind::Order, act.victim)).await?,
            Blow::Master => {
                let leader = self.ears.leader().await?;
                self.kill(leader).await?
            }
            Blow::Nats => {
                self.stage.kill_nats(act.victim).await?;
                format!("nats-{}", act.victim + 1)
            }
        };
        if act.blow == Blow::Order {
            self.switch(Kind::Inventory, Mode::Up).await?;
        }
        let text = match act.blow {
            Blow::PaymentDown => "payment is down: it answers 503".to_owned(),
            Blow::PaymentUp => "payment is back".to_owned(),
            Blow::Master => format!("kill -9 {who}, the leading master"),
            Blow::Order => format!("kill -9 {who}, amid its calls; inventory is quick again"),
            Blow::Slave | Blow::Nats => format!("kill -9 {who}"),
        };
        self.say(&format!(">> {text}"));
        self.blown.push(Blown {
            blow: act.blow,
            who,
            at,
        });
        Ok(())
    }

    async fn kill(&mut self, id: String) -> anyhow::Result<String> {
        self.stage.kill(&id).await?;
        Ok(id)
    }

    async fn switch(&self, kind: Kind, mode: Mode) -> anyhow::Result<String> {
        let places = self.stage.places();
        let service = if kind == Kind::Payment {
            &places.payment
        } else {
            &places.inventory
        };
        let url = format!("{service}/faults");
        self.http
            .post(url)
            .json(&mode)
            .send()
            .await?
            .error_for_status()?;
        Ok(id(kind, 0))
    }

    /// Hears the ring for a while.
    async fn listen(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = tokio::time::sleep(time);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return Ok(()),
                heard = self.ears.next() => if let Some(text) = heard? {
                    self.say(&text);
                }
            }
        }
    }

    fn look(&mut self) -> anyhow::Result<()> {
        self.stage.all_live()?;
        let now = clock::now();
        self.ears.look(now, &self.stage.killed());
        let standing = &self.ears.standing;
        self.snapshot.at = self.since(now);
        self.snapshot.placed = self.customers.placed();
        self.snapshot.owners = standing.shares();
        self.snapshot.dark = standing.gaps.iter().map(|gap| gap.ppm()).sum();
        self.screen.show(&self.snapshot);
        Ok(())
    }

    async fn count(&mut self) -> anyhow::Result<()> {
        self.snapshot.counts = self.readers.counts().await?;
        Ok(())
    }

    async fn report(self) -> anyhow::Result<Report> {
        self.screen.close();
        let books = self.readers.read().await?;
        let mut verdict = Verdict::of(&self.plan.orders, &books);
        verdict.complaints.extend(self.customers.trouble());
        let up = self
            .blown
            .iter()
            .find(|blown| blown.blow == Blow::PaymentUp);
        let drain = match up {
            Some(up) => self.readers.drain(up.at.wall).await?,
            None => None,
        };
        let mut report = Report::new(
            verdict,
            self.blown,
            &self.ears,
            self.begun.unwrap_or_default(),
        );
        report.drain = drain;
        report.resent = self.customers.repeats();
        Ok(report)
    }

    fn say(&self, text: &str) {
        self.screen.tell(self.since(clock::now()), text);
    }

    fn since(&self, now: Now) -> Option<Duration> {
        self.begun.map(|begun| now.mono.since(begun))
    }
}
