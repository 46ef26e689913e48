//! A batch of starts: insert or read, by idempotency key. Decides what a stored key means for the
//! one who asks.

use ring_core::{
    id::{Nonce, SagaName, Scope, Service, TransactionId},
    saga::Text,
    store::{Fence, Incarnation, Start, Started, Write},
};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    batch,
    connect::Session,
    error::Error,
    line::{AsRow, Failure, Fields, Line},
    row::{get, known},
    sql, words,
};

/// Longest idempotency key, in bytes: an index entry must hold it with the names around it.
const MAX_KEY_BYTES: usize = 512;

/// Whose transactions are started.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) scope: Scope,
    pub(super) service: Service,
}

/// A start with what the writer adds to it.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) owner: Option<Incarnation>,
    pub(super) definition: i32,
    pub(super) start: Start,
}

impl Request {
    /// Unique within a service.
    pub(super) fn key(&self) -> (&SagaName, &str) {
        (&self.start.saga, &self.start.key)
    }
}

/// Why a start can't be stored, before it is queued.
pub(super) fn refuse(start: &Start) -> Option<Text> {
    if start.key.is_empty() || start.key.len() > MAX_KEY_BYTES {
        return Some(Text::new("the key must have 1 to 512 bytes"));
    }
    if start.key.contains('\0') {
        return Some(Text::new("the key holds a NUL character"));
    }
    if start.lifetime.is_zero() {
        return Some(Text::new("the lifetime must be longer than zero"));
    }
    batch::refuse_payload(&start.input)
}

/// Stores what is new, and beside it sends writes, in one commit. All starts have the same owner or
/// none, and different keys.
pub(super) async fn send(
    session: &Session,
    place: &Place,
    requests: &[AsRow<&Request>],
    writes: &[AsRow<&Write>],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let owner = requests.iter().find_map(|r| r.0.owner).map(|o| o.0);
    let (region, cluster, service) = place.names();
    let values: [&(dyn ToSql + Sync); 6] =
        [&writes, &region, &cluster, &service, &owner, &requests];
    session.rows(sql::COMMIT, &values).await
}

/// Which of so many starts were stored.
pub(super) fn fresh(rows: &[Row], sent: usize) -> Result<Vec<bool>, Error> {
    let mut stored = vec![false; sent];
    for row in rows {
        let Some(n) = get::<Option<i64>>(row, "started")? else {
            continue;
        };
        let place = usize::try_from(n - 1).ok();
        let place = place.and_then(|place| stored.get_mut(place));
        *known(place, "an answer to a start that was not sent")? = true;
    }
    Ok(stored)
}

/// Reads what became of starts that stored nothing.
pub(super) async fn ask(
    session: &Session,
    place: &Place,
    requests: &[&Request],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let (region, cluster, service) = place.names();
    let (sagas, keys, inputs) = (sagas(requests), keys(requests), inputs(requests));
    session
        .rows(
            sql::START_READ,
            &[&region, &cluster, &service, &sagas, &keys, &inputs],
        )
        .await
}

/// The fence of a start that was stored just now.
pub(super) fn stored(request: &Request) -> Started {
    Started::New(request.start.claim.map(|nonce| Fence { epoch: 1, nonce }))
}

/// What one line of [`ask`]'s answer means, and for which request.
pub(super) fn found(row: &Row, requests: &[&Request]) -> Result<(usize, Started), Error> {
    let n: i64 = get(row, "n")?;
    let place = usize::try_from(n - 1).ok().filter(|i| *i < requests.len());
    let place = known(place, "an answer to a start that was not sent")?;
    let request = requests[place];
    let id = TransactionId(get(row, "transaction")?);
    if !get::<bool>(row, "same")? {
        return Ok((place, Started::Different(id)));
    }
    // The very start whose answer was lost: it is as if it had just been stored.
    let nonce: Option<Uuid> = get(row, "nonce")?;
    let epoch: Option<i64> = get(row, "epoch")?;
    let own = id == request.start.id;
    let untouched = match request.start.claim {
        Some(claim) => nonce.map(Nonce) == Some(claim) && epoch == Some(1),
        None => true,
    };
    let answer = if own && untouched {
        stored(request)
    } else {
        Started::Same(id)
    };
    Ok((place, answer))
}

fn sagas<'a>(requests: &[&'a Request]) -> Vec<&'a str> {
    requests.iter().map(|r| r.start.saga.as_str()).collect()
}

fn keys<'a>(requests: &[&'a Request]) -> Vec<&'a str> {
    requests.iter().map(|r| r.start.key.as_str()).collect()
}

fn inputs<'a>(requests: &[&'a Request]) -> Vec<&'a str> {
    requests.iter().map(|r| r.start.input.as_str()).collect()
}

impl Line for &Request {
    const TYPE: &'static str = "start_1";

    fn put(&self, fields: &mut Fields<'_>) -> Result<(), Failure> {
        let start = &self.start;
        fields.put(&start.id.0)?;
        fields.put(&start.token.0)?;
        fields.put(&start.saga.as_str())?;
        fields.put(&self.definition)?;
        fields.put(&start.key.as_str())?;
        fields.put(&start.input.as_str())?;
        fields.put(&words::millis(start.lifetime))?;
        fields.put(&start.claim.map(|nonce| nonce.0))
    }
}

impl Place {
    fn names(&self) -> (&str, &str, &str) {
        (
            self.scope.region.as_str(),
            self.scope.cluster.as_str(),
            self.service.as_str(),
        )
    }
}
