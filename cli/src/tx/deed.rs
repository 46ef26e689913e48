//! Orders: about single transactions, or about all that a filter finds, with a preview first and
//! a result for each.

use std::io::{IsTerminal, Write as _};

use orchestrator_lib::store::{
    Answer, Bulk, By, Closed, Error, Operator, Policy as RetryPolicy, Refusal, Summary, Tally, Verb,
};
use ring_core::{
    id::{Scope, TransactionId},
    saga::Payload,
};
use serde::Serialize;
use uuid::Uuid;

use super::{
    filter, missing, operator, told,
    view::{self, Line},
};
use crate::{
    args::{Closing, FilterArgs, Format, Many, One, StoreOf, Tx, Which},
    exit::Exit,
    output,
};

/// Rows of a preview that are shown in full.
const SHOWN: u32 = 20;

/// What became of an order about one transaction.
#[derive(Serialize)]
struct Told {
    id: TransactionId,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

struct Asked {
    store: StoreOf,
    which: Which,
    by: By,
    verb: Verb,
    format: Format,
}

/// Gives the order that the command line means.
pub(super) async fn order(command: Tx, format: Format) -> anyhow::Result<()> {
    let Some((many, verb)) = meant(command)? else {
        return Err(Exit::Usage.because("this command orders nothing"));
    };
    let by = By::new(&many.by.actor, &many.by.reason);
    let asked = Asked {
        store: many.store,
        which: many.which,
        by: by.map_err(|e| Exit::Usage.because(e.to_string()))?,
        verb,
        format,
    };
    let operator = operator(&asked.store)?;
    if asked.which.ids.is_empty() {
        all(&operator, &asked).await
    } else {
        named(&operator, &asked).await
    }
}

fn meant(command: Tx) -> anyhow::Result<Option<(Many, Verb)>> {
    Ok(Some(match command {
        Tx::Retry(many) => (many, Verb::Retry),
        Tx::Restore(a) => {
            let (lifetime, not_applied) = (a.lifetime, a.not_applied);
            let verb = Verb::Restore {
                lifetime,
                not_applied,
            };
            (a.many, verb)
        }
        Tx::RetryCompensation(a) => {
            let lifetime = a.lifetime;
            (a.many, Verb::RetryCompensation { lifetime })
        }
        Tx::Cancel(many) => (many, Verb::Cancel { id: Uuid::now_v7() }),
        Tx::Rehome(a) => {
            let to = Scope {
                region: a.to_region,
                cluster: a.to_cluster,
            };
            (a.many, Verb::Rehome { to })
        }
        Tx::Policy(a) => {
            let policy = RetryPolicy::new(a.tries, a.base, a.cap);
            let policy =
                policy.map_err(|e| Exit::Usage.because(format!("{:#}", anyhow::Error::new(e))))?;
            (a.many, Verb::Policy((!a.reset).then_some(policy)))
        }
        Tx::Skip(a) => {
            let verb = Verb::Skip {
                step: a.step,
                result: json(&a.result)?,
                reference: a.reference,
                lifetime: a.lifetime,
            };
            (a.one.into(), verb)
        }
        Tx::Signal(a) => {
            let verb = Verb::Signal {
                id: a.signal_id.unwrap_or_else(Uuid::now_v7),
                name: a.name,
                value: json(&a.value)?,
            };
            (a.one.into(), verb)
        }
        Tx::Close(a) => {
            let end = match a.end {
                Closing::Completed => Closed::Completed(json(&a.result)?),
                Closing::Compensated => Closed::Compensated,
            };
            let reference = a.reference;
            (a.one.into(), Verb::Close { end, reference })
        }
        Tx::List(_) | Tx::Show(_) | Tx::Why(_) | Tx::Count(_) | Tx::Purge(_) | Tx::Region(_) => {
            return Ok(None);
        }
    }))
}

impl From<One> for Many {
    fn from(one: One) -> Self {
        let which = Which {
            ids: vec![one.id],
            filter: FilterArgs::default(),
            all: false,
            dry_run: false,
            yes: true,
            rate: std::num::NonZeroU32::MIN,
            most: 1,
        };
        Self {
            store: one.store,
            which,
            by: one.by,
        }
    }
}

/// Each of the ids of the command line, as it stands now.
async fn named(operator: &Operator, asked: &Asked) -> anyhow::Result<()> {
    let mut worst = Ok(());
    let mut results = Vec::new();
    for id in asked.which.ids.iter().copied().map(TransactionId) {
        let shown = operator.show(id).await.map_err(told)?;
        let shown = shown.ok_or_else(|| missing(id, &asked.store))?;
        if asked.which.dry_run {
            let line = Line::new(&shown.summary);
            output::rows(asked.format, &[&line], || {
                view::table(std::slice::from_ref(&line))
            })?;
            continue;
        }
        let answer = operator
            .order(&asked.verb, id, shown.epoch, &asked.by)
            .await;
        if let Ok(Answer::Refused(refusal)) = &answer {
            let exit = match refusal {
                Refusal::Missing => Exit::NotFound,
                Refusal::Already { .. }
                | Refusal::Changed { .. }
                | Refusal::State { .. }
                | Refusal::KeyTaken => Exit::Refused,
            };
            worst = Err(exit.because(format!("{id}: {refusal}")));
        }
        let told_one = told_of(id, answer.as_ref());
        answer.map_err(told)?;
        results.push(told_one);
    }
    if !asked.which.dry_run {
        output::rows(asked.format, &results, || table(&results))?;
    }
    worst
}

/// All that the filter finds.
async fn all(operator: &Operator, asked: &Asked) -> anyhow::Result<()> {
    let which = &asked.which;
    if which.filter == FilterArgs::default() && !which.all {
        let text = "name transactions, a filter, or --all";
        return Err(Exit::Usage.because(text));
    }
    let bulk = Bulk {
        filter: filter(&which.filter),
        verb: asked.verb.clone(),
        most: which.most,
        rate: which.rate,
    };
    let preview = operator.preview(&bulk, SHOWN).await.map_err(told)?;
    let more = if preview.more { " or more" } else { "" };
    let verb = asked.verb.as_str();
    let count = preview.count;
    if which.dry_run || !which.yes {
        let lines: Vec<Line> = preview.first.iter().map(Line::new).collect();
        output::rows(asked.format, &lines, || view::table(&lines))?;
        output::chatter(&format!(
            "{verb}: {count}{more}, the first {} above",
            lines.len()
        ));
    }
    if which.dry_run || count == 0 {
        return Ok(());
    }
    if !which.yes {
        confirm(&format!("{verb} {count}{more} transactions?"))?;
    }
    let mut broken = None;
    let mut show = |line: &Summary, answer: &Result<Answer, Error>| {
        let one = told_of(line.id, answer.as_ref());
        let said = match asked.format {
            Format::Table => {
                output::line(&format!("{}  {}", one.id, one.said())).map_err(Into::into)
            }
            Format::Json | Format::Jsonl => output::json(&one),
        };
        if let Err(error) = said {
            broken = broken.take().or(Some(error));
        }
    };
    let tally = operator
        .order_all(&bulk, &asked.by, &mut show)
        .await
        .map_err(told)?;
    if let Some(error) = broken {
        return Err(error);
    }
    let Tally {
        done,
        refused,
        failed,
    } = tally;
    output::chatter(&format!(
        "{verb}: {done} done, {refused} refused, {failed} failed"
    ));
    match (failed, refused) {
        (0, 0) => Ok(()),
        (0, _) => Err(Exit::Refused.because("some were refused: they changed meanwhile")),
        _ => Err(Exit::Failed.because("some failed: run it again, what is done stays done")),
    }
}

/// Asks on the terminal; without one, `--yes` must stand there.
pub(super) fn confirm(question: &str) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Exit::Usage.because(format!(
            "{question} Say --yes (there is no terminal to ask on)"
        )));
    }
    let mut err = std::io::stderr().lock();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim().eq_ignore_ascii_case("y") {
        return Ok(());
    }
    Err(Exit::Refused.because("nothing was done"))
}

impl Told {
    fn said(&self) -> String {
        match (&self.why, self.epoch) {
            (Some(why), _) => format!("{}: {}", self.result, view::plain(why)),
            (None, Some(epoch)) => format!("{} (epoch {epoch})", self.result),
            (None, None) => self.result.to_owned(),
        }
    }
}

fn told_of(id: TransactionId, answer: Result<&Answer, &Error>) -> Told {
    let (result, epoch, why) = match answer {
        Ok(Answer::Done { epoch }) => ("done", Some(*epoch), None),
        Ok(Answer::Refused(refusal)) => ("refused", None, Some(refusal.to_string())),
        Err(error) => ("failed", None, Some(error.to_string())),
    };
    Told {
        id,
        result,
        epoch,
        why,
    }
}

fn table(results: &[Told]) -> String {
    let mut table = output::table(&["ID", "RESULT"]);
    for one in results {
        table.add_row([one.id.to_string(), one.said()]);
    }
    table.trim_fmt()
}

fn json(text: &str) -> anyhow::Result<Payload> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| {
        Exit::Usage.because(format!(
            "{text:?} is no JSON ({e}); a text needs quotes: '\"yes\"'"
        ))
    })?;
    Payload::new(value.to_string()).map_err(|e| Exit::Usage.because(e.to_string()))
}
