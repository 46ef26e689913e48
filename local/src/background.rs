//! The one thread that starts and reaps every child of this process.
//!
//! The kernel's parent-death signal follows the *thread* that forked, not the process. A child
//! started from a test's thread or from a runtime's worker would die with that thread, in the
//! middle of somebody else's work. So all children start here, on a thread that ends only with
//! the process. It knows nothing of servers.

use std::future::{Future, pending};
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

static BACKGROUND: OnceLock<Result<Handle, io::ErrorKind>> = OnceLock::new();

/// Runs a future on the background thread.
pub(crate) fn spawn<F>(future: F) -> io::Result<JoinHandle<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match BACKGROUND.get_or_init(|| start().map_err(|error| error.kind())) {
        Ok(handle) => Ok(handle.spawn(future)),
        Err(kind) => Err(io::Error::from(*kind)),
    }
}

fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("ring-local".to_owned())
        .spawn(move || runtime.block_on(pending::<()>()))?;
    Ok(handle)
}
