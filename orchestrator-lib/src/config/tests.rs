//! Mistakes and texts of a configuration.

use super::*;

#[test]
fn all_mistakes_are_reported_at_once() {
    let names = Config::new("R", "c.d", "*", "", "").unwrap_err();
    assert_eq!(names.0.len(), 4, "{names}");
    let mut config = Config::new("r", "c", "orders", "orders-1", "").unwrap();
    assert!(config.check().is_ok());
    config.region_code = 5000;
    config.capacity = 0;
    config.timing.owner_lease = Some(Duration::from_secs(1));
    config.nats = Some(Nats {
        token: Some("t".into()),
        ..Nats::at("::").user("u", "p")
    });
    let found = config.check().unwrap_err();
    assert_eq!(found.0.len(), 5, "{found}");
}

#[test]
fn a_text_configuration_is_read_with_durations_and_unknown_keys_named() {
    let json = r#"{"region":"r","cluster":"c","service":"s","instance":"i","grace":"5s",
        "timing":{"window":"4s"},"database":{"url":"postgres://u:secret@h/d"},
        "nats":{"url":"nats://u:secret@h","token":"secret"}}"#;
    let config: Config = serde_json::from_str(json).unwrap();
    assert_eq!(config.grace, Duration::from_secs(5));
    assert_eq!(config.timing.timing().lead, Duration::from_secs(2));
    assert!(!format!("{config:?}").contains("secret"));
    let odd = json.replace("grace", "grase");
    let said = serde_json::from_str::<Config>(&odd).unwrap_err();
    assert!(said.to_string().contains("grase"), "{said}");
}
