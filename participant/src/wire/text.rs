//! Pieces of what strangers sent, made fit for a log line.

/// Longest piece, in characters: enough to recognise an error page, too short to flood a log.
const LONGEST: usize = 200;

/// The first characters of a body: control characters and runs of blanks as one blank, cut.
///
/// ```
/// # use ring_participant::wire::excerpt;
/// assert_eq!(excerpt(b"<html>\r\n  <h1>Oops</h1>\0"), "<html> <h1>Oops</h1>");
/// assert_eq!(excerpt(b""), "nothing");
/// ```
#[must_use]
pub fn excerpt(body: &[u8]) -> String {
    // Four bytes are the longest character; blanks may take some more.
    let head = &body[..body.len().min(LONGEST * 8)];
    let text = String::from_utf8_lossy(head);
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let mut cleaned = String::new();
    for word in text.split(blank).filter(|word| !word.is_empty()) {
        if !cleaned.is_empty() {
            cleaned.push(' ');
        }
        cleaned.push_str(word);
    }
    if cleaned.is_empty() {
        return "nothing".to_owned();
    }
    let whole = head.len() == body.len();
    match cleaned.char_indices().nth(LONGEST) {
        Some((end, _)) => cleaned.truncate(end),
        None if whole => return cleaned,
        None => {}
    }
    cleaned.push('…');
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_cut_between_characters() {
        let long = "é".repeat(5_000);
        let cut = excerpt(long.as_bytes());
        assert_eq!(cut.chars().count(), LONGEST + 1);
        assert!(cut.ends_with('…'));
    }

    #[test]
    fn bytes_that_are_no_text_are_no_danger() {
        assert_eq!(excerpt(&[0x1b, b'[', b'2', b'J', 0xff]), "[2J\u{fffd}");
    }
}
