//! `Retry-After`, in seconds or as a date.

use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Longest pause that is believed: a date far off is a mistake, and the saga has a lifetime.
pub(super) const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The pause that a reply asks for. A date is compared with the reply's own, so that the two
/// clocks need not agree; `now` (Unix seconds) stands in when there is none.
pub(super) fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let at = unix(text)?;
            let sent = headers.get(DATE).and_then(|date| date.to_str().ok());
            let sent = sent.and_then(unix).unwrap_or(now);
            u64::try_from(at.saturating_sub(sent)).unwrap_or(0)
        }
    };
    Some(Duration::from_secs(seconds).min(LONGEST))
}

fn unix(date: &str) -> Option<i64> {
    let date = DateTime::parse_from_rfc2822(date).ok()?;
    Some(date.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(retry_after_text: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after_text.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        // Wed, 21 Oct 2026 07:28:00 GMT
        retry_after(&headers, 1_792_567_680).map(|pause| pause.as_secs())
    }

    #[test]
    fn seconds_and_dates_are_read_and_capped() {
        assert_eq!(pause("120", None), Some(120));
        assert_eq!(pause(" 0 ", None), Some(0));
        assert_eq!(pause("999999999999", None), Some(3600));
        assert_eq!(pause("Wed, 21 Oct 2026 07:28:30 GMT", None), Some(30));
        assert_eq!(pause("Wed, 21 Oct 2026 07:27:00 GMT", None), Some(0));
        assert_eq!(pause("Fri, 01 Jan 2100 00:00:00 GMT", None), Some(3600));
        let date = Some("Wed, 21 Oct 2020 07:28:00 GMT");
        assert_eq!(pause("Wed, 21 Oct 2020 07:28:05 GMT", date), Some(5));
    }

    #[test]
    fn nonsense_is_no_pause() {
        for text in ["", "soon", "-5", "1.5", "99999999999999999999999"] {
            assert_eq!(pause(text, None), None, "{text}");
        }
    }
}
