//! `ringsaga ring split`: how a range is cut, equally or by weights.

use ring_core::token::Range;
use serde::Serialize;

use crate::{args::Split, exit::Exit, output};

#[derive(Serialize)]
struct Part {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<u32>,
    range: Option<Range>,
    width: String,
    share_ppm: u32,
}

/// Prints the parts.
pub(crate) fn run(split: &Split, json: bool) -> anyhow::Result<()> {
    let parts = parts(split)?;
    if json {
        return parts.iter().try_for_each(output::json);
    }
    let mut table = output::table(&["PART", "START", "END", "WIDTH", "SHARE"]);
    for part in parts {
        let ends = part
            .range
            .map(|r| (r.start().to_string(), r.end().to_string()));
        let (start, end) = ends.unwrap_or_else(|| ("-".into(), "-".into()));
        let share = format!(
            "{}.{:04} %",
            part.share_ppm / 10_000,
            part.share_ppm % 10_000
        );
        table.add_row([part.index.to_string(), start, end, part.width, share]);
    }
    output::line(&table.trim_fmt())?;
    Ok(())
}

fn parts(split: &Split) -> anyhow::Result<Vec<Part>> {
    let whole = split.of.unwrap_or(Range::RING);
    let count = usize::try_from(split.parts)?;
    let ranges = match &split.weights {
        None => whole.split(count),
        Some(weights) if weights.len() == count => whole.split_weighted(weights),
        Some(weights) => {
            let given = weights.len();
            return Err(Exit::Usage.because(format!(
                "{given} weights for {count} parts: give one a part"
            )));
        }
    };
    let part = |(index, range): (usize, Option<Range>)| Part {
        index,
        weight: split.weights.as_ref().and_then(|w| w.get(index).copied()),
        range,
        width: range.map_or(0, Range::width).to_string(),
        share_ppm: range.map_or(0, Range::ppm),
    };
    Ok(ranges.into_iter().enumerate().map(part).collect())
}
