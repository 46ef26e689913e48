//! The wire between one store and its server: knows which backends serve it, cuts it, swallows
//! answers, and plants mutants by changing statements on the way. Knows no statement.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::watch,
};

/// Text that is replaced in statements on their way to the server.
pub(crate) type Rules = Arc<Vec<(String, String)>>;

#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    backends: Mutex<Vec<i32>>,
    cuts: watch::Sender<u64>,
    swallow: AtomicBool,
    rules: Rules,
    replaced: AtomicU64,
}

impl Wire {
    pub(crate) async fn to(server: u16, rules: Rules) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State {
            backends: Mutex::default(),
            cuts: watch::channel(0).0,
            swallow: AtomicBool::new(false),
            rules,
            replaced: AtomicU64::new(0),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await {
                    tokio::spawn(relay(client, server, Arc::clone(&shared)));
                }
            }
        });
        Ok(Self { port, state })
    }

    /// Process ids of the backends behind it.
    pub(crate) fn backends(&self) -> Vec<i32> {
        self.state.backends.lock().unwrap().clone()
    }

    /// Breaks every connection; what the server does already, it does to the end.
    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// The next answer is lost with its connection.
    pub(crate) fn swallow(&self, on: bool) {
        self.state.swallow.store(on, Ordering::SeqCst);
    }

    /// How many statements were changed on the way.
    pub(crate) fn replaced(&self) -> u64 {
        self.state.replaced.load(Ordering::SeqCst)
    }
}

async fn relay(client: TcpStream, server: TcpStream, state: Arc<State>) {
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut cuts = state.cuts.subscribe();
    let asked = questions(from_client, to_server, &state);
    let answered = answers(from_server, to_client, &state);
    tokio::select! {
        _ = asked => {}
        _ = answered => {}
        _ = cuts.changed() => {}
    }
}

async fn questions(from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &State) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let length = from.read_u32().await?;
    let mut body = vec![0; length as usize - 4];
    from.read_exact(&mut body).await?;
    to.write_all(&[&length.to_be_bytes()[..], &body].concat())
        .await?;
    loop {
        let (kind, body) = frame(&mut from).await?;
        let body = match kind {
            b'P' => {
                let name = body.iter().position(|b| *b == 0).unwrap_or(0) + 1;
                replaced(&body, name, state)
            }
            b'Q' => replaced(&body, 0, state),
            _ => body,
        };
        send(&mut to, kind, &body).await?;
    }
}

/// The statement begins at `from` and ends with NUL.
fn replaced(body: &[u8], from: usize, state: &State) -> Vec<u8> {
    let end = body[from..]
        .iter()
        .position(|b| *b == 0)
        .map_or(body.len(), |n| from + n);
    let Ok(statement) = str::from_utf8(&body[from..end]) else {
        return body.to_vec();
    };
    let mut changed = statement.to_owned();
    for (old, new) in state.rules.iter() {
        changed = changed.replace(old, new);
    }
    if changed != statement {
        state.replaced.fetch_add(1, Ordering::SeqCst);
    }
    [&body[..from], changed.as_bytes(), &body[end..]].concat()
}

async fn answers(from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &State) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut backend = None;
    let moved: io::Result<()> = async {
        loop {
            let (kind, body) = frame(&mut from).await?;
            if kind == b'K' {
                let pid = i32::from_be_bytes(body[..4].try_into().unwrap());
                backend = Some(pid);
                state.backends.lock().unwrap().push(pid);
            }
            if state.swallow.swap(false, Ordering::SeqCst) {
                return Ok(());
            }
            send(&mut to, kind, &body).await?;
        }
    }
    .await;
    if let Some(pid) = backend {
        state.backends.lock().unwrap().retain(|known| *known != pid);
    }
    moved
}

async fn frame(from: &mut BufReader<OwnedReadHalf>) -> io::Result<(u8, Vec<u8>)> {
    let kind = from.read_u8().await?;
    let length = from.read_u32().await?;
    let mut body = vec![0; length as usize - 4];
    from.read_exact(&mut body).await?;
    Ok((kind, body))
}

async fn send(to: &mut OwnedWriteHalf, kind: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).unwrap() + 4;
    let mut whole = Vec::with_capacity(body.len() + 5);
    whole.push(kind);
    whole.extend(length.to_be_bytes());
    whole.extend(body);
    to.write_all(&whole).await
}
