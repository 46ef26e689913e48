//! `subjects.md` is the contract; this keeps it and the code equal.

use std::collections::BTreeSet;

use ring_core::{
    subject::{EVENT_KINDS, Endpoints, Place, Subject, Verb},
    wire::{Answer, Event, Publication, Question, Refusal, decode, encode},
};
use serde_json::Value;

const CONTRACT: &str = include_str!("../subjects.md");

/// The fenced JSON examples, in order.
fn examples() -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = CONTRACT;
    while let Some((_, tail)) = rest.split_once("```json\n") {
        let (text, tail) = tail.split_once("```").expect("a closed block");
        found.push(serde_json::from_str(text).unwrap_or_else(|e| panic!("{e} in {text}")));
        rest = tail;
    }
    assert!(found.len() > 30, "only {} examples were found", found.len());
    found
}

/// Reads an example as one of the types and writes it again; `None` when it is of no type.
fn round_trip(example: &Value) -> Option<Value> {
    let bytes = serde_json::to_vec(example).expect("JSON");
    let back = if let Ok(m) = decode::<Publication>(&bytes) {
        encode(&m)
    } else if let Ok(m) = decode::<Event>(&bytes) {
        encode(&m)
    } else if let Ok(m) = decode::<Question>(&bytes) {
        encode(&m)
    } else {
        encode(&decode::<Answer>(&bytes).ok()?)
    };
    Some(serde_json::from_slice(&back.expect("a message")).expect("JSON"))
}

#[test]
fn every_example_is_what_the_code_reads_and_writes() {
    for example in examples() {
        assert_eq!(round_trip(&example).as_ref(), Some(&example), "{example}");
    }
}

#[test]
fn every_event_kind_has_its_subject_in_the_contract() {
    for kind in EVENT_KINDS {
        let named = CONTRACT.contains(&format!("`ring.eu-1.c1.event.{kind}`"))
            || CONTRACT.contains(&format!("`.{kind}`"));
        assert!(named, "event.{kind} is not described");
    }
}

#[test]
fn every_subject_named_in_the_contract_is_parsed_by_the_code() {
    let mut seen = 0;
    for word in CONTRACT
        .split('`')
        .filter(|w| w.starts_with("ring.eu-1.c1."))
    {
        assert!(
            Subject::parse(word).is_some(),
            "{word} is not a subject of the code"
        );
        seen += 1;
    }
    assert!(seen > 25, "only {seen} subjects were found");
}

#[test]
fn every_endpoint_is_named_in_the_contract() {
    let id = ring_core::id::NodeId::new("s-1").unwrap();
    let master = Endpoints::Master.places().into_iter();
    let slave = Endpoints::Slave(id).places().into_iter();
    for place in master.chain(slave) {
        let text = match &place {
            Place::Master(Verb::Status) => "`ring.eu-1.c1.master.status`".to_owned(),
            Place::Master(verb) => format!("`ring.eu-1.c1.master.slave.{}`", verb.as_str()),
            Place::Assign => "`ring.eu-1.c1.master.orch.assign`".to_owned(),
            Place::Slave(_, verb) => format!("`ring.eu-1.c1.slave.s-1.{}`", verb.as_str()),
            Place::SlaveWindows(_) | Place::OrchWindows(_) | Place::Event(_) => continue,
        };
        assert!(CONTRACT.contains(&text), "{text} is not described");
    }
}

#[test]
fn every_kind_of_question_and_answer_has_an_example() {
    let kinds: BTreeSet<String> = examples()
        .iter()
        .map(|e| e["kind"].as_str().unwrap().to_owned())
        .collect();
    for kind in [
        "register",
        "confirm",
        "slave-beat",
        "orchestrator-beat",
        "leave",
        "window",
        "assign",
        "status",
        "registered",
        "confirmed",
        "heard",
        "grants",
        "left",
        "assigned",
        "master",
        "slave",
        "refused",
        "grant",
        "probe",
    ] {
        assert!(kinds.contains(kind), "{kind} has no example");
    }
}

#[test]
fn every_refusal_is_named_in_the_contract() {
    for refusal in [
        Refusal::NotLeader,
        Refusal::Unregistered,
        Refusal::TwinAlive,
        Refusal::Superseded,
        Refusal::NoSlave,
        Refusal::Draining,
        Refusal::Busy,
        Refusal::BadRequest,
    ] {
        let name = serde_json::to_value(refusal).unwrap();
        let name = name.as_str().unwrap();
        assert!(
            CONTRACT.contains(&format!("`{name}`")),
            "{name} is not described"
        );
    }
}
