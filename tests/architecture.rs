//! The house's walls: who may know what (`cargo metadata`), that the core is `no_std` and without
//! import circles, and that every file says what it is for and stays small.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace")
        .to_path_buf()
}

/// The normal dependencies of each package of the workspace, optional ones included.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a name").to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    let of = |package: &Value| {
        let normal = |dependency: &&Value| dependency["kind"].is_null();
        let all = package["dependencies"].as_array().expect("dependencies");
        let names = all
            .iter()
            .filter(normal)
            .map(|dependency| text(&dependency["name"]));
        (text(&package["name"]), names.collect())
    };
    packages.iter().map(of).collect()
}

/// What a package must not know, and what it must.
struct Knows {
    package: &'static str,
    never: &'static [&'static str],
    always: &'static [&'static str],
}

const NATS: &str = "async-nats";
const POSTGRES: [&str; 3] = ["tokio-postgres", "deadpool-postgres", "refinery"];

const TABLE: [Knows; 4] = [
    Knows {
        package: "ring-shell",
        never: &["redis", POSTGRES[0], POSTGRES[1], POSTGRES[2]],
        always: &["ring-core", NATS],
    },
    Knows {
        package: "ring-master",
        never: &[NATS, POSTGRES[0], POSTGRES[1], POSTGRES[2]],
        always: &["ring-core", "ring-shell", "redis"],
    },
    Knows {
        package: "ring-slave",
        never: &[NATS, "redis", POSTGRES[0], POSTGRES[1], POSTGRES[2]],
        always: &["ring-core", "ring-shell"],
    },
    Knows {
        package: "orchestrator-lib",
        never: &[
            "redis",
            "axum",
            "clap",
            "config",
            "reqwest",
            "ring-master",
            "ring-slave",
        ],
        always: &["ring-core", "ring-shell", POSTGRES[0]],
    },
];

/// Crates that are `no_std` with the features that the workspace asks for.
const CORE_MAY_USE: [&str; 5] = ["chrono", "serde", "serde_json", "thiserror", "uuid"];

#[test]
fn each_role_knows_only_what_it_may_know() {
    let all = dependencies();
    for Knows {
        package,
        never,
        always,
    } in TABLE
    {
        let known = all
            .get(package)
            .unwrap_or_else(|| panic!("{package} is gone"));
        for one in never {
            assert!(!known.contains(*one), "{package} must not know {one}");
        }
        for one in always {
            assert!(known.contains(*one), "{package} should know {one}");
        }
    }
}

#[test]
fn the_core_depends_on_no_std_crates_alone() {
    let all = dependencies();
    let known = &all["ring-core"];
    let strangers: Vec<&String> = known
        .iter()
        .filter(|name| !CORE_MAY_USE.contains(&name.as_str()))
        .collect();
    assert!(strangers.is_empty(), "{strangers:?}");
    let lib = fs::read_to_string(root().join("core/src/lib.rs")).expect("core/src/lib.rs");
    assert!(lib.contains("#![no_std]"));
    assert!(!lib.contains("extern crate std"));
}

/// All Rust files of the workspace's packages, with their text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or("");
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_file_says_what_it_is_for_and_stays_small() {
    let mut bad = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//!") {
            bad.push(format!("{} does not open with //!", path.display()));
        }
        let lines = text.lines().count();
        if lines > 400 {
            bad.push(format!("{} has {lines} lines, at most 400", path.display()));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Which module of the core uses which, on the level of `lib.rs`, tests left out.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let src = root().join("core/src");
    let lib = fs::read_to_string(src.join("lib.rs")).expect("core/src/lib.rs");
    let module = |line: &str| {
        let rest = line
            .strip_prefix("pub mod ")
            .or_else(|| line.strip_prefix("mod "))?;
        rest.strip_suffix(';').map(str::to_owned)
    };
    let modules: BTreeSet<String> = lib.lines().filter_map(module).collect();
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources() {
        let Ok(inside) = path.strip_prefix(&src) else {
            continue;
        };
        let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
        let from = parts[0].trim_end_matches(".rs").to_owned();
        let is_test = parts.iter().any(|part| part.starts_with("tests"));
        if from == "lib" || is_test {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        for name in used(code) {
            if modules.contains(&name) && name != from {
                arrows.entry(from.clone()).or_default().insert(name);
            }
        }
    }
    arrows
}

/// The modules named after `crate::`, also in a `use crate::{...}` list.
fn used(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let word = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    };
    let said = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = said.flat_map(|line| [line, "\n"]).collect();
    for rest in code.split("crate::").skip(1) {
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0_u32, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    names.insert(word(list[start..at].trim()));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn imports_of_the_core_run_one_way() {
    let mut arrows = arrows();
    assert!(
        arrows.len() > 8,
        "the core's modules were not found: {arrows:?}"
    );
    // Take away whoever imports nobody that is left; what stays is a circle.
    loop {
        let left: BTreeSet<String> = arrows.keys().cloned().collect();
        let before = arrows.len();
        arrows.retain(|_, uses| uses.iter().any(|name| left.contains(name)));
        if arrows.len() == before {
            break;
        }
    }
    assert!(arrows.is_empty(), "import circle among {arrows:#?}");
}

#[test]
fn the_ring_and_the_saga_do_not_import_each_other() {
    let arrows = arrows();
    let none = BTreeSet::new();
    for ring in [
        "master",
        "slave",
        "orchestrator",
        "roster",
        "joining",
        "registry",
    ] {
        let uses = arrows.get(ring).unwrap_or(&none);
        assert!(!uses.contains("saga"), "{ring} imports saga");
        assert!(
            !arrows.get("saga").unwrap_or(&none).contains(ring),
            "saga imports {ring}"
        );
    }
}

#[test]
fn names_in_an_import_list_are_found() {
    let code = "use crate::{bus::{Op, Told}, time::Now,\n    window};\nfn f(x: crate::id::Who) {}";
    let found: Vec<String> = used(code).into_iter().collect();
    assert_eq!(found, ["bus", "id", "time", "window"]);
}
