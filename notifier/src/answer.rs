//! What an answer means: delivered, or not and why. Three of the usual chat systems say 200 when
//! they refuse, so the body counts.

use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;

use crate::hook::Target;

/// `WeCom`: "api freq out of limit".
const TOO_OFTEN: i64 = 45_009;

/// Its limit is one a minute.
const WECOM_WAITS: Duration = Duration::from_secs(60);

/// Of a body that is quoted in an error.
const QUOTED: usize = 200;

/// An answer, read.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The pause that it asks for.
    pub(crate) retry_after: Option<Duration>,
    /// Its beginning.
    pub(crate) body: Vec<u8>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// For people; no address in it.
    pub(crate) says: String,
    /// Nothing may be sent for so long.
    pub(crate) hold: Option<Duration>,
}

#[derive(Deserialize)]
struct WeCom {
    errcode: i64,
    #[serde(default)]
    errmsg: String,
}

/// Reads an answer of a target.
pub(crate) fn judge(target: &Target, answer: &Answer) -> Result<(), Refused> {
    let refused = |says: String, hold: Option<Duration>| Err(Refused { says, hold });
    if !answer.status.is_success() {
        let says = format!("answered {}: {}", answer.status, quoted(&answer.body));
        return refused(says, answer.retry_after);
    }
    match target {
        Target::Generic { .. } => Ok(()),
        Target::WeCom { .. } => match serde_json::from_slice(&answer.body) {
            Ok(WeCom { errcode: 0, .. }) => Ok(()),
            Ok(WeCom { errcode, errmsg }) => {
                let hold = (errcode == TOO_OFTEN).then_some(WECOM_WAITS);
                let says = format!("answered errcode {errcode}: {}", quoted(errmsg.as_bytes()));
                refused(says, answer.retry_after.or(hold))
            }
            Err(_) => refused(
                format!("answered 200 without an errcode: {}", quoted(&answer.body)),
                answer.retry_after,
            ),
        },
    }
}

/// The beginning of a body as one line of text.
fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED)]);
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_program_accepts_by_its_status_alone() {
        let target = Target::generic("http://x", "s");
        assert_eq!(judge(&target, &answer(204, "")), Ok(()));
        for status in [301, 400, 404, 429, 500] {
            assert!(judge(&target, &answer(status, "no")).is_err(), "{status}");
        }
    }

    #[test]
    fn wecom_accepts_by_its_errcode_alone() {
        let target = Target::wecom("http://x");
        let ok = answer(200, r#"{"errcode":0,"errmsg":"ok"}"#);
        assert_eq!(judge(&target, &ok), Ok(()));
        let bad = answer(200, r#"{"errcode":93000,"errmsg":"invalid webhook url"}"#);
        let refused = judge(&target, &bad).unwrap_err();
        assert_eq!(refused.says, "answered errcode 93000: invalid webhook url");
        for nonsense in ["", "ok", "<html>", "[]", "{}"] {
            assert!(
                judge(&target, &answer(200, nonsense)).is_err(),
                "{nonsense}"
            );
        }
    }

    #[test]
    fn a_robot_that_was_called_too_often_is_left_alone_for_a_minute() {
        let target = Target::wecom("http://x");
        let refused = judge(&target, &answer(200, r#"{"errcode":45009}"#)).unwrap_err();
        assert_eq!(refused.hold, Some(Duration::from_secs(60)));
    }
}
