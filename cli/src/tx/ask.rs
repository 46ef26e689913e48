//! What is only read: lists, one transaction, why it stands still, counts.

use orchestrator_lib::store::{Cursor, Operator, Order, Reason};
use ring_core::{id::TransactionId, wire::Time};
use serde::Serialize;

use super::{
    filter, missing, operator, told,
    view::{self, Line, counted},
    whole::Whole,
};
use crate::{
    args::{Count, Format, List, OrderArg, Show},
    exit::Exit,
    output,
};

/// Pages that one `tx list` looks through before it says how far it came: 200,000 rows.
const MOST_PAGES: usize = 20;

#[derive(Serialize)]
struct Explained<'a> {
    id: TransactionId,
    state: &'static str,
    epoch: u64,
    at: Time,
    reasons: Vec<Because<'a>>,
}

#[derive(Serialize)]
struct Because<'a> {
    code: &'a str,
    says: &'a str,
    todo: &'a str,
}

fn because(reason: &Reason) -> Because<'_> {
    Because {
        code: reason.code,
        says: &reason.says,
        todo: reason.todo,
    }
}

pub(super) async fn list(args: &List, format: Format) -> anyhow::Result<()> {
    let (operator, filter) = (operator(&args.store)?, filter(&args.filter));
    let order = match args.order {
        OrderArg::Newest => Order::Newest,
        OrderArg::Oldest => Order::Oldest,
    };
    let mut next = Some(Cursor(args.after.map(TransactionId)));
    let (mut found, mut pages) = (Vec::new(), 0);
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    while let Some(cursor) = next.filter(|_| found.len() < most && pages < MOST_PAGES) {
        let left = args.limit - u32::try_from(found.len()).unwrap_or(args.limit);
        let page = operator.list(&filter, order, cursor, left).await;
        let page = page.map_err(told)?;
        found.extend(page.lines);
        (next, pages) = (page.next, pages + 1);
    }
    let lines: Vec<Line> = found.iter().map(Line::new).collect();
    output::rows(format, &lines, || view::table(&lines))?;
    if let Some(Cursor(Some(last))) = next {
        output::chatter(&format!("more: --after {last}"));
    }
    Ok(())
}

pub(super) async fn show(args: &Show, format: Format) -> anyhow::Result<()> {
    let operator = operator(&args.store)?;
    let id = which(&operator, args).await?;
    let shown = operator.show(id).await.map_err(told)?;
    let shown = shown.ok_or_else(|| missing(id, &args.store))?;
    let whole = Whole::new(&shown, &args.registry.regions);
    if format == Format::Table {
        whole.print()
    } else {
        output::json(&whole)
    }
}

pub(super) async fn why(args: &Show, format: Format) -> anyhow::Result<()> {
    let operator = operator(&args.store)?;
    let id = which(&operator, args).await?;
    let why = operator.why(id).await.map_err(told)?;
    let why = why.ok_or_else(|| missing(id, &args.store))?;
    if format != Format::Table {
        return output::json(&Explained {
            id,
            state: why.state.as_str(),
            epoch: why.epoch,
            at: Time(why.at),
            reasons: why.reasons.iter().map(because).collect(),
        });
    }
    let mut table = output::table(&["REASON", "WHAT IS THE CASE", "WHAT TO DO"]);
    for reason in &why.reasons {
        let says = view::plain(&reason.says);
        table.add_row([reason.code, says.as_str(), reason.todo]);
    }
    output::line(&table.trim_fmt())?;
    Ok(())
}

pub(super) async fn count(args: &Count, format: Format) -> anyhow::Result<()> {
    let counts = operator(&args.store)?
        .counts(args.service.as_ref())
        .await
        .map_err(told)?;
    counted(&counts, format)
}

/// The transaction that is meant, by id or by key.
async fn which(operator: &Operator, args: &Show) -> anyhow::Result<TransactionId> {
    if let Some(id) = args.id {
        return Ok(TransactionId(id));
    }
    let key = args.key.as_deref().unwrap_or_default();
    let found = operator
        .keyed(key, args.service.as_ref(), args.saga.as_ref())
        .await
        .map_err(told)?;
    match found.as_slice() {
        [one] => Ok(one.id),
        [] => Err(Exit::NotFound.because(format!("nothing was started here with the key {key:?}"))),
        several => {
            let lines = several
                .iter()
                .map(|k| format!("\n  {} ({}, {})", k.id, k.service, k.saga));
            let lines: String = lines.collect();
            Err(Exit::Usage.because(format!(
                "several have the key {key:?}: name --service and --saga, or the id{lines}"
            )))
        }
    }
}
