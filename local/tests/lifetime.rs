//! No child outlives whoever started it, however that ends.

mod common;

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use common::{Checked, holds_soon, is_alive};
use ring_local::{Addresses, Companions, Error, Process, Set, SetOptions, Settings, Spec, dev};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Our binary with its three servers, up.
async fn servers() -> Result<(Child, Addresses), Box<dyn std::error::Error>> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ring-local"))
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = child.stdout.take().ok_or("no stdout")?;
    let line = BufReader::new(stdout)
        .lines()
        .next_line()
        .await?
        .ok_or("no line")?;
    Ok((child, serde_json::from_str(&line)?))
}

fn signal(child: &Child, signal: Signal) -> Checked {
    let pid = child
        .id()
        .and_then(|pid| Pid::from_raw(pid.cast_signed()))
        .ok_or("no pid")?;
    Ok(kill_process(pid, signal)?)
}

fn pids(at: &Addresses) -> Vec<u32> {
    [at.nats_pids.as_slice(), &[at.redis_pid, at.postgres_pid]].concat()
}

#[tokio::test]
async fn killing_the_parent_leaves_no_server_behind() -> Checked {
    let (mut child, at) = servers().await?;
    let backends = common::children(at.postgres_pid);
    assert!(!backends.is_empty(), "Postgres has its helpers");
    assert!(pids(&at).into_iter().all(is_alive));

    signal(&child, Signal::KILL)?;
    child.wait().await?;
    let all = [pids(&at), backends].concat();
    let gone = holds_soon(|| !all.iter().any(|pid| is_alive(*pid))).await;
    std::fs::remove_dir_all(&at.data)?; // what nobody was left to do
    assert!(gone, "left behind: {all:?}");
    Ok(())
}

#[tokio::test]
async fn term_and_interrupt_end_everything_orderly() -> Checked {
    for asked in [Signal::TERM, Signal::INT] {
        let (mut child, at) = servers().await?;
        signal(&child, asked)?;
        let status = child.wait().await?;
        assert_eq!(status.code(), Some(0), "{asked:?}");
        assert!(!pids(&at).into_iter().any(is_alive), "{asked:?}");
        assert!(!at.data.exists(), "{asked:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_commands_exit_code_is_ours_and_it_sees_the_addresses() -> Checked {
    let script = r#"test -f "$RINGSAGA_DEV_FILE" && test -n "$RINGSAGA_DEV_RUN" &&
        case "$NATS_URL $REDIS_URL $DATABASE_URL" in
            "nats://127.0.0.1:"*" redis://:"*" postgres://"*) exit 7;;
        esac"#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring-local"));
    let status = command.args(["sh", "-c", script]).status().await?;
    assert_eq!(status.code(), Some(7));
    Ok(())
}

#[tokio::test]
async fn killing_the_parent_ends_the_command() -> Checked {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_ring-local"))
        .args(["sh", "-c", "echo $$ $RINGSAGA_DEV_FILE; exec sleep 600"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdout = parent.stdout.take().ok_or("no stdout")?;
    let line = BufReader::new(stdout)
        .lines()
        .next_line()
        .await?
        .ok_or("no line")?;
    let (pid, file) = line.split_once(' ').ok_or("no pid")?;
    let pid = pid.parse()?;
    assert!(is_alive(pid));
    signal(&parent, Signal::KILL)?;
    parent.wait().await?;
    let gone = holds_soon(|| !is_alive(pid)).await;
    std::fs::remove_dir_all(std::path::Path::new(file).parent().ok_or("no folder")?)?;
    assert!(gone);
    Ok(())
}

#[tokio::test]
async fn companions_are_stopped_orderly_when_the_command_has_ended() -> Checked {
    let folder = common::folder()?;
    let log = folder.path().join("log");
    let command = ["sh", "-c", "exit 3"].map(OsString::from);
    let (settings, options) = (Settings::from_env(), SetOptions::default());
    let outcome = dev(&settings, &options, Some(&command), async |_set| {
        let script = "trap 'echo down; exit' TERM; echo up; sleep 600 & wait";
        let program = Process::spawn(&Spec::new("c", "sh", &log).args(["-c", script])).await?;
        assert!(holds_soon(|| std::fs::read_to_string(&log).is_ok_and(|log| log == "up\n")).await);
        Ok(Companions {
            programs: vec![program],
            environment: Vec::new(),
        })
    });
    assert_eq!(outcome.await?.code(), 3);
    assert_eq!(std::fs::read_to_string(&log)?, "up\ndown\n");
    Ok(())
}

#[tokio::test]
async fn a_failed_hook_ends_the_servers_too() -> Checked {
    let mut found = None;
    let (settings, options) = (Settings::from_env(), SetOptions::default());
    let failed = dev(&settings, &options, None, async |set: &Set| {
        found = Some(set.addresses().clone());
        Err("no master".into())
    });
    assert!(matches!(failed.await, Err(Error::Hook { .. })));
    assert!(!pids(&found.ok_or("no set")?).into_iter().any(is_alive));
    Ok(())
}

#[tokio::test]
async fn a_dropped_program_takes_its_own_children_along() -> Checked {
    let folder = common::folder()?;
    let log = folder.path().join("log");
    let spec = Spec::new("sleeper", "sh", &log).args(["-c", "sleep 600 & echo $!; wait"]);
    let program = Process::spawn(&spec).await?;
    let child = || {
        std::fs::read_to_string(&log)
            .ok()?
            .trim()
            .parse::<u32>()
            .ok()
    };
    assert!(holds_soon(|| child().is_some()).await);
    let pids = [program.pid(), child().ok_or("no child")?];
    drop(program);
    assert!(holds_soon(|| !pids.into_iter().any(is_alive)).await);
    Ok(())
}

#[tokio::test]
async fn a_program_that_ends_by_itself_leaves_no_child_either() -> Checked {
    let folder = common::folder()?;
    let log = folder.path().join("log");
    let spec = Spec::new("careless", "sh", &log).args(["-c", "sleep 600 & echo $!"]);
    let mut program = Process::spawn(&spec).await?;
    assert!(program.wait().await?.success());
    let child = std::fs::read_to_string(&log)?.trim().parse()?;
    assert!(holds_soon(|| !is_alive(child)).await);
    Ok(())
}

#[tokio::test]
async fn a_program_that_ignores_term_is_killed_after_its_grace() -> Checked {
    let folder = common::folder()?;
    let log = folder.path().join("log");
    let spec = Spec::new("stubborn", "sh", &log).args(["-c", "trap '' TERM; echo up; sleep 600"]);
    let mut program = Process::spawn(&spec).await?;
    assert!(holds_soon(|| std::fs::read_to_string(&log).is_ok_and(|log| log == "up\n")).await);
    program.terminate().await?;
    let patience = Duration::from_millis(100);
    assert!(
        tokio::time::timeout(patience, program.wait())
            .await
            .is_err(),
        "it ignores TERM"
    );
    let status = program.stop().await?;
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
    Ok(())
}

/// The kernel's parent-death signal follows the thread that forked, and a test's thread ends.
#[test]
fn a_shared_set_outlives_the_thread_that_started_it() -> Checked {
    let share = || -> Result<_, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let settings = Settings {
            dev_file: None,
            ..Settings::from_env()
        };
        runtime
            .block_on(Set::from_env_or_start(&settings))
            .map_err(|error| error.to_string())
    };
    let first = std::thread::spawn(share).join().map_err(|_| "panicked")??;
    let second = std::thread::spawn(share).join().map_err(|_| "panicked")??;
    assert!(std::sync::Arc::ptr_eq(&first, &second));
    assert!(pids(first.addresses()).into_iter().all(is_alive));
    let at = first.addresses().clone();
    drop((first, second));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    assert!(runtime.block_on(holds_soon(|| !pids(&at).into_iter().any(is_alive))));
    Ok(())
}
