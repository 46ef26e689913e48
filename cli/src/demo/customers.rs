//! The customers: they place orders over HTTP, and ask again elsewhere when nobody answers.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::{Client, StatusCode};
use shop::wire::Order;
use tokio::task::JoinSet;

/// One request; a killed service does not answer at all.
const REQUEST: Duration = Duration::from_secs(3);

/// A customer asks again after this.
const AGAIN: Duration = Duration::from_millis(200);

/// How often a customer asks before giving up: for half a minute.
const TRIES: usize = 150;

/// What the customers have done so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Customers {
    placed: Arc<AtomicUsize>,
    repeats: Arc<AtomicUsize>,
    trouble: Arc<Mutex<Vec<String>>>,
}

impl Customers {
    /// Orders that were taken.
    pub(crate) fn placed(&self) -> usize {
        self.placed.load(Ordering::Relaxed)
    }

    /// Requests that had to be sent again.
    pub(crate) fn repeats(&self) -> usize {
        self.repeats.load(Ordering::Relaxed)
    }

    /// Orders that nobody took, and why.
    pub(crate) fn trouble(&self) -> Vec<String> {
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Places all orders, evenly over a time; ends when each was taken or given up.
    pub(crate) async fn place(
        self,
        http: Client,
        services: Arc<[String]>,
        orders: Vec<Order>,
        over: Duration,
    ) {
        let count = u32::try_from(orders.len()).unwrap_or(u32::MAX).max(1);
        let begun = ring_shell::clock::now().mono;
        let mut open = JoinSet::new();
        for (index, order) in (0..).zip(orders) {
            let due = over * index / count;
            let passed = ring_shell::clock::now().mono.since(begun);
            tokio::time::sleep(due.saturating_sub(passed)).await;
            let (this, http, services) = (self.clone(), http.clone(), Arc::clone(&services));
            let first = usize::try_from(index).unwrap_or(0);
            open.spawn(async move { this.one(&http, &services, first, &order).await });
            while open.try_join_next().is_some() {}
        }
        while open.join_next().await.is_some() {}
    }

    async fn one(&self, http: &Client, services: &[String], first: usize, order: &Order) {
        let mut last = String::new();
        for service in services
            .iter()
            .cycle()
            .skip(first % services.len().max(1))
            .take(TRIES)
        {
            let url = format!("{service}/orders");
            // The same order_id: whoever took it already says so.
            let sent = http.post(url).timeout(REQUEST).json(order).send().await;
            match sent.map(|answer| (answer.status(), answer)) {
                Ok((StatusCode::ACCEPTED | StatusCode::OK, _)) => {
                    self.placed.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Ok((status, answer)) if status.is_client_error() => {
                    last = answer.text().await.unwrap_or_default();
                    break;
                }
                Ok((status, _)) => last = status.to_string(),
                Err(error) => last = error.without_url().to_string(),
            }
            self.repeats.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(AGAIN).await;
        }
        let says = format!("{}: {last}", order.order_id);
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(says);
    }
}
