//! `ringsaga dev`: the three servers, a leading master, a standby and two slaves on this machine,
//! around a command or until Ctrl-C. Not for production: Postgres runs without fsync.

use ring_local::{
    Addresses, Companions, HookError, Process, Role, Set, SetOptions, Settings, Spec, dev,
};

use crate::{args::Dev, exit::Exit, output};

/// Where the companions' ring lives.
pub(crate) const REGION: &str = "dev";
/// Its cluster.
pub(crate) const CLUSTER: &str = "c1";

/// Starts everything, runs the command (or waits), stops everything, exits with its code.
pub(crate) fn run(dev_args: &Dev) -> anyhow::Result<()> {
    let settings = Settings::from_env();
    let options = SetOptions {
        data: dev_args.data.clone(),
        ..SetOptions::default()
    };
    let command = (!dev_args.command.is_empty()).then_some(dev_args.command.as_slice());
    let quiet = command.is_some();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(dev(&settings, &options, command, async |set: &Set| {
        let companions = companions(set, dev_args).await?;
        if !quiet {
            greet(set, dev_args)?;
        }
        Ok(companions)
    }))?;
    match outcome.code() {
        0 => Ok(()),
        code => Err(Exit::Passed(code).because(format!("the command ended with {code}"))),
    }
}

async fn companions(set: &Set, dev_args: &Dev) -> Result<Companions, HookError> {
    let mut programs = Vec::new();
    if !dev_args.servers_only {
        for id in ["m-1", "m-2"] {
            programs.push(spawn(set.addresses(), "master", id, Role::Master, dev_args).await?);
        }
        for id in ["s-1", "s-2"] {
            programs.push(spawn(set.addresses(), "slave", id, Role::Slave, dev_args).await?);
        }
    }
    let password = set.addresses().nats_password(Role::Operator);
    let environment = vec![
        ("NATS_USER".to_owned(), Role::Operator.user().to_owned()),
        ("NATS_PASSWORD".to_owned(), password),
    ];
    Ok(Companions {
        programs,
        environment,
    })
}

async fn spawn(
    addresses: &Addresses,
    program: &str,
    id: &str,
    role: Role,
    dev_args: &Dev,
) -> Result<Process, HookError> {
    let executable = std::env::current_exe()?;
    let log = addresses.data.join(format!("{id}.log"));
    let window = format!("{}ms", dev_args.window.as_millis());
    let mut spec = Spec::new(id, executable, log)
        .clean_env()
        .args([program])
        .env("RINGSAGA__REGION", REGION)
        .env("RINGSAGA__CLUSTER", CLUSTER)
        .env("RINGSAGA__ID", id)
        .env("RINGSAGA__NATS__URL", &addresses.nats_url)
        .env("RINGSAGA__NATS__USER", role.user())
        .env("RINGSAGA__NATS__PASSWORD", addresses.nats_password(role))
        .env("RINGSAGA__RING__WINDOW", window);
    if matches!(role, Role::Master) {
        spec = spec.env("RINGSAGA__REDIS__URL", &addresses.redis_url);
    }
    Ok(Process::spawn(&spec).await?)
}

fn greet(set: &Set, dev_args: &Dev) -> Result<(), HookError> {
    let addresses = set.addresses();
    let mut table = output::table(&["WHAT", "WHERE"]);
    table.add_row(["NATS", addresses.nats_url.as_str()]);
    table.add_row(["Redis", addresses.redis_url.as_str()]);
    table.add_row(["Postgres", addresses.postgres_url.as_str()]);
    let logs = addresses.data.display().to_string();
    table.add_row(["logs, dev.json", logs.as_str()]);
    output::line(&table.trim_fmt())?;
    if !dev_args.servers_only {
        let window = output::ago(u64::try_from(dev_args.window.as_millis()).unwrap_or(u64::MAX));
        output::line(&format!(
            "ring {REGION}.{CLUSTER}: masters m-1, m-2; slaves s-1, s-2; windows of {window}"
        ))?;
    }
    output::line("not for production: Postgres runs without fsync. In another terminal:")?;
    for (name, value) in shell_variables(addresses) {
        output::line(&format!("  export {name}='{value}'"))?;
    }
    output::line("  ringsaga ring status --region dev --cluster c1")?;
    output::line("a service of yours joins this ring with")?;
    for (name, value) in of_a_service(addresses, dev_args) {
        output::line(&format!("  {name}={value}"))?;
    }
    output::line("Ctrl-C stops everything.")?;
    Ok(())
}

/// What a service must set; its windows must be the ring's.
fn of_a_service(addresses: &Addresses, dev_args: &Dev) -> [(&'static str, String); 5] {
    [
        (
            "RINGSAGA__REGION, __CLUSTER",
            format!("{REGION}, {CLUSTER}"),
        ),
        ("RINGSAGA__NATS__USER", Role::Orchestrator.user().to_owned()),
        (
            "RINGSAGA__NATS__PASSWORD",
            addresses.nats_password(Role::Orchestrator),
        ),
        (
            "RINGSAGA__RING__WINDOW (Config.timing.window)",
            format!("{}ms", dev_args.window.as_millis()),
        ),
        (
            "NATS_PASSWORD of the user observer",
            addresses.nats_password(Role::Observer),
        ),
    ]
}

/// What another terminal needs to look around.
fn shell_variables(addresses: &Addresses) -> [(&'static str, String); 5] {
    [
        ("NATS_URL", addresses.nats_url.clone()),
        ("NATS_USER", Role::Operator.user().to_owned()),
        ("NATS_PASSWORD", addresses.nats_password(Role::Operator)),
        ("REDIS_URL", addresses.redis_url.clone()),
        ("DATABASE_URL", addresses.postgres_url.clone()),
    ]
}
