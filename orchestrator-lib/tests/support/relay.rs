//! A relay between a node and Postgres that loses answers.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use super::Lab;

/// Between the node and Postgres: loses the answers of as many commits as it is told to.
pub async fn relay(lab: &Lab) -> Result<(String, watch::Sender<u32>), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (before, database) = lab.database.url().rsplit_once('/').ok_or("no database")?;
    let (before, server) = before.rsplit_once('@').ok_or("no host")?;
    let server: String = server.into();
    let url = format!("{before}@{}/{database}", listener.local_addr()?);
    let cut = watch::Sender::new(0);
    let told = cut.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(there) = TcpStream::connect(&server).await else {
                return;
            };
            let told = told.clone();
            tokio::spawn(async move {
                let (from_client, mut to_client) = client.into_split();
                let (mut from_server, to_server) = there.into_split();
                tokio::select! {
                    lost = forward(from_client, to_server, &told) => if lost {
                        // The server answers once it has committed; nobody hears it.
                        let mut answer = [0; 64];
                        drop(from_server.read(&mut answer).await);
                    },
                    _ = copy(&mut from_server, &mut to_client) => {}
                }
            });
        }
    });
    Ok((url, cut))
}

/// Forwards until a commit whose answer is to be lost has been passed on.
async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    cut: &watch::Sender<u32>,
) -> bool {
    let mut bytes = [0; 16 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut bytes).await else {
            return false;
        };
        let commits = bytes[..n].windows(7).any(|w| w == b"commit\0");
        let lost = commits
            && cut.send_if_modified(|left| {
                *left > 0 && {
                    *left -= 1;
                    true
                }
            });
        if to.write_all(&bytes[..n]).await.is_err() || lost {
            return lost;
        }
    }
}
