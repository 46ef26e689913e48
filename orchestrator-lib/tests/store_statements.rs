//! The texts of the statements, without a server.

use orchestrator_lib::store::sql;

/// The ways to find a list's rows from the other end are written a second time, since no statement
/// can turn its order.
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
