//! The shapes strangers rely on.

use alloc::{string::ToString, vec::Vec};

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{
    id::{BootId, Cluster, NodeId, Region, Scope, Service},
    timing::Timing,
    token::Range,
    window::{Grant, Term, WindowNo},
};

fn boot(n: u128) -> BootId {
    BootId(Uuid::from_u128(n))
}

fn scope() -> Scope {
    Scope {
        region: Region::new("eu-1").unwrap(),
        cluster: Cluster::new("c1").unwrap(),
    }
}

fn grant() -> Grant {
    Grant {
        service: Service::new("orders").unwrap(),
        window: WindowNo(29_934_609),
        range: Range::RING,
        term: Term {
            number: 7,
            boot: boot(1),
        },
        holder: NodeId::new("s-1").unwrap(),
        boot: boot(2),
        index: 0,
        members: 1,
        parent: None,
    }
}

#[test]
fn a_window_looks_as_subjects_md_says() {
    let wire = Publication::Grant(GrantWire::new(&scope(), &Timing::default(), grant()));
    let bytes = encode(&wire).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        value,
        json!({
            "v": 1, "kind": "grant", "region": "eu-1", "cluster": "c1", "service": "orders",
            "window": 29_934_609,
            "starts_at": "2026-11-30T22:09:00.000Z", "ends_at": "2026-11-30T22:10:00.000Z",
            "range": {"start": "-9223372036854775808", "end": "9223372036854775807"},
            "term": {"number": 7, "boot": boot(1).to_string()},
            "holder": "s-1", "boot": boot(2).to_string(), "index": 0, "members": 1,
        })
    );
    let Publication::Grant(back) = decode(&bytes).unwrap() else {
        panic!("a grant")
    };
    assert_eq!(back.open(&scope(), &Timing::default()), Ok(grant()));
}

#[test]
fn a_grant_of_another_window_length_is_refused() {
    let short = Timing::for_window(core::time::Duration::from_secs(30));
    let wire = GrantWire::new(&scope(), &short, grant());
    assert!(wire.open(&scope(), &Timing::default()).is_err());
}

#[test]
fn unknown_fields_are_ignored_and_unknown_kinds_refused() {
    let with_more = json!({"v": 1, "kind": "status", "more": [1]}).to_string();
    assert_eq!(
        decode::<Question>(with_more.as_bytes()).unwrap(),
        Question::Status
    );
    let strange = json!({"v": 1, "kind": "dance"}).to_string();
    assert!(matches!(
        decode::<Question>(strange.as_bytes()),
        Err(WireError::Shape(_))
    ));
}

#[test]
fn bytes_that_are_no_message_are_errors_and_never_panics() {
    let large: Vec<u8> = alloc::vec![b' '; MAX_BYTES + 1];
    assert!(matches!(
        decode::<Question>(&large),
        Err(WireError::TooLarge(_))
    ));
    let newer = json!({"v": 2, "kind": "status"}).to_string();
    assert!(matches!(
        decode::<Question>(newer.as_bytes()),
        Err(WireError::Version(2))
    ));
    for bytes in [
        &b""[..],
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{",
        b"{\"v\":\"1\"}",
        b"{\"v\":1}",
    ] {
        assert!(decode::<Question>(bytes).is_err());
        assert!(decode::<Publication>(bytes).is_err());
    }
}

#[test]
fn a_name_with_a_wildcard_is_refused_in_a_message() {
    let text = json!({"v": 1, "kind": "window", "id": "*", "boot": boot(1).to_string()});
    assert!(decode::<Question>(text.to_string().as_bytes()).is_err());
}

#[test]
fn a_register_carries_id_and_boot_beside_its_kind() {
    let who = Who {
        id: NodeId::new("s-1").unwrap(),
        boot: boot(2),
    };
    let ask = Question::Register(Register {
        who,
        service: None,
        build: "0.1.0".into(),
    });
    let value: serde_json::Value = serde_json::from_slice(&encode(&ask).unwrap()).unwrap();
    let boot = boot(2).to_string();
    assert_eq!(
        value,
        json!({"v":1,"kind":"register","id":"s-1","boot":boot,"build":"0.1.0"})
    );
    assert_eq!(decode::<Question>(&encode(&ask).unwrap()).unwrap(), ask);
}
