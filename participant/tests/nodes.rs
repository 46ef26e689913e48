//! Gateways, nodes that are away, and what is between: what each says about the effect.
#![cfg(feature = "client")]

mod wild;

use std::time::Duration;

use orchestrator_lib::Class;
use ring_participant::{
    Direction,
    client::{Client, Fixed, Settings},
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener};
use wild::{Checked, answering, ask, fails, http, settings};

#[tokio::test]
async fn gateways_are_believed_as_far_as_they_know() -> Checked {
    for (status, class) in [
        ("429 Too Many Requests", Class::Transient),
        ("502 Bad Gateway", Class::Unknown),
        ("503 Service Unavailable", Class::Unknown),
        ("504 Gateway Timeout", Class::Unknown),
        ("500 Internal Server Error", Class::Unknown),
        ("401 Unauthorized", Class::Transient),
        ("404 Not Found", Class::Transient),
        ("400 Bad Request", Class::Persistent),
        ("422 Unprocessable", Class::Business),
    ] {
        let base = answering(http(status, "", "<h1>nginx</h1>")).await?;
        fails(&base, class, &["nginx", &status[..3]]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn retry_after_is_honoured_in_seconds_and_as_a_date() -> Checked {
    for (header, seconds) in [
        ("retry-after: 7\r\n", 7),
        (
            "date: Wed, 21 Oct 2026 07:28:00 GMT\r\nretry-after: Wed, 21 Oct 2026 07:28:09 GMT\r\n",
            9,
        ),
        ("retry-after: 86400\r\n", 3_600),
    ] {
        let base = answering(http("503 Service Unavailable", header, "down")).await?;
        let error = fails(&base, Class::Transient, &["503", "down"]).await?;
        assert_eq!(error.asked_pause(), Some(Duration::from_secs(seconds)));
    }
    Ok(())
}

#[tokio::test]
async fn a_refused_connection_is_transient_and_another_node_is_tried() -> Checked {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        format!("http://{}", listener.local_addr()?)
    };
    fails(&closed, Class::Transient, &["not reached"]).await?;
    let open = answering(http("200 OK", "", r#"{"success":true}"#)).await?;
    let nodes = Fixed::new().service("payment", [&*closed, &*open])?;
    let client = Client::new(nodes, settings())?;
    for _ in 0..4 {
        let answered = ask(&client, Direction::Forward).await?;
        answered.map_err(|e| e.to_string())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_node_that_answered_badly_is_not_passed_over() -> Checked {
    let bad = answering(http("200 OK", "", "what?")).await?;
    let good = answering(http("200 OK", "", r#"{"success":true}"#)).await?;
    let nodes = Fixed::new().service("payment", [&*bad, &*good])?;
    // The first may have applied it: asking the second at once would be a second attempt.
    let error = ask(&Client::new(nodes, settings())?, Direction::Forward).await?;
    assert_eq!(error.unwrap_err().class(), Some(Class::Unknown));
    Ok(())
}

#[tokio::test]
async fn a_service_that_nobody_knows_is_transient() -> Checked {
    let client = Client::new(Fixed::new(), settings())?;
    let error = ask(&client, Direction::Forward).await?.unwrap_err();
    assert_eq!(error.class(), Some(Class::Transient));
    assert!(error.to_string().contains("knows no node"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_transient() -> Checked {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("https://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
            // Whoever closes first: the answer was no TLS.
            stream.write_all(answer).await.unwrap_or_default();
            stream.shutdown().await.unwrap_or_default();
        }
    });
    fails(&base, Class::Transient, &["not reached"]).await?;
    Ok(())
}

#[test]
fn a_ca_that_is_none_is_told_at_the_start() {
    let wrong = |path: &str| {
        let ca = Some(path.into());
        let settings = Settings { ca, ..settings() };
        Client::new(Fixed::new(), settings).unwrap_err().to_string()
    };
    assert!(wrong("no/such/file.pem").contains("no/such/file.pem"));
    assert!(wrong("Cargo.toml").contains("no certificate"));
}
