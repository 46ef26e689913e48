//! What the answer to a batch means for everybody in it: one bad, contested or held row never
//! fails its neighbours.

use std::collections::BTreeSet;

use ring_core::{
    id::TransactionId,
    saga::Text,
    store::{Started, Write, Written},
};
use tokio_postgres::Row;

use super::{Asked, Batch, Rows, Task};
use crate::store::{
    batch::{self, Answers},
    error::Error,
    row, sql,
    start::{self, Request},
};

/// Tries of a start whose key another session stored or purged at that moment.
const START_TRIES: u32 = 3;

impl Task {
    pub(super) async fn finish_writes(&mut self, writes: Vec<Asked<Write, Written>>, rows: Rows) {
        let questions: Vec<&Write> = writes.iter().map(|a| &a.question).collect();
        let answers = rows.and_then(|rows| batch::read(&questions, &rows));
        match answers {
            Ok(mut answers) => {
                if let Err(error) = self.find_busy(&questions, &mut answers).await {
                    return fail(writes, &error);
                }
                for asked in writes {
                    let id = asked.question.id;
                    if answers.busy.contains(&id) {
                        self.held.push(asked);
                    } else {
                        let written = answers.written.remove(&id);
                        asked.reply(Ok(written.unwrap_or(Written::Lost)));
                    }
                }
            }
            Err(error) if error.refused_data() => self.halve_writes(writes, &error).await,
            Err(error) if error.is_conflict() => self.held.extend(writes),
            Err(error) => fail(writes, &error),
        }
    }

    /// Rows without an answer either don't exist or are held by somebody else.
    async fn find_busy(&self, questions: &[&Write], answers: &mut Answers) -> Result<(), Error> {
        let silent = questions.iter().map(|w| w.id);
        let silent: Vec<_> = silent
            .filter(|id| !answers.written.contains_key(id))
            .map(|id| id.0)
            .collect();
        if silent.is_empty() {
            return Ok(());
        }
        let asked = self.link.call("look for held rows", async |s| {
            s.rows(sql::PRESENT, &[&silent]).await
        });
        for row in asked.await? {
            let id = row::get(&row, "id")?;
            answers.busy.insert(TransactionId(id));
        }
        Ok(())
    }

    /// Finds the row whose data can't be stored without failing its neighbours.
    async fn halve_writes(&mut self, mut writes: Vec<Asked<Write, Written>>, error: &Error) {
        if writes.len() == 1 {
            for asked in writes {
                asked.reply(Ok(Written::Invalid(said(error))));
            }
            return;
        }
        let second = writes.split_off(writes.len() / 2);
        for writes in [writes, second] {
            let batch = Batch {
                writes,
                starts: Vec::new(),
            };
            Box::pin(self.commit(batch)).await;
        }
    }

    pub(super) async fn finish_starts(&mut self, starts: Vec<Asked<Request, Started>>, rows: Rows) {
        match rows {
            Ok(rows) => self.answer_starts(starts, &rows).await,
            Err(error) if error.refused_data() || error.is_conflict() => {
                self.start_alone(starts, &error).await;
            }
            Err(error) => fail(starts, &error),
        }
    }

    async fn answer_starts(&mut self, starts: Vec<Asked<Request, Started>>, rows: &[Row]) {
        let stored: Result<BTreeSet<i64>, Error> =
            rows.iter().map(|row| row::get(row, "n")).collect();
        let stored = match stored {
            Ok(stored) => stored,
            Err(error) => return fail(starts, &error),
        };
        let mut known = Vec::new();
        for (n, asked) in (1_i64..).zip(starts) {
            if stored.contains(&n) {
                let answer = start::stored(&asked.question);
                asked.reply(Ok(answer));
            } else {
                known.push(asked);
            }
        }
        if known.is_empty() {
            return;
        }
        let mut answers = match self.find_starts(&known).await {
            Ok(answers) => answers,
            Err(error) => return fail(known, &error),
        };
        let mut again = Vec::new();
        for (asked, answer) in known.into_iter().zip(answers.drain(..)) {
            match answer {
                Some(answer) => asked.reply(Ok(answer)),
                None if asked.question.start.claim.is_some() => {
                    asked.reply(Ok(Started::NoLease));
                }
                None => again.push(asked),
            }
        }
        if !again.is_empty() {
            let gone = Error::conflict("start a transaction", "its key came and went");
            self.start_alone(again, &gone).await;
        }
    }

    /// What the keys of starts that stored nothing belong to; `None` where there is no such key.
    async fn find_starts(
        &self,
        starts: &[Asked<Request, Started>],
    ) -> Result<Vec<Option<Started>>, Error> {
        let requests: Vec<&Request> = starts.iter().map(|a| &a.question).collect();
        let asked = self.link.call("read a started transaction", async |s| {
            start::ask(s, &self.place, &requests).await
        });
        let mut answers: Vec<Option<Started>> = requests.iter().map(|_| None).collect();
        for row in &asked.await? {
            let (n, answer) = start::found(row, &requests)?;
            answers[n] = Some(answer);
        }
        Ok(answers)
    }

    /// One bad or contested start must not fail its neighbours: each is sent by itself.
    async fn start_alone(&mut self, starts: Vec<Asked<Request, Started>>, error: &Error) {
        let alone = starts.len() == 1;
        for mut asked in starts {
            if alone && error.refused_data() {
                asked.reply(Ok(Started::Invalid(said(error))));
            } else if alone && error.lock_limit() {
                asked.reply(Ok(Started::InProgress));
            } else if asked.tries >= START_TRIES {
                asked.reply(Err(error.clone()));
            } else {
                asked.tries += 1;
                let batch = Batch {
                    writes: Vec::new(),
                    starts: vec![asked],
                };
                Box::pin(self.commit(batch)).await;
            }
        }
    }
}

/// Tells everybody the same bad news.
pub(super) fn fail<Q, A>(waiting: Vec<Asked<Q, A>>, error: &Error) {
    for asked in waiting {
        asked.reply(Err(error.clone()));
    }
}

fn said(error: &Error) -> Text {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    Text::new(&cause.unwrap_or_else(|| error.to_string()))
}
