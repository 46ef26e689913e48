//! The texts of the statements, without a server.

use orchestrator_lib::store::sql;

/// Where the common end of the claims begins.
const MARK: &str = "-- From here on all four claims are the same, word by word.";

/// A statement can't be put together from pieces without being unreadable, so the end of the four
/// claims is written four times; whoever changes one must change all.
#[test]
fn all_claims_end_the_same() {
    let ends: Vec<_> = sql::ALL
        .iter()
        .filter(|(name, _)| name.starts_with("claim_"))
        .map(|(name, text)| (*name, text.split_once(MARK).map(|(_, end)| end)))
        .collect();
    assert_eq!(ends.len(), 4);
    for (name, end) in &ends {
        assert!(end.is_some(), "{name} has no mark");
        assert_eq!(*end, ends[0].1, "{name} differs from {}", ends[0].0);
    }
}

/// The list from the other end is written a second time, since no statement can turn its order.
#[test]
fn the_list_from_the_other_end_is_the_same_list() {
    let text = |wanted: &str| {
        let found = sql::ALL.iter().find(|(name, _)| *name == wanted);
        let text = found.map_or("", |(_, text)| text);
        text[text.find("select").unwrap_or(0)..].to_owned()
    };
    let turned = text("list")
        .replace("id < $4", "id > $4")
        .replace("id >= $5", "id <= $5")
        .replace("transaction < $4", "transaction > $4")
        .replace("transaction >= $5", "transaction <= $5")
        .replace(" desc", "");
    assert_eq!(turned, text("list_oldest"));
}
