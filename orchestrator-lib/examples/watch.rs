//! Subscribes to `ring.>` and prints windows and events as they come: all that an observer needs
//! is NATS and `subjects.md`.
//!
//! ```text
//! NATS_URL=nats://observer:PASSWORD@localhost:4222 cargo run -p orchestrator-lib --example watch
//! ```

use futures_util::StreamExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an example has no configuration file"
    )]
    let url = std::env::var("NATS_URL")?;
    let client = async_nats::ConnectOptions::new()
        // Observers may only subscribe to their own inboxes.
        .custom_inbox_prefix("_INBOX_observer")
        .connect(url)
        .await?;
    let mut all = client.subscribe("ring.>").await?;
    while let Some(message) = all.next().await {
        // Any JSON reader will do: tokens are decimal texts, unknown fields are to be ignored.
        let body: serde_json::Value = match serde_json::from_slice(&message.payload) {
            Ok(body) => body,
            Err(error) => {
                print(&format!("{}: no JSON ({error})", message.subject));
                continue;
            }
        };
        let said = |path: &str| match body.pointer(path) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "?".to_owned(),
        };
        match body.get("kind").and_then(serde_json::Value::as_str) {
            Some("grant") => print(&format!(
                "{}: window {} of {} from {}: {} holds {} … {}",
                message.subject,
                said("/window"),
                said("/service"),
                said("/starts_at"),
                said("/holder"),
                said("/range/start"),
                said("/range/end"),
            )),
            _ => print(&format!("{}: {body}", message.subject)),
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]
fn print(line: &str) {
    println!("{line}");
}
