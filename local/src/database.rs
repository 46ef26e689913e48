//! One database a test, copied from a template that is made once a run.
//!
//! Decides names, locks and ends of databases. What is in a template is the caller's hook.

use std::future::Future;

use crate::background;
use crate::error::{Error, HookError, postgres as statement};
use crate::postgres::connect;
use crate::set::Addresses;
use crate::token;

/// Enough of a run's token to tell runs on one folder apart; a name has 63 bytes.
const RUN_IN_NAME: usize = 9;

/// A database of one test, dropped with this value.
#[derive(Debug)]
pub struct TestDatabase {
    admin: String,
    name: String,
    url: String,
    held: bool,
}

impl TestDatabase {
    /// An empty database.
    ///
    /// # Errors
    /// When Postgres can't be reached or refuses.
    pub async fn create(addresses: &Addresses) -> Result<Self, Error> {
        Self::copy(addresses, "template0").await
    }

    /// A copy of the template `key`, which the first caller of a run makes by `prepare`.
    ///
    /// The hook gets the address of an empty database; its connections are cut when it returns.
    /// The key is a lower-case name such as `saga_store`, of at most 30 letters.
    ///
    /// # Errors
    /// When Postgres can't be reached or refuses, or the hook fails.
    pub async fn from_template<F, R>(
        addresses: &Addresses,
        key: &str,
        prepare: F,
    ) -> Result<Self, Error>
    where
        F: FnOnce(String) -> R,
        R: Future<Output = Result<(), HookError>>,
    {
        // Of this run: on a kept folder yesterday's template may have yesterday's schema.
        let run: String = addresses.run.chars().take(RUN_IN_NAME).collect();
        let template = format!("template_{key}_{run}");
        make_template(addresses, &template, prepare).await?;
        Self::copy(addresses, &template).await
    }

    /// The superuser's address of this database.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Drops the database now, whoever is connected.
    ///
    /// # Errors
    /// When Postgres can't be reached or refuses.
    pub async fn close(mut self) -> Result<(), Error> {
        self.held = false;
        remove(&self.admin, &self.name).await
    }

    async fn copy(addresses: &Addresses, template: &str) -> Result<Self, Error> {
        let name = format!("t_{}", token::random::<8>()?);
        let admin = addresses.postgres_url.clone();
        let create = format!(r#"create database "{name}" template "{template}""#);
        let created = connect(&admin).await?.batch_execute(&create).await;
        created.map_err(statement("create a database"))?;
        let url = addresses.database_url(&name);
        Ok(Self {
            admin,
            name,
            url,
            held: true,
        })
    }
}

impl Drop for TestDatabase {
    /// Without waiting: a set that ends with its test takes the database along.
    fn drop(&mut self) {
        if !self.held {
            return;
        }
        let (admin, name) = (
            std::mem::take(&mut self.admin),
            std::mem::take(&mut self.name),
        );
        let removal = background::spawn(async move {
            if let Err(error) = remove(&admin, &name).await {
                tracing::debug!(%error, name, "a test's database stays until its server ends");
            }
        });
        drop(removal);
    }
}

impl Addresses {
    /// Makes a database that stays, unless it is there, and gives its address.
    ///
    /// # Errors
    /// When Postgres can't be reached or refuses.
    pub async fn create_database(&self, name: &str) -> Result<String, Error> {
        let admin = connect(&self.postgres_url).await?;
        let exists = "select 1 from pg_database where datname = $1";
        let exists = admin.query_opt(exists, &[&name]).await;
        if exists.map_err(statement("look for a database"))?.is_none() {
            let create = format!(r#"create database "{name}" template template0"#);
            admin
                .batch_execute(&create)
                .await
                .map_err(statement("create a database"))?;
        }
        Ok(self.database_url(name))
    }
}

async fn remove(admin: &str, name: &str) -> Result<(), Error> {
    let remove = format!(r#"drop database if exists "{name}" with (force)"#);
    let removed = connect(admin).await?.batch_execute(&remove).await;
    removed.map_err(statement("drop a database"))
}

/// Made under another name and renamed when it is whole, so that a failed hook leaves nothing.
async fn make_template<F, R>(addresses: &Addresses, name: &str, prepare: F) -> Result<(), Error>
where
    F: FnOnce(String) -> R,
    R: Future<Output = Result<(), HookError>>,
{
    // The lock is the session's: it goes with this connection, whatever happens.
    let admin = connect(&addresses.postgres_url).await?;
    let lock = admin
        .execute("select pg_advisory_lock(hashtext($1))", &[&name])
        .await;
    lock.map_err(statement("lock a template"))?;
    let exists = "select 1 from pg_database where datname = $1";
    let exists = admin.query_opt(exists, &[&name]).await;
    if exists.map_err(statement("look for a template"))?.is_some() {
        return Ok(());
    }
    let draft = format!("{name}_draft");
    for make in [
        format!(r#"drop database if exists "{draft}" with (force)"#),
        format!(r#"create database "{draft}" template template0"#),
    ] {
        admin
            .batch_execute(&make)
            .await
            .map_err(statement("create a template"))?;
    }
    prepare(addresses.database_url(&draft))
        .await
        .map_err(|source| Error::Hook {
            operation: "prepare a database template",
            source,
        })?;
    let cut = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1";
    admin
        .execute(cut, &[&draft])
        .await
        .map_err(statement("close a template"))?;
    let rename = format!(r#"alter database "{draft}" rename to "{name}""#);
    admin
        .batch_execute(&rename)
        .await
        .map_err(statement("finish a template"))
}
