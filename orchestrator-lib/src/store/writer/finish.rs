//! What the answer to a batch means for everybody in it: one bad, contested or held row never
//! fails its neighbours.

use ring_core::{
    saga::Text,
    store::{Started, Written},
};
use tokio_postgres::Row;

use super::{Asked, AskedStart, AskedWrite, Batch, Rows, Task};
use crate::store::{
    batch::{self, Fate},
    error::Error,
    start::{self, Request},
};

/// Tries of a start whose key another session stored or purged at that moment.
const START_TRIES: u32 = 3;

impl Task {
    /// Answers everybody in a batch, or sends its parts again.
    pub(super) async fn finish(&mut self, batch: Batch, rows: Rows) {
        let (writes, starts, around) = (batch.writes, batch.starts, batch.around);
        match rows {
            Ok(rows) => {
                self.answer_writes(writes, &rows).await;
                self.answer_starts(starts, &rows).await;
            }
            Err(error) if error.refused_data() || error.is_conflict() => {
                if starts.is_empty() {
                    self.again(writes, around, &error).await;
                } else if writes.is_empty() {
                    self.start_alone(starts, &error).await;
                } else {
                    // Neither kind fails the other.
                    Box::pin(self.commit(Batch::of_writes(writes, around))).await;
                    Box::pin(self.commit(Batch::of_starts(starts))).await;
                }
            }
            Err(error) => {
                fail(writes, &error);
                fail(starts, &error);
            }
        }
    }

    async fn answer_writes(&mut self, writes: Vec<AskedWrite>, rows: &[Row]) {
        let moved = match batch::moved(rows, writes.len()) {
            Ok(moved) => moved,
            Err(error) => return fail(writes, &error),
        };
        let mut silent = Vec::new();
        for (asked, written) in writes.into_iter().zip(moved) {
            match written {
                Some(written) => asked.reply(Ok(written)),
                None => silent.push(asked),
            }
        }
        if silent.is_empty() {
            return;
        }
        let fates = match self.explain(&silent).await {
            Ok(fates) => fates,
            Err(error) => return fail(silent, &error),
        };
        for (asked, fate) in silent.into_iter().zip(fates) {
            match fate {
                Fate::Written(written) => asked.reply(Ok(written)),
                Fate::Held => self.held.push(asked),
            }
        }
    }

    /// Why writes moved nothing.
    async fn explain(&self, silent: &[AskedWrite]) -> Result<Vec<Fate>, Error> {
        let lines = batch::lines(silent.iter().map(|asked| &asked.question));
        let asked = self.link.call("ask what became of a write", async |s| {
            batch::explain(s, &lines).await
        });
        batch::explained(&asked.await?, silent.len())
    }

    /// Writes that failed: around the rows that somebody else holds, or in halves until the row
    /// is found whose data can't be stored.
    async fn again(&mut self, mut writes: Vec<AskedWrite>, around: bool, error: &Error) {
        if error.is_conflict() {
            if around {
                self.held.append(&mut writes);
            } else {
                Box::pin(self.commit(Batch::of_writes(writes, true))).await;
            }
        } else if writes.len() == 1 {
            for asked in writes {
                asked.reply(Ok(Written::Invalid(said(error))));
            }
        } else {
            let second = writes.split_off(writes.len() / 2);
            for writes in [writes, second] {
                Box::pin(self.commit(Batch::of_writes(writes, around))).await;
            }
        }
    }

    async fn answer_starts(&mut self, starts: Vec<AskedStart>, rows: &[Row]) {
        let stored = match start::fresh(rows, starts.len()) {
            Ok(stored) => stored,
            Err(error) => return fail(starts, &error),
        };
        let mut known = Vec::new();
        for (asked, stored) in starts.into_iter().zip(stored) {
            if stored {
                let answer = start::stored(&asked.question);
                asked.reply(Ok(answer));
            } else {
                known.push(asked);
            }
        }
        if known.is_empty() {
            return;
        }
        let answers = match self.find_starts(&known).await {
            Ok(answers) => answers,
            Err(error) => return fail(known, &error),
        };
        let mut again = Vec::new();
        for (asked, answer) in known.into_iter().zip(answers) {
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
    async fn find_starts(&self, starts: &[AskedStart]) -> Result<Vec<Option<Started>>, Error> {
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
    async fn start_alone(&mut self, starts: Vec<AskedStart>, error: &Error) {
        let alone = starts.len() == 1;
        for mut asked in starts {
            if alone && error.refused_data() {
                asked.reply(Ok(Started::Invalid(said(error))));
            } else if alone && error.lock_limit() {
                if asked.pauses >= self.patience {
                    asked.reply(Ok(Started::InProgress));
                } else {
                    self.contested.push(asked);
                }
            } else if asked.tries >= START_TRIES {
                asked.reply(Err(error.clone()));
            } else {
                asked.tries += 1;
                Box::pin(self.commit(Batch::of_starts(vec![asked]))).await;
            }
        }
    }
}

/// Tells everybody the same bad news.
pub(super) fn fail<Q, A>(waiting: Vec<Box<Asked<Q, A>>>, error: &Error) {
    for asked in waiting {
        asked.reply(Err(error.clone()));
    }
}

fn said(error: &Error) -> Text {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    Text::new(&cause.unwrap_or_else(|| error.to_string()))
}
