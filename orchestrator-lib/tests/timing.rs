//! Whoever sets times, by the library or by a binary's keys, gets the same table: a ring whose
//! members count differently has no ring.

use std::time::Duration;

use orchestrator_lib::Times;
use ring_core::{timing::Timing, wire::Role};
use ring_shell::config::{Common, Settings, Sources};

/// The table of a binary with these keys of `ring`.
fn of_binary(keys: &[(&str, &str)]) -> Timing {
    let mut flags = vec![
        ("region".to_owned(), "eu-1".to_owned()),
        ("cluster".to_owned(), "c1".to_owned()),
        ("id".to_owned(), "n-1".to_owned()),
    ];
    flags.extend(
        keys.iter()
            .map(|(k, v)| (format!("ring.{k}"), (*v).to_owned())),
    );
    let mut settings = Settings::read(Sources {
        flags,
        ..Sources::default()
    });
    let common = Common::read(&mut settings, Role::Slave);
    let (common, _) = settings.finish(common).expect("sound keys");
    common.expect("all keys").timing
}

/// The table of the library with the same keys.
fn of_library(keys: &[(&str, &str)]) -> Timing {
    let keys: serde_json::Map<String, serde_json::Value> = keys
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).into()))
        .collect();
    let times: Times = serde_json::from_value(keys.into()).expect("sound keys");
    times.timing()
}

#[test]
fn both_front_doors_lead_to_the_same_table() {
    let cases: [&[(&str, &str)]; 7] = [
        &[],
        &[("window", "4s")],
        &[("lead", "10s")],
        &[("window", "10s"), ("lead", "3s"), ("guard", "600ms")],
        &[("guard", "400ms")],
        &[("heartbeat", "4s")],
        &[
            ("lead", "20s"),
            ("owner_lease", "9s"),
            ("sweep", "2s"),
            ("overdue_after", "1m"),
        ],
    ];
    for keys in cases {
        assert_eq!(of_binary(keys), of_library(keys), "{keys:?}");
    }
    let lead = of_library(&[("lead", "9s")]);
    assert_eq!(
        lead.heartbeat,
        Duration::from_millis(1500),
        "follows the lead"
    );
}
