//! The examples run, and say what their texts promise.

mod support;

use std::path::PathBuf;

use support::{Checked, Lab};
use tokio::process::Command;

/// Cargo builds examples beside the tests, in a folder of their own.
fn example(name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let test = std::env::current_exe()?;
    let profile = test.parent().and_then(|deps| deps.parent());
    let path = profile.ok_or("no folder")?.join("examples").join(name);
    Ok(path)
}

#[tokio::test]
async fn the_bank_transfer_moves_each_cent_once() -> Checked {
    let lab = Lab::new().await?;
    let ran = Command::new(example("bank_transfer")?)
        .env("DATABASE_URL", lab.database.url())
        .kill_on_drop(true)
        .output()
        .await?;
    let said = String::from_utf8(ran.stdout)?;
    let wanted = "2500 to bob: done\n\
        1000 to carol: undone, credit: carol is closed\n\
        50000 to bob: undone, debit: not enough money\n\
        alice has 7500\nbob has 2500\ncarol has 0\n";
    assert_eq!(said, wanted, "{}", String::from_utf8(ran.stderr)?);
    Ok(())
}
