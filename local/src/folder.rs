//! What the operating system's folders tell: who may enter one, who descends from whom.
//!
//! Decides nothing; it knows Linux' `/proc` and permission bits, and no server.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use crate::error::{Error, file};

/// As this user Postgres runs when we are root (it refuses to run as root): `nobody`.
pub(crate) const NOBODY: u32 = 65534;

/// The user a Postgres has to run as, if not as ourselves.
pub(crate) fn postgres_uid() -> Option<u32> {
    rustix::process::geteuid().is_root().then_some(NOBODY)
}

/// The first folder on the way to `path` that other users may not enter.
pub(crate) fn closed_on_the_way(path: &Path) -> Option<PathBuf> {
    let closed = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 == 0)
    };
    path.ancestors()
        .find(|folder| closed(folder))
        .map(Path::to_path_buf)
}

/// Makes a folder and all above it. Under root others may enter it: Postgres is one of them.
pub(crate) fn create(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(file("create", path))?;
    if postgres_uid().is_some() {
        let found = fs::metadata(path).map_err(file("look at", path))?;
        let mode = found.permissions().mode() | 0o011;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(file("open", path))?;
    }
    Ok(())
}

/// Writes a file that only we may read, in one step for readers.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let draft = path.with_extension("draft");
    fs::write(&draft, "").map_err(file("write", &draft))?;
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&draft, mode).map_err(file("protect", &draft))?;
    fs::write(&draft, text).map_err(file("write", &draft))?;
    fs::rename(&draft, path).map_err(file("write", path))
}

/// The last 30 lines of a log; empty when it can't be read.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Whether a process exists and is more than a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(_parent, state)| state != 'Z' && state != 'X')
}

/// Hands a file or folder to the user as whom Postgres runs, if that is not us.
pub(crate) fn give_to_postgres(path: &Path) -> Result<(), Error> {
    match postgres_uid() {
        None => Ok(()),
        Some(uid) => chown(path, Some(uid), Some(uid)).map_err(file("hand to Postgres", path)),
    }
}

/// All that descend from a process, whatever session or group they are in.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> = pids
        .filter_map(|pid: u32| Some((pid, stat(pid)?.0)))
        .collect();
    let mut found = BTreeSet::from([root]);
    loop {
        let before = found.len();
        found.extend(
            parents
                .iter()
                .filter(|(_, up)| found.contains(up))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if found.len() == before {
            found.remove(&root);
            return found.into_iter().collect();
        }
    }
}

/// Parent and state letter. The name in parentheses may itself hold parentheses and blanks.
fn stat(pid: u32) -> Option<(u32, char)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}
