//! Names that nobody guesses and nobody else has: one for each run, scope and database.
//!
//! Chance comes from the kernel. It decides no lengths of secrets but its own.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::error::{Error, file};

/// `bytes` random bytes in lower-case hexadecimal.
pub(crate) fn random<const BYTES: usize>() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0_u8; BYTES];
    let mut open = File::open(source).map_err(file("open", source))?;
    open.read_exact(&mut bytes).map_err(file("read", source))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
