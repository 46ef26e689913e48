//! The three services as processes, on real servers; master and slave live inside the order
//! service, so that nothing else is needed.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, StatusCode};
use ring_local::{Process, Role, Set, Settings, Spec, TestDatabase, free_ports};
use serde_json::{Value, json};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Everything that runs; it goes with the test.
struct Shop {
    http: Client,
    orders: String,
    services: Vec<Process>,
    _databases: Vec<TestDatabase>,
    _set: Arc<Set>,
}

impl Shop {
    async fn open() -> Checked<Self> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let set = Set::from_env_or_start(&Settings::from_env()).await?;
        let servers = set.addresses();
        let ports = free_ports(3)?;
        let mut databases = Vec::new();
        let mut services = Vec::new();
        for (service, port) in ["inventory", "payment", "order"].into_iter().zip(&ports) {
            let database = TestDatabase::create(servers).await?;
            let log = std::env::temp_dir().join(format!("{}-{service}-{port}.log", servers.run));
            let mut spec = Spec::new(service, env!("CARGO_BIN_EXE_shop"), log)
                .clean_env()
                .args([service])
                .env("RINGSAGA__HTTP__LISTEN", format!("127.0.0.1:{port}"))
                .env("RINGSAGA__DATABASE__URL", database.url());
            if service == "order" {
                let scope = set.scope()?;
                spec = spec
                    .env("RINGSAGA__REGION", scope.region)
                    .env("RINGSAGA__CLUSTER", scope.cluster)
                    .env("RINGSAGA__ID", "orders-1")
                    .env("RINGSAGA__NATS__URL", &servers.nats_url)
                    .env("RINGSAGA__RING__WINDOW", "2s")
                    .env("RINGSAGA__EMBEDDED", "true")
                    .env(
                        "RINGSAGA__SHOP__INVENTORY",
                        format!("http://127.0.0.1:{}", ports[0]),
                    )
                    .env(
                        "RINGSAGA__SHOP__PAYMENT",
                        format!("http://127.0.0.1:{}", ports[1]),
                    );
                for (prefix, role) in [
                    ("", Role::Orchestrator),
                    ("MASTER__", Role::Master),
                    ("SLAVE__", Role::Slave),
                ] {
                    let password = servers.nats_password(role);
                    spec = spec
                        .env(format!("RINGSAGA__{prefix}NATS__USER"), role.user())
                        .env(format!("RINGSAGA__{prefix}NATS__PASSWORD"), password);
                }
            }
            databases.push(database);
            services.push(Process::spawn(&spec).await?);
        }
        let shop = Self {
            http: Client::new(),
            orders: format!("http://127.0.0.1:{}", ports[2]),
            services,
            _databases: databases,
            _set: set,
        };
        for port in ports {
            shop.until(&format!("http://127.0.0.1:{port}/readyz"), |page| {
                page["ready"] == true
            })
            .await?;
        }
        Ok(shop)
    }

    /// Asks a page until it holds, at most 20 s.
    async fn until(&self, page: &str, holds: impl Fn(&Value) -> bool) -> Checked<Value> {
        let mut last = Value::Null;
        for _ in 0..400 {
            if let Ok(answer) = self.http.get(page).send().await {
                last = answer.json().await?;
                if holds(&last) {
                    return Ok(last);
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let log = std::fs::read_to_string(self.services[2].log())?;
        Err(format!("{page}: {last}\n{log}").into())
    }

    async fn place(&self, order: &Value) -> Checked<(StatusCode, Value)> {
        let url = format!("{}/orders", self.orders);
        let answer = self.http.post(url).json(order).send().await?;
        Ok((answer.status(), answer.json().await?))
    }

    async fn close(mut self) -> Checked {
        while let Some(mut service) = self.services.pop() {
            let ended = service.stop().await?;
            assert!(ended.success(), "{}: {ended}", service.name());
            std::fs::remove_file(service.log())?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn an_order_is_taken_once_and_ends_in_a_shop_of_three_processes() -> Checked {
    let shop = Shop::open().await?;
    let order = json!({
        "order_id": "A-1", "customer": "ann", "sku": "pen", "quantity": 2, "amount_cents": 500
    });
    let (status, taken) = shop.place(&order).await?;
    assert_eq!(status, StatusCode::ACCEPTED, "{taken}");
    let page = format!(
        "{}/orders/{}",
        shop.orders,
        taken["transaction"].as_str().unwrap_or("")
    );
    let end = shop
        .until(&page, |order| order["state"] == "completed")
        .await?;
    assert_eq!(end["order"], order);

    let (status, same) = shop.place(&order).await?;
    assert_eq!(
        (status, &same["transaction"]),
        (StatusCode::OK, &taken["transaction"])
    );
    let mut other = order.clone();
    other["quantity"] = json!(3);
    assert_eq!(shop.place(&other).await?.0, StatusCode::CONFLICT);
    other["quantity"] = json!(0);
    let (status, says) = shop.place(&other).await?;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        says["error"]
            .as_str()
            .is_some_and(|e| e.contains("quantity")),
        "{says}"
    );
    let (status, says) = shop.place(&json!({ "order_id": "A-2" })).await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{says}");

    let declined = json!({
        "order_id": "A-3", "customer": "declined-bob", "sku": "pen", "quantity": 1,
        "amount_cents": 250
    });
    let (_, taken) = shop.place(&declined).await?;
    let page = format!(
        "{}/orders/{}",
        shop.orders,
        taken["transaction"].as_str().unwrap_or("")
    );
    let end = shop
        .until(&page, |order| order["state"] == "compensated")
        .await?;
    assert!(
        end["error"]
            .as_str()
            .is_some_and(|e| e.contains("declined")),
        "{end}"
    );

    // The embedded master and slave have cut the ring: nothing is missing.
    let numbers = shop
        .http
        .get(format!("{}/metrics", shop.orders))
        .send()
        .await?
        .text()
        .await?;
    assert!(numbers.contains("ringsaga_ring_leader"), "{numbers}");
    shop.close().await
}
