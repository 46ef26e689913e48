//! Reads the database's address. The driver knows neither `verify-ca` nor `verify-full`; TLS here
//! always verifies chain and name, so both mean `require`. Decides nothing else about an address.

use super::error::Error;

/// The address as the driver reads it.
pub(super) fn read(text: &str) -> Result<tokio_postgres::Config, Error> {
    let known = if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        url(text)
    } else {
        pairs(text)
    };
    known
        .parse()
        .map_err(|e| Error::permanent("read the database's address", e))
}

fn is_verifying(mode: &str) -> bool {
    matches!(mode, "verify-ca" | "verify-full")
}

/// Only the query holds settings: a password before the `@` may look like one.
fn url(text: &str) -> String {
    let host = text.find('@').map_or(0, |at| at + 1);
    let Some(query) = text[host..].find('?').map(|at| host + at + 1) else {
        return text.to_owned();
    };
    let settings = text[query..]
        .split('&')
        .map(|setting| match setting.split_once('=') {
            Some(("sslmode", mode)) if is_verifying(mode) => "sslmode=require",
            _ => setting,
        });
    let settings: Vec<_> = settings.collect();
    format!("{}{}", &text[..query], settings.join("&"))
}

/// `key=value` text: spaces may stand around the equals sign, values may be quoted with `'`, and a
/// backslash takes the next character as it is.
fn pairs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((key, value)) = rest.split_once('=') {
        let (blank, value) = value.split_at(value.len() - value.trim_start().len());
        let (value, after) = value.split_at(end(value));
        out.extend([key, "=", blank]);
        let verifies = is_verifying(value.trim_matches('\''));
        let replaced = key.trim() == "sslmode" && verifies;
        out.push_str(if replaced { "require" } else { value });
        rest = after;
    }
    out + rest
}

/// Where a value ends.
fn end(value: &str) -> usize {
    let quoted = value.starts_with('\'');
    let mut escaped = false;
    for (at, character) in value.char_indices().skip(usize::from(quoted)) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' if quoted => return at + 1,
            _ if !quoted && character.is_whitespace() => return at,
            _ => {}
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    #[test]
    fn a_mode_that_verifies_is_required_in_both_ways_to_write_an_address() {
        for text in [
            "postgres://u:p@h/d?sslmode=verify-full",
            "postgresql://u@h:1/d?connect_timeout=3&sslmode=verify-ca&application_name=a",
            "host=h user=u sslmode=verify-full",
            "sslmode = 'verify-ca' host = h user = u",
        ] {
            let read = read(text).unwrap();
            assert_eq!(read.get_ssl_mode(), SslMode::Require, "{text}");
        }
        let prefer = read("postgres://u:p@h/d").unwrap();
        assert_eq!(prefer.get_ssl_mode(), SslMode::Prefer);
    }

    #[test]
    fn a_password_that_looks_like_a_setting_stays_as_it_is() {
        for text in [
            "postgres://u:a?sslmode=verify-full@h/d?sslmode=disable",
            "host=h user=u password='a sslmode=verify-full' sslmode=disable",
            r"host=h user=u password=a\ sslmode=verify-full sslmode=disable",
        ] {
            let read = read(text).unwrap();
            let password = String::from_utf8_lossy(read.get_password().unwrap());
            assert!(password.ends_with("sslmode=verify-full"), "{password}");
            assert_eq!(read.get_ssl_mode(), SslMode::Disable, "{text}");
        }
    }
}
