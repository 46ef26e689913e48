//! The hook for people in `WeCom`: one markdown message for all alerts that are due, within the
//! robot's 4096 bytes.

use std::fmt::Write as _;

use serde::Serialize;

use crate::message::{Message, Urgency};

/// The robot's limit for the content, in bytes of UTF-8.
const MAX_BYTES: usize = 4096;

/// Of one alert's text: enough for a cause, and ten alerts fit.
const MAX_TEXT: usize = 300;

/// Kept free for the line that counts what did not fit.
const RESERVE: usize = 160;

#[derive(Serialize)]
struct Body<'a> {
    msgtype: &'static str,
    markdown: Markdown<'a>,
}

#[derive(Serialize)]
struct Markdown<'a> {
    content: &'a str,
}

/// The request's body.
pub(crate) fn body(messages: &[Message]) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Body {
        msgtype: "markdown",
        markdown: Markdown {
            content: &content(messages),
        },
    })
}

fn content(messages: &[Message]) -> String {
    let mut content = headline(messages);
    let mut shown = 0;
    for message in messages {
        let lines = lines(message);
        if content.len() + lines.len() > MAX_BYTES - RESERVE {
            break;
        }
        content.push_str(&lines);
        shown += 1;
    }
    let rest = messages.len() - shown;
    if rest > 0 {
        let list = "`ringsaga tx list --state terminated,disabled,quarantined`";
        let more = format!("\n… and {rest} more: {list}");
        content.push_str(&more);
    }
    content
}

/// Whose alerts, and how many of each kind when there are several.
fn headline(messages: &[Message]) -> String {
    let Some(first) = messages.first() else {
        return String::new();
    };
    let mut head = format!("**ringsaga {}.{}**", first.region, first.cluster);
    if messages.len() > 1 {
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for message in messages {
            match kinds.iter_mut().find(|(kind, _)| *kind == message.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((message.kind, 1)),
            }
        }
        let kinds: Vec<String> = kinds.iter().map(|(k, n)| format!("{n} {k}")).collect();
        let said = write!(head, ": {}", kinds.join(", "));
        debug_assert!(said.is_ok(), "a text takes every text");
    }
    head
}

fn lines(message: &Message) -> String {
    let colour = match message.urgency() {
        Urgency::Act => "warning",
        Urgency::News => "info",
    };
    let mut about = Vec::new();
    about.extend(message.service.clone());
    let version = message
        .version
        .map(|v| format!(" v{v}"))
        .unwrap_or_default();
    about.extend(message.saga.as_ref().map(|saga| format!("{saga}{version}")));
    about.extend(message.step.as_ref().map(|step| format!("step {step}")));
    about.extend(match (&message.tx, &message.link) {
        (Some(tx), Some(link)) => Some(format!("[{tx}]({link})")),
        (tx, _) => tx.clone(),
    });
    format!(
        "\n<font color=\"{colour}\">{}</font> {}\n> {} <font color=\"comment\">{}</font>",
        message.kind,
        plain(&about.join(" · ")),
        plain(short(&message.text)),
        message.at,
    )
}

/// One line: what an error says must not look like markup of ours.
fn plain(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
        .replace('<', "‹")
        .replace('>', "›")
}

/// At most [`MAX_TEXT`] bytes, whole characters.
fn short(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use ring_core::{id::Scope, time::Wall};
    use uuid::Uuid;

    use super::*;

    fn message(text: &str) -> Message {
        let scope = Scope {
            region: "eu".parse().unwrap(),
            cluster: "main".parse().unwrap(),
        };
        let mut message = Message::test(Uuid::nil(), Wall(1_790_000_000_000), &scope);
        message.kind = "terminated";
        message.service = Some("orders".into());
        message.saga = Some("place-order".into());
        message.version = Some(1);
        message.text = text.into();
        message
    }

    #[test]
    fn one_alert_is_named_in_full() {
        let content = content(&[message("card expired")]);
        assert_eq!(
            content,
            "**ringsaga eu.main**\n<font color=\"warning\">terminated</font> orders · \
             place-order v1\n> card expired <font color=\"comment\">2026-09-21T14:13:20.000Z</font>"
        );
    }

    #[test]
    fn a_burst_is_one_message_within_the_limit_that_counts_all() {
        let all: Vec<Message> = (0..500).map(|_| message(&"漢字 ".repeat(200))).collect();
        let content = content(&all);
        assert!(content.len() <= MAX_BYTES, "{}", content.len());
        assert!(content.contains(": 500 terminated"), "{content}");
        let shown = content.matches("place-order").count();
        assert!(shown >= 5);
        assert!(content.contains(&format!("and {} more", 500 - shown)));
    }

    #[test]
    fn an_error_text_is_no_markup() {
        let content = content(&[message("<font color=\"info\">fine</font>\n# all is well")]);
        assert_eq!(content.matches("<font").count(), 2);
        assert_eq!(content.lines().count(), 3);
    }
}
