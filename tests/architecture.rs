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

const TABLE: [Knows; 7] = [
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
    Knows {
        package: "ring-participant",
        never: &[
            "redis",
            "clap",
            "config",
            "refinery",
            "ring-core",
            "ring-master",
            "ring-slave",
        ],
        always: &["serde", "serde_json"],
    },
    Knows {
        package: "ring-operators",
        never: &[NATS, "redis", POSTGRES[0], POSTGRES[1], POSTGRES[2]],
        always: &["axum", "orchestrator-lib", "subtle"],
    },
    Knows {
        package: "ring-notifier",
        never: &[NATS, "redis", POSTGRES[0], POSTGRES[1], POSTGRES[2]],
        always: &["orchestrator-lib", "reqwest"],
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

/// What a package has only with a feature that a user asks for.
#[test]
fn a_worker_does_not_bring_the_saga_library_along() {
    let manifest = fs::read_to_string(root().join("participant/Cargo.toml")).expect("a manifest");
    for client_only in ["orchestrator-lib", "reqwest", "rustls", "chrono"] {
        let dep = format!("\"dep:{client_only}\"");
        let features: Vec<&str> = manifest
            .split("\n\n")
            .find(|part| part.trim_start().starts_with("[features]"))
            .expect("features")
            .split("\n# ")
            .filter(|feature| feature.contains(&dep))
            .collect();
        assert_eq!(features.len(), 1, "{client_only} belongs to one feature");
        assert!(features[0].contains("\nclient = ["), "{}", features[0]);
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

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The core's code without its tests, by path below `core/src`.
fn core_files() -> BTreeMap<String, String> {
    let src = root().join("core/src");
    let mut files = BTreeMap::new();
    for (path, text) in sources() {
        let Ok(inside) = path.strip_prefix(&src) else {
            continue;
        };
        let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
        let is_test = |part: &&str| part.starts_with("tests") || *part == "bench.rs";
        if !parts.iter().any(is_test) {
            let code = text.split("#[cfg(test)]\nmod tests {").next();
            files.insert(parts.join("/"), code.unwrap_or("").to_owned());
        }
    }
    files
}

/// Which file of the core imports which by `crate::…`, re-exports followed to where the name is.
fn file_arrows() -> Arrows {
    let files = core_files();
    let mut arrows = Arrows::new();
    for (from, code) in files.iter().filter(|(name, _)| *name != "lib.rs") {
        let targets = used(code)
            .into_iter()
            .filter_map(|path| resolve(&files, &path));
        let others: BTreeSet<String> = targets.filter(|to| to != from).collect();
        arrows.insert(from.clone(), others);
    }
    arrows
}

/// The same on the level of `lib.rs`.
fn arrows() -> Arrows {
    let room = |file: &str| {
        let first = file.split('/').next().unwrap_or("");
        first.trim_end_matches(".rs").to_owned()
    };
    let mut arrows = Arrows::new();
    for (from, uses) in file_arrows() {
        let rooms = uses.iter().map(|to| room(to));
        arrows.entry(room(&from)).or_default().extend(rooms);
    }
    arrows
}

/// The file that holds `crate::a::b::C`.
fn resolve(files: &BTreeMap<String, String>, path: &[String]) -> Option<String> {
    let file = |folder: &str| {
        let names = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        names.into_iter().find(|name| files.contains_key(name))
    };
    let mut folder = path.first()?.clone();
    let mut at = file(&folder)?;
    for name in &path[1..] {
        let child = if file(&format!("{folder}/{name}")).is_some() {
            name.clone()
        } else if let Some(child) = re_exported(&files[&at], name) {
            child
        } else {
            break;
        };
        folder = format!("{folder}/{child}");
        at = file(&folder)?;
    }
    Some(at)
}

/// The child module from which this file passes a name on.
fn re_exported(code: &str, name: &str) -> Option<String> {
    code.split("pub use ").skip(1).find_map(|rest| {
        let list = rest.split(';').next()?;
        let (child, names) = list.trim_start_matches("self::").split_once("::")?;
        let mut words = names.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == name).then(|| child.to_owned())
    })
}

/// Every path named after `crate::`, lists in braces taken apart.
fn used(code: &str) -> BTreeSet<Vec<String>> {
    let said = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = said.flat_map(|line| [line, "\n"]).collect();
    let mut paths = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        expand(rest, &[], &mut paths);
    }
    paths
}

/// Reads one use tree and returns what follows it.
fn expand<'a>(text: &'a str, before: &[String], paths: &mut BTreeSet<Vec<String>>) -> &'a str {
    let mut path = before.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut list) = rest.strip_prefix('{') {
            while !list.trim_start().starts_with('}') && !list.trim().is_empty() {
                let after = expand(list, &path, paths).trim_start();
                list = after.strip_prefix(',').unwrap_or(after);
                if list.len() == after.len() && !after.starts_with('}') {
                    return after;
                }
            }
            return list.trim_start().strip_prefix('}').unwrap_or(list);
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        path.push(word.to_owned());
        match after.strip_prefix("::") {
            Some(more) => rest = more,
            None => break rest = after,
        }
    }
    paths.insert(path);
    rest
}

/// Takes away whoever imports nobody that is left; what stays is a circle, or leads into one.
fn circle(mut arrows: Arrows) -> Arrows {
    loop {
        let left: BTreeSet<String> = arrows.keys().cloned().collect();
        let before = arrows.len();
        arrows.retain(|_, uses| uses.iter().any(|name| left.contains(name)));
        if arrows.len() == before {
            return arrows;
        }
    }
}

#[test]
fn imports_of_the_core_run_one_way() {
    let arrows = file_arrows();
    assert!(
        arrows.len() > 20,
        "the core's files were not found: {arrows:?}"
    );
    let master = &arrows["master/mod.rs"];
    assert!(
        master.contains("roster/mod.rs"),
        "imports were not read: {master:?}"
    );
    let circle = circle(arrows);
    assert!(circle.is_empty(), "import circle among {circle:#?}");
}

#[test]
fn a_circle_is_found() {
    let arrows = |pairs: &[(&str, &str)]| {
        let one =
            |(from, to): &(&str, &str)| ((*from).to_owned(), BTreeSet::from([(*to).to_owned()]));
        pairs.iter().map(one).collect::<Arrows>()
    };
    assert!(circle(arrows(&[("a", "b"), ("b", "c")])).is_empty());
    assert!(!circle(arrows(&[("a", "b"), ("b", "c"), ("c", "a")])).is_empty());
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
    let code = "use crate::{bus::{self, Op}, time::Now,\n    window};\nfn f(x: crate::id::Who) {}";
    let found: Vec<String> = used(code).iter().map(|path| path.join("::")).collect();
    let wanted = ["bus::Op", "bus::self", "id::Who", "time::Now", "window"];
    assert_eq!(found, wanted);
}
