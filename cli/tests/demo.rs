//! The demo from outside: bad input is told before anything starts, the story ends well, and
//! nothing that it started outlives it.

use std::{
    error::Error,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use assert_cmd::assert::OutputAssertExt as _;
use predicates::str::contains;
use tempfile::TempDir;

type Checked = Result<(), Box<dyn Error>>;

/// A story of 20 s instead of 40.
const SHORT: [&str; 12] = [
    "--kill-at",
    "payment-down=2s",
    "--kill-at",
    "slave=3s",
    "--kill-at",
    "order=3500ms",
    "--kill-at",
    "payment-up=7s",
    "--kill-at",
    "master=8s",
    "--kill-at",
    "nats=9s",
];

fn ringsaga() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ringsaga"))
}

/// Open to all: under root Postgres runs as another user.
fn folder() -> Result<TempDir, std::io::Error> {
    tempfile::Builder::new().prefix("ringsaga-test-").tempdir()
}

fn csv(folder: &Path, rows: &str) -> Result<PathBuf, std::io::Error> {
    let file = folder.join("orders.csv");
    fs::write(
        &file,
        format!("{}\n{rows}", "order_id,customer,sku,quantity,amount_cents"),
    )?;
    Ok(file)
}

/// Processes whose standard output is a file below this folder: all that the demo starts.
fn left_over(data: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let writes_there = |process: &fs::DirEntry| {
        fs::read_link(process.path().join("fd/1")).is_ok_and(|file| file.starts_with(data))
    };
    processes
        .filter(writes_there)
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Waits at most 10 s for a condition.
fn holds_soon(condition: impl Fn() -> bool) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        condition()
    })
}

/// A demo in the middle of its work, and its folder.
fn running() -> Result<(Child, TempDir), Box<dyn Error>> {
    let data = folder()?;
    let mut child = ringsaga()
        .arg("demo")
        .arg("--data")
        .arg(data.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
    let mut told = Vec::new();
    for line in lines {
        let line = line?;
        let works = line.contains("orders come in");
        told.push(line);
        if works {
            assert!(
                left_over(data.path()).len() >= 12,
                "{:?}",
                left_over(data.path())
            );
            return Ok((child, data));
        }
    }
    Err(format!("it ended before it worked: {told:?}").into())
}

fn signal(child: &Child, name: &str) -> Checked {
    let sent = Command::new("kill")
        .arg(name)
        .arg(child.id().to_string())
        .status()?;
    assert!(sent.success());
    Ok(())
}

#[test]
fn every_bad_row_is_named_before_anything_starts() -> Checked {
    let folder = folder()?;
    let file = csv(
        folder.path(),
        "A-1,ann,pen,1,100\nA-2,ann,pen,none,100\nA-1,ann,pen,1,1\n",
    )?;
    let ended = ringsaga().args(["demo", "--orders"]).arg(file).assert();
    ended
        .code(2)
        .stderr(contains("line 3: quantity must be a whole number"))
        .stderr(contains("line 4: order_id \"A-1\" is also in line 2"));
    let missing = ringsaga()
        .args(["demo", "--orders", "no-such-file.csv"])
        .assert();
    missing.code(2).stderr(contains("no-such-file.csv"));
    let full = ringsaga()
        .args(["demo", "--data"])
        .arg(folder.path())
        .assert();
    full.code(2).stderr(contains("is not empty"));
    Ok(())
}

#[test]
fn a_time_that_makes_no_sense_is_a_usage_error() {
    for (told, says) in [
        ("cat=3s", "write one of payment-down"),
        ("slave", "write ROLE=TIME"),
        ("slave=soon", "is no time"),
        ("nats=10m", "at most 45s"),
    ] {
        let ended = ringsaga().args(["demo", "--kill-at", told]).assert();
        ended.code(2).stderr(contains(says));
    }
}

#[test]
fn nothing_is_lost_or_doubled_and_nothing_is_left_running() -> Checked {
    let folder = folder()?;
    let rows: Vec<&str> = shop::csv::SHIPPED.lines().skip(1).take(80).collect();
    let file = csv(folder.path(), &rows.join("\n"))?;
    let data = folder.path().join("data");
    let ended = ringsaga()
        .args(["--json", "demo", "--seed", "3", "--orders"])
        .arg(file)
        .arg("--data")
        .arg(&data)
        .args(SHORT)
        .output()?;
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout)?;
    assert_eq!(report["holds"], true, "{report}");
    let verdict = &report["verdict"];
    assert_eq!(verdict["orders"], 80, "{report}");
    assert_eq!(
        report["blows"].as_array().map(Vec::len),
        Some(6),
        "{report}"
    );
    assert_eq!(left_over(&data), Vec::<String>::new());
    Ok(())
}

#[test]
fn ctrl_c_stops_everything() -> Checked {
    let (mut child, data) = running()?;
    signal(&child, "-INT")?;
    let status = child.wait()?;
    assert_eq!(status.code(), Some(130), "{status}");
    assert_eq!(left_over(data.path()), Vec::<String>::new());
    Ok(())
}

#[test]
fn nothing_outlives_a_killed_demo() -> Checked {
    let (mut child, data) = running()?;
    child.kill()?;
    child.wait()?;
    assert!(
        holds_soon(|| left_over(data.path()).is_empty()),
        "{:?}",
        left_over(data.path())
    );
    Ok(())
}
