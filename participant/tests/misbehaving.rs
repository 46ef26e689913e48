//! Participants that misbehave in every way, on real sockets: each call ends in a classified error
//! with a text that helps, and none hangs.
#![cfg(feature = "client")]

mod wild;

use std::time::Duration;

use orchestrator_lib::Class;
use ring_participant::Direction;
use tokio::io::AsyncWriteExt as _;
use wild::{Checked, answering, call, fails, http, wild};

#[tokio::test]
async fn both_contracts_are_read() -> Checked {
    for (body, result) in [
        (r#"{"code":200,"data":{"id":7}}"#, r#"{"id":7}"#),
        (r#"{"code":"200","data":7}"#, "7"),
        (
            r#"{"success":true,"result":{"id":7},"error":null}"#,
            r#"{"id":7}"#,
        ),
        (r#"{"outcome":"done","success":true,"result":null}"#, "null"),
    ] {
        let base = answering(http("200 OK", "", body)).await?;
        let answer = call(&base, Direction::Forward)
            .await?
            .map_err(|e| e.to_string())?;
        assert_eq!(answer.get(), result);
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_that_is_no_json_fails_the_step_with_its_first_bytes() -> Checked {
    for body in ["OK", "<html>\r\n<h1>Welcome</h1>\x1b[2J", "{\"success\":tr"] {
        let base = answering(http("200 OK", "", body)).await?;
        let first: String = body.chars().take(4).collect();
        fails(
            &base,
            Class::Unknown,
            &["status 200", &first, "no contract"],
        )
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_empty_answer_and_a_204_are_in_doubt() -> Checked {
    let base = answering(http("200 OK", "", "")).await?;
    fails(&base, Class::Unknown, &["status 200", "nothing"]).await?;
    let base = answering("HTTP/1.1 204 No Content\r\n\r\n").await?;
    fails(&base, Class::Unknown, &["status 204", "JSON"]).await?;
    Ok(())
}

#[tokio::test]
async fn json_of_another_contract_is_in_doubt() -> Checked {
    let base = answering(http("200 OK", "", r#"{"ok":1,"receipt":7}"#)).await?;
    fails(&base, Class::Unknown, &["no contract", "receipt"]).await?;
    Ok(())
}

#[tokio::test]
async fn a_failure_inside_a_200_is_heard() -> Checked {
    let base = answering(http("200 OK", "", r#"{"code":500,"msg":"db down"}"#)).await?;
    fails(&base, Class::Unknown, &["code 500", "db down"]).await?;
    let base = answering(http(
        "200 OK",
        "",
        r#"{"success":false,"error":"declined"}"#,
    ))
    .await?;
    fails(&base, Class::Business, &["declined"]).await?;
    let undone = call(&base, Direction::Compensating).await?.unwrap_err();
    assert_eq!(
        undone.class(),
        Some(Class::Unknown),
        "tried again: {undone}"
    );
    Ok(())
}

#[tokio::test]
async fn a_body_without_end_is_read_to_the_limit_only() -> Checked {
    let base = wild(|mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"success\":true,")
            .await?;
        loop {
            stream.write_all(&[b'x'; 1024]).await?;
        }
    });
    fails(
        &base.await?,
        Class::Unknown,
        &["more than 4096 bytes", "{\"success\""],
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_body_that_says_it_is_huge_is_not_waited_for() -> Checked {
    let begin = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{}";
    let base = wild(move |mut stream| async move {
        stream.write_all(begin.as_bytes()).await?;
        std::future::pending().await
    });
    fails(&base.await?, Class::Unknown, &["in time", "{}"]).await?;
    Ok(())
}

#[tokio::test]
async fn an_answer_that_is_cut_is_in_doubt() -> Checked {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"success\":true";
    fails(
        &answering(cut).await?,
        Class::Unknown,
        &["cut off", "{\"success\""],
    )
    .await?;
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{\"a\"";
    fails(&answering(chunked).await?, Class::Unknown, &["cut off"]).await?;
    fails(
        &answering("HTTP/1.1 200").await?,
        Class::Unknown,
        &["broke"],
    )
    .await?;
    fails(&answering("").await?, Class::Unknown, &["broke"]).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_no_http_is_in_doubt() -> Checked {
    fails(
        &answering("SSH-2.0-OpenSSH_9.2\r\n").await?,
        Class::Unknown,
        &["broke"],
    )
    .await?;
    Ok(())
}

#[tokio::test]
async fn one_who_never_answers_is_given_up() -> Checked {
    let base = wild(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
        Ok(())
    });
    fails(&base.await?, Class::Unknown, &["time"]).await?;
    Ok(())
}

#[tokio::test]
async fn a_slow_drip_ends_with_the_time_limit() -> Checked {
    let base = wild(|mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n")
            .await?;
        loop {
            stream.write_all(b" ").await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    fails(&base.await?, Class::Unknown, &["in time"]).await?;
    let base = wild(|mut stream| async move {
        for byte in b"HTTP/1.1 200 OK\r\n".iter().cycle() {
            stream.write_all(&[*byte]).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    });
    fails(&base.await?, Class::Unknown, &["payment"]).await?;
    Ok(())
}

#[tokio::test]
async fn a_redirect_is_not_followed() -> Checked {
    let elsewhere = answering(http("200 OK", "", r#"{"success":true}"#)).await?;
    let location = format!("location: {elsewhere}/\r\n");
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let base = answering(http(status, &location, "")).await?;
        fails(&base, Class::Unknown, &["redirects are not followed"]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_header_without_end_is_in_doubt() -> Checked {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(2_000_000));
    fails(&answering(huge).await?, Class::Unknown, &["broke"]).await?;
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(5_000));
    fails(&answering(many).await?, Class::Unknown, &["broke"]).await?;
    Ok(())
}
