//! The configuration, from good and bad sources.

use ring_core::wire::Role;

use super::*;
use crate::clock;

fn environment(of: &[(&str, &str)]) -> Sources {
    Sources {
        environment: of.iter().map(|(k, v)| (k.into(), v.into())).collect(),
        ..Sources::default()
    }
}

fn read(sources: Sources) -> Result<(Option<Common>, Vec<Effective>), ConfigError> {
    let mut settings = Settings::read(sources);
    let common = Common::read(&mut settings, Role::Slave);
    settings.finish(common)
}

const SCOPE: [(&str, &str); 2] = [("RINGSAGA__REGION", "eu-1"), ("RINGSAGA__CLUSTER", "c1")];

#[test]
fn every_mistake_is_reported_at_once_with_key_source_and_advice() {
    let error = read(environment(&[
        ("RINGSAGA__REGION", "EU.1"),
        ("RINGSAGA__ID", "*"),
        ("RINGSAGA__RING__WINDOW", "soon"),
        ("RINGSAGA__NATS__URL", "nats://host:port"),
        ("RINGSAGA__NATS__USER", "slave"),
        ("RINGSAGA__HTTP__LISTEN", "8080"),
        ("RINGSAGA__LOG__FORMAT", "xml"),
        ("RINGSAGA__RNIG__LEAD", "1s"),
    ]))
    .unwrap_err();
    let keys: Vec<_> = error.mistakes.iter().map(|m| m.key.as_str()).collect();
    for key in [
        "region",
        "cluster",
        "id",
        "ring.window",
        "nats.url",
        "nats.password",
        "http.listen",
        "log.format",
        "rnig.lead",
    ] {
        assert_eq!(
            keys.iter().filter(|k| **k == key).count(),
            1,
            "{key}\n{error}"
        );
    }
    assert_eq!(keys.len(), 9, "{error}");
    let said = error.to_string();
    assert!(
        said.starts_with("9 mistakes in the configuration:\n"),
        "{said}"
    );
    assert!(
        said.contains("ring.window (RINGSAGA__RING__WINDOW) is \"soon\", which is no duration"),
        "{said}"
    );
    assert!(
        said.contains("cluster is missing: set it, for example to \"c1\""),
        "{said}"
    );
}

#[test]
fn the_environment_wins_over_the_file_and_flags_over_both() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "region = \"eu-1\"\ncluster = \"c1\"\nid = \"a\"\n[ring]\nwindow = \"2s\"\nlead = \"1s\"\nfreeze_limit = 2\n[nats]\nurl = [\"nats://a\", \"nats://b\"]\n",
    )
    .unwrap();
    let mut sources = environment(&[("RINGSAGA__ID", "b"), ("RINGSAGA__RING__LEAD", "600ms")]);
    sources.file = Some(file.path().to_owned());
    sources.flags = vec![("id".to_owned(), "c".to_owned())];
    let (common, effective) = read(sources).unwrap();
    let common = common.unwrap();
    assert_eq!(common.id.as_str(), "c");
    assert_eq!(common.timing.lead.as_millis(), 600);
    assert_eq!(common.timing.heartbeat.as_millis(), 100, "follows the lead");
    assert_eq!(common.timing.freeze_limit, Some(2));
    assert_eq!(common.nats.servers.len(), 2);
    let lead = effective.iter().find(|e| e.key == "ring.lead").unwrap();
    assert_eq!(
        (lead.value.as_str(), lead.source.as_str()),
        ("600ms", "RINGSAGA__RING__LEAD")
    );
}

#[test]
fn secrets_are_hidden_and_strange_variables_are_no_keys() {
    let mut of = SCOPE.to_vec();
    of.extend([
        ("RINGSAGA__NATS__USER", "slave"),
        ("RINGSAGA__NATS__PASSWORD", "hush"),
        (
            "RINGSAGA__NATS__URL",
            "nats://u:hush@a:4222,tls://hush-token@b",
        ),
        ("RINGSAGA_HOME", "/srv"),
        ("RINGSAGA_PORT_4222_TCP", "tcp://10.0.0.1:4222"),
    ]);
    let (common, effective) = read(environment(&of)).unwrap();
    let common = common.unwrap();
    let connection = common.bus(clock::boot());
    let printed = format!("{common:?} {connection:?} {effective:?}");
    assert!(!printed.contains("hush"), "{printed}");
    let url = effective.iter().find(|e| e.key == "nats.url").unwrap();
    assert_eq!(url.value, "nats://a:4222,tls://b:4222");
    assert!(
        effective
            .iter()
            .any(|e| e.key == "nats.password" && e.value == "(hidden)")
    );
}

#[test]
fn a_broken_rule_of_timing_is_told() {
    let mut of = SCOPE.to_vec();
    of.extend([
        ("RINGSAGA__RING__LEAD", "59s"),
        ("RINGSAGA__RING__HEARTBEAT", "40s"),
    ]);
    let error = read(environment(&of)).unwrap_err();
    assert_eq!(error.mistakes.len(), 2, "{error}");
}

#[test]
fn a_file_that_is_missing_is_a_mistake() {
    let mut sources = environment(&SCOPE);
    sources.file = Some("/nowhere/ringsaga.toml".into());
    let error = read(sources).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("config (/nowhere/ringsaga.toml) can't be read"),
        "{error}"
    );
}

#[test]
fn two_kinds_of_credentials_are_one_too_many() {
    let mut of = SCOPE.to_vec();
    of.extend([
        ("RINGSAGA__NATS__TOKEN", "t"),
        ("RINGSAGA__NATS__CREDS", "/f"),
    ]);
    let error = read(environment(&of)).unwrap_err();
    assert!(
        error.to_string().contains("nats has several credentials"),
        "{error}"
    );
}
