//! Waiting until a child answers a real handshake, or saying why it does not.
//!
//! Decides the time limit and what counts as a lost race for a port. Each server's file brings its
//! own handshake.

use std::future::Future;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::error::Error;
use crate::folder;
use crate::process::Process;

/// A start takes 0.1 s here; a loaded machine may need a multiple.
const LIMIT: Duration = Duration::from_secs(20);
/// Short beside any start, long beside a refused connection.
const EVERY: Duration = Duration::from_millis(5);
/// One handshake on loopback; one that hangs must not eat the whole limit.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// Polls the handshake until it succeeds while the child lives, and gives the child back.
pub(crate) async fn wait<F>(process: Process, handshake: impl Fn() -> F) -> Result<Process, Error>
where
    F: Future<Output = Result<(), String>>,
{
    until(&process, "no answer yet", handshake).await?;
    Ok(process)
}

/// Polls a condition on a living child; `waiting` says what for.
pub(crate) async fn until<F>(
    process: &Process,
    waiting: &str,
    condition: impl Fn() -> F,
) -> Result<(), Error>
where
    F: Future<Output = Result<(), String>>,
{
    let mut last = waiting.to_owned();
    let polling = async {
        loop {
            match tokio::time::timeout(HANDSHAKE, condition()).await {
                // One that ended in the meantime left its port to whoever answered.
                Ok(Ok(())) if process.exit().is_none() => return true,
                Ok(Ok(())) => {}
                Ok(Err(error)) => last = error,
                Err(_elapsed) => last = String::from("the handshake hangs"),
            }
            if let Some(status) = process.exit() {
                last = format!("it ended with {status}");
                return false;
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    let reason = match tokio::time::timeout(LIMIT, polling).await {
        Ok(true) => return Ok(()),
        Ok(false) => last,
        Err(_elapsed) => format!("not ready after {} s: {last}", LIMIT.as_secs()),
    };
    let (name, log) = (process.name().to_owned(), process.log().to_path_buf());
    let tail = folder::tail(&log);
    Err(Error::NotReady {
        name,
        reason,
        log,
        tail,
    })
}

/// Whether a start failed because somebody was faster on its port.
pub(crate) fn port_was_taken(error: &Error) -> bool {
    matches!(error, Error::NotReady { tail, .. }
        if tail.to_ascii_lowercase().contains("address already in use"))
}

/// A connection to a loopback port.
pub(crate) async fn connect(port: u16) -> Result<TcpStream, String> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| error.to_string())
}
