//! The pages, asked as a probe would.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use ring_shell::{
    health::{Pages, start},
    tasks::Tasks,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

async fn page(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn alive_is_not_ready_and_ready_is_told_with_reasons() {
    let reasons = Arc::new(Mutex::new(vec!["no master has accepted it yet".to_owned()]));
    let tasks = Tasks::new();
    let told = reasons.clone();
    let pages = Pages {
        ready: Arc::new(move || told.lock().unwrap().clone()),
        numbers: None,
        name: "toy",
        version: "1.2.3",
    };
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let address = start(anywhere, pages, &tasks.spawner()).await.unwrap();
    assert!(page(address, "/livez").await.starts_with("HTTP/1.1 200"));
    let not_ready = page(address, "/readyz").await;
    assert!(not_ready.starts_with("HTTP/1.1 503"), "{not_ready}");
    let body = "{\"ready\":false,\"reasons\":[\"no master has accepted it yet\"]}";
    assert!(not_ready.ends_with(body), "{not_ready}");
    reasons.lock().unwrap().clear();
    assert!(page(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    let version = page(address, "/version").await;
    assert!(
        version.ends_with("{\"name\":\"toy\",\"version\":\"1.2.3\"}"),
        "{version}"
    );
    tasks.stop().await;
}
