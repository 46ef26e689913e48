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
