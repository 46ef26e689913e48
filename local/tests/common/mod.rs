//! What these tests share: looking at processes, connecting as a user of the ring.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::time::Duration;

use ring_local::Role;
use tempfile::TempDir;

/// A test that may end with any error.
pub type Checked = Result<(), Box<dyn std::error::Error>>;

/// A folder for servers of a test's own.
pub fn folder() -> Result<TempDir, std::io::Error> {
    tempfile::Builder::new()
        .prefix("ring-local-test-")
        .tempdir()
}

/// The kernel's letter for what a process does: `T` is stopped, `Z` ended but not reaped.
pub fn state(pid: u32) -> Option<char> {
    fields(pid)?.chars().next()
}

/// Whether a process exists and has not ended.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Direct children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = Some(parent.to_string());
    pids.filter(|pid| {
        fields(*pid).is_some_and(|fields| fields.split(' ').nth(1).map(str::to_owned) == parent)
    })
    .collect()
}

fn fields(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit(')').next()?.trim_start().to_owned())
}

/// Waits at most 5 s for a condition.
pub async fn holds_soon(condition: impl Fn() -> bool) -> bool {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), holds)
        .await
        .is_ok()
}

/// A client of one of the five users, as our own programs connect.
pub async fn nats_client(
    url: &str,
    role: Role,
    password: String,
) -> Result<async_nats::Client, Box<dyn std::error::Error>> {
    let options = async_nats::ConnectOptions::with_user_and_password(role.user().into(), password)
        .custom_inbox_prefix(role.inbox_prefix());
    let servers: Vec<async_nats::ServerAddr> =
        url.split(',').map(str::parse).collect::<Result<_, _>>()?;
    Ok(options.connect(servers).await?)
}
