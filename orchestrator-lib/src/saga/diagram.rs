//! A definition for people: a Mermaid flow chart, and JSON.

use ring_core::saga::{Guard, Kind, Plan, PlannedStep, Recovery, Repeat, Retry};
use serde_json::{Value, json};

use super::Definition;

/// The flow forward, top down; what is undone has a double frame.
pub(super) fn mermaid(definition: &Definition) -> String {
    let plan = &definition.plan;
    let mut text = String::from("flowchart TD\n  start([start])\n");
    for (step, seq) in plan.steps().iter().zip(0_u32..) {
        text.push_str(&format!("  s{seq}{}\n", shape(step)));
    }
    text.push_str("  done([done])\n");
    // Where the flow can come from: a step's number, and the case when it is a decision.
    let mut open: Vec<Edge> = vec![Edge::start()];
    let mut seq = 0;
    while plan.step(seq).is_some() {
        let group = plan.group(seq);
        let entering = enter(plan, seq, &mut open);
        for member in group.clone() {
            for edge in &entering {
                text.push_str(&edge.to(&format!("s{member}")));
            }
            open.push(Edge::of(member, definition));
        }
        seq = group.end;
    }
    for edge in open {
        text.push_str(&edge.to("done"));
    }
    text
}

/// One end of an arrow that still leads somewhere.
#[derive(Clone)]
struct Edge {
    from: String,
    /// The guards that hold on this way: decision and case.
    guards: Vec<(u32, String)>,
    /// Of a decision: the cases that lead nowhere yet.
    cases: Vec<String>,
}

impl Edge {
    fn start() -> Self {
        Self {
            from: "start".to_owned(),
            guards: Vec::new(),
            cases: Vec::new(),
        }
    }

    fn of(seq: u32, definition: &Definition) -> Self {
        let step = definition.plan.step(seq);
        let cases = step.and_then(|s| definition.cases.get(s.name.as_str()));
        Self {
            from: format!("s{seq}"),
            guards: step.map(guards).unwrap_or_default(),
            cases: cases.cloned().unwrap_or_default(),
        }
    }

    /// The line of an arrow to a node.
    fn to(&self, node: &str) -> String {
        let from = &self.from;
        if self.cases.is_empty() {
            format!("  {from} --> {node}\n")
        } else {
            format!("  {from} -- {} --> {node}\n", self.cases.join(", "))
        }
    }
}

/// The ways that lead to this step; a way of another case stays open for what follows.
fn enter(plan: &Plan, seq: u32, open: &mut Vec<Edge>) -> Vec<Edge> {
    let own = plan.step(seq).map(guards).unwrap_or_default();
    let deciding = own
        .last()
        .map(|(decision, case)| (format!("s{decision}"), case.clone()));
    let (mut entering, mut staying) = (Vec::new(), Vec::new());
    for mut edge in open.drain(..) {
        let from_decision = deciding
            .as_ref()
            .filter(|(decision, _)| *decision == edge.from);
        if let Some((_, case)) = from_decision {
            let others = edge.cases.len();
            edge.cases.retain(|c| c != case);
            if edge.cases.len() < others {
                entering.push(Edge {
                    cases: vec![case.clone()],
                    ..edge.clone()
                });
            }
            if !edge.cases.is_empty() {
                staying.push(edge);
            }
        } else if edge.guards.iter().any(|g| other_case(g, &own)) {
            staying.push(edge);
        } else {
            entering.push(edge);
        }
    }
    *open = staying;
    entering
}

fn other_case((decision, case): &(u32, String), own: &[(u32, String)]) -> bool {
    own.iter().any(|(d, c)| d == decision && c != case)
}

fn guards(step: &PlannedStep) -> Vec<(u32, String)> {
    let case = |g: &Guard| serde_json::from_str(g.case.as_str()).unwrap_or_default();
    let guard = |g: &Guard| (g.decision, case(g));
    step.guards.iter().map(guard).collect()
}

fn shape(step: &PlannedStep) -> String {
    let name = &step.name;
    match &step.kind {
        Kind::Decide => format!("{{\"{name}?\"}}"),
        Kind::Timer(wait) => format!("[/\"{name}: {wait:?}\"/]"),
        Kind::Signal { .. } => format!("[/\"signal {name}\"/]"),
        Kind::Saga => format!("[[\"saga {name}\"]]"),
        Kind::Action if step.compensate.is_some() => format!("[[\"{name}\"]]"),
        Kind::Action => format!("[\"{name}\"]"),
    }
}

/// Everything that the machine knows.
pub(super) fn json(definition: &Definition) -> String {
    let plan = &definition.plan;
    let runs = plan.runs();
    let steps: Vec<Value> = plan.steps().iter().map(|s| step(plan, s)).collect();
    let value = json!({
        "saga": runs.saga.as_str(),
        "version": runs.version,
        "digest": runs.digest,
        "lifetime_ms": millis(definition.lifetime),
        "idle_ms": plan.idle_limit().map(millis),
        "retention_ms": definition.retention.map(millis),
        "steps": steps,
    });
    format!("{value:#}")
}

fn step(plan: &Plan, step: &PlannedStep) -> Value {
    let (kind, wait) = match &step.kind {
        Kind::Action => ("action", None),
        Kind::Decide => ("decide", None),
        Kind::Timer(wait) => ("timer", Some(*wait)),
        Kind::Signal { within, .. } => ("signal", *within),
        Kind::Saga => ("saga", None),
    };
    let recovery = match step.recovery {
        Recovery::Hybrid => "hybrid",
        Recovery::ForwardOnly => "forward_only",
        Recovery::BackwardFirst => "backward_first",
        Recovery::Irreversible => "irreversible",
    };
    let idempotency = match step.repeat {
        Repeat::Key => "key",
        Repeat::Probe => "probe",
        Repeat::Never => "none",
    };
    let name_of = |seq: u32| plan.step(seq).map(|s| s.name.to_string());
    let guards: Vec<Value> = guards(step)
        .into_iter()
        .map(|(decision, case)| json!({"decision": name_of(decision), "case": case}))
        .collect();
    json!({
        "name": step.name.as_str(),
        "kind": kind,
        "wait_ms": wait.map(millis),
        "recovery": recovery,
        "idempotency": idempotency,
        "time_limit_ms": millis(step.time_limit),
        "retry": retry(&step.retry),
        "compensation": step.compensate.as_ref().map(retry),
        "guards": guards,
        "beside": step.group.and_then(name_of),
    })
}

fn retry(retry: &Retry) -> Value {
    json!({
        "attempts": retry.attempts,
        "inline": retry.inline,
        "first_ms": millis(retry.base),
        "cap_ms": millis(retry.cap),
        "floor_ms": millis(retry.floor),
    })
}

fn millis(d: std::time::Duration) -> u64 {
    ring_core::time::millis_u64(d)
}
