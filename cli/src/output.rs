//! Tables to stdout, chatter to stderr; a broken pipe is an ordinary error that ends quietly.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::args::Format;

/// Writes a line to stdout.
///
/// # Errors
/// When stdout can't be written, a broken pipe included.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Writes a value as one line of JSON to stdout.
///
/// # Errors
/// When it can't be written.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string(value)?)?;
    Ok(())
}

/// Writes rows to stdout in the form that is wanted.
///
/// # Errors
/// When they can't be written.
pub(crate) fn rows<T: Serialize>(
    format: Format,
    rows: &[T],
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    match format {
        Format::Table => line(&table())?,
        Format::Json => json(&rows)?,
        Format::Jsonl => rows.iter().try_for_each(json)?,
    }
    Ok(())
}

/// Writes a remark to stderr; if even that fails there is nobody to tell.
pub(crate) fn chatter(text: &str) {
    let mut out = io::stderr().lock();
    if out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .is_err()
    {
        // Nobody listens.
    }
}

/// A table in the house's form: no frame, columns apart by two blanks, fitted to the terminal.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.iter().copied());
    table
}

/// A share of the ring, from parts per million.
pub(crate) fn share(ppm: u32) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}

/// A duration as people say it: `830ms`, `4.2s`, `3m 12s`.
pub(crate) fn ago(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{}m {}s", ms / 60_000, ms % 60_000 / 1_000),
    }
}
