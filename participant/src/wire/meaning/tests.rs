//! Each row of the table, and the texts.

use super::*;

fn means(direction: Direction, status: u16, pause: Option<u64>, body: &str) -> Meaning {
    let reply = Reply {
        status,
        retry_after: pause.map(Duration::from_secs),
        body: body.as_bytes(),
    };
    meaning(direction, &reply)
}

fn forward(status: u16, body: &str) -> Word {
    means(Direction::Forward, status, None, body).word
}

#[test]
fn row_1_our_own_word_is_believed() {
    for (body, word) in [
        (
            r#"{"outcome":"done","success":true,"result":1}"#,
            Word::Done,
        ),
        (r#"{"outcome":"refused"}"#, Word::Refused),
        (r#"{"outcome":"persistent"}"#, Word::Persistent),
        (r#"{"outcome":"transient"}"#, Word::Transient),
        (r#"{"outcome":"compensated"}"#, Word::Compensated),
        (r#"{"outcome":"in_progress"}"#, Word::InProgress),
        (r#"{"outcome":"unknown"}"#, Word::Unknown),
        (r#"{"outcome":"splendid"}"#, Word::Unknown),
    ] {
        assert_eq!(forward(200, body), word, "{body}");
    }
    assert_eq!(
        forward(409, r#"{"outcome":"compensated"}"#),
        Word::Compensated
    );
    assert_eq!(forward(500, r#"{"outcome":"done"}"#), Word::Unknown);
}

#[test]
fn row_2_both_contracts_are_read() {
    for (body, result) in [
        (r#"{"code":200,"data":{"id":7}}"#, r#"{"id":7}"#),
        (r#"{"code":"200","data":[1]}"#, "[1]"),
        (r#"{"code":200}"#, "null"),
        (r#"{"success":true,"result":"r","error":null}"#, r#""r""#),
        (
            r#" {"success":true,"result":12345678901234567890.123}"#,
            "12345678901234567890.123",
        ),
        (r#"{"success":true}"#, "null"),
    ] {
        let means = means(Direction::Forward, 200, None, body);
        assert_eq!(means.word, Word::Done, "{body}");
        assert_eq!(means.result.as_deref().map(RawValue::get), Some(result));
    }
    assert_eq!(forward(201, r#"{"success":true}"#), Word::Done);
}

#[test]
fn row_3_a_contradiction_is_in_doubt() {
    assert_eq!(
        forward(500, r#"{"success":true,"result":1}"#),
        Word::Unknown
    );
    assert_eq!(forward(400, r#"{"code":200,"data":1}"#), Word::Unknown);
}

#[test]
fn row_4_a_refusal_of_an_action_is_one() {
    let body = r#"{"success":false,"error":"declined"}"#;
    let means = means(Direction::Forward, 200, None, body);
    assert_eq!(means.word, Word::Refused);
    assert_eq!(means.says, "status 200: declined");
    assert!(means.result.is_none());
}

#[test]
fn row_5_a_failed_compensation_is_tried_again() {
    let body = r#"{"success":false,"error":"locked"}"#;
    let means = means(Direction::Compensating, 200, None, body);
    assert_eq!(means.word, Word::Unknown);
}

#[test]
fn rows_6_and_7_a_code_reads_like_a_status() {
    for (code, word) in [
        ("500", Word::Unknown),
        ("400", Word::Persistent),
        (r#""422""#, Word::Refused),
        ("503", Word::Transient),
        ("404", Word::Persistent),
        ("1001", Word::Unknown),
        ("0", Word::Unknown),
        ("-1", Word::Unknown),
        ("true", Word::Unknown),
    ] {
        let body = format!(r#"{{"code":{code},"msg":"no"}}"#);
        assert_eq!(forward(200, &body), word, "{body}");
    }
}

#[test]
fn row_8_what_is_of_no_contract_is_in_doubt() {
    for body in [
        "",
        "OK",
        "<html>welcome</html>",
        "null",
        "[]",
        "[200]",
        r#"{"ok":true}"#,
        r#"{"success":"true"}"#,
        r#"{"success":true"#,
        r#"{"success":true} trailing"#,
        r#"{"success":true,"success":false}"#,
        r#"{"success":null,"code":null}"#,
    ] {
        assert_eq!(forward(200, body), Word::Unknown, "{body}");
    }
    assert_eq!(forward(204, ""), Word::Unknown);
}

#[test]
fn rows_9_to_15_a_status_is_believed_as_far_as_it_goes() {
    let contract = r#"{"success":false,"error":"no"}"#;
    for (status, bare, with_contract) in [
        (302, Word::Unknown, Word::Unknown),
        (307, Word::Unknown, Word::Unknown),
        (400, Word::Persistent, Word::Persistent),
        (401, Word::Transient, Word::Transient),
        (403, Word::Transient, Word::Persistent),
        (404, Word::Transient, Word::Persistent),
        (405, Word::Transient, Word::Persistent),
        (408, Word::Transient, Word::Transient),
        (409, Word::Refused, Word::Refused),
        (413, Word::Persistent, Word::Persistent),
        (422, Word::Refused, Word::Refused),
        (425, Word::Transient, Word::Transient),
        (429, Word::Transient, Word::Transient),
        (500, Word::Unknown, Word::Unknown),
        (502, Word::Unknown, Word::Unknown),
        (503, Word::Unknown, Word::Transient),
        (504, Word::Unknown, Word::Unknown),
        (599, Word::Unknown, Word::Unknown),
        (999, Word::Unknown, Word::Unknown),
    ] {
        assert_eq!(forward(status, "down\n"), bare, "{status}");
        assert_eq!(forward(status, contract), with_contract, "{status}");
    }
    let announced = means(Direction::Forward, 503, Some(3), "down\n");
    assert_eq!(announced.word, Word::Transient);
    assert_eq!(announced.retry_after, Some(Duration::from_secs(3)));
}

#[test]
fn the_pause_of_a_body_counts_where_no_header_says_it() {
    let body = r#"{"outcome":"transient","retry_after_ms":1500}"#;
    let of = |pause| means(Direction::Forward, 200, pause, body).retry_after;
    assert_eq!(of(None), Some(Duration::from_millis(1500)));
    assert_eq!(of(Some(9)), Some(Duration::from_secs(9)));
}

#[test]
fn the_first_bytes_of_a_strange_answer_are_told() {
    let page = "<html>\n<h1>Service\u{7} Temporarily Unavailable</h1>";
    let told = means(Direction::Forward, 200, None, page).says;
    assert!(told.contains("<html> <h1>Service Temporarily"), "{told}");
    assert!(told.contains("no contract"), "{told}");
    let told = means(Direction::Forward, 307, None, "").says;
    assert!(told.contains("redirects"), "{told}");
}

#[test]
fn our_answers_mean_what_they_say() {
    use super::super::Answer;
    let pause = Duration::from_secs(2);
    for (answer, word) in [
        (
            Answer::Done {
                result: null(),
                again: true,
            },
            Word::Done,
        ),
        (Answer::Refused("a".into()), Word::Refused),
        (Answer::Persistent("a".into()), Word::Persistent),
        (Answer::Compensated, Word::Compensated),
        (Answer::InProgress(pause), Word::InProgress),
        (
            Answer::Transient {
                says: "a".into(),
                retry_after: None,
            },
            Word::Transient,
        ),
        (Answer::Unauthorized("a".into()), Word::Transient),
        (Answer::Unknown("a".into()), Word::Unknown),
    ] {
        let json = answer.to_json();
        for status in [answer.status(), 200] {
            let reply = Reply {
                status,
                retry_after: None,
                body: &json,
            };
            let means = meaning(Direction::Forward, &reply);
            assert_eq!(means.word, word, "{answer:?}");
            assert_eq!(means.retry_after, answer.retry_after());
        }
    }
}
