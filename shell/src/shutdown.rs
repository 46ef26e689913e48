//! From signals to a token: the first SIGTERM or SIGINT asks to leave, the second exits at once.
//!
//! Decides nothing about how to leave: that is the machine's.

use std::io;

use tokio_util::sync::CancellationToken;

/// Exit value when a second signal cut the leaving short: 128 + SIGINT, as shells have it.
const IMPATIENT: i32 = 130;

/// A token that is cancelled by the first SIGTERM or SIGINT. The second ends the process.
/// For binaries; a library takes the token as an argument.
///
/// # Errors
/// When the signals can't be listened to.
#[cfg(unix)]
pub fn on_signals() -> io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let asked = token.clone();
    drop(tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = term.recv() => "SIGTERM",
                _ = int.recv() => "SIGINT",
            }
        };
        let signal = next().await;
        tracing::info!(signal, "leaving; a second signal exits at once");
        asked.cancel();
        let signal = next().await;
        tracing::warn!(signal, "second signal: exiting now");
        std::process::exit(IMPATIENT);
    }));
    Ok(token)
}

/// A token that is cancelled by the first Ctrl-C. The second ends the process.
///
/// # Errors
/// None on this system.
#[cfg(not(unix))]
pub fn on_signals() -> io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let asked = token.clone();
    drop(tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            asked.cancel();
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(IMPATIENT);
            }
        }
    }));
    Ok(token)
}
