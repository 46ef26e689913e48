//! The `ring` commands, declared.

use clap::{Args as ClapArgs, Subcommand};
use ring_core::{
    id::{Cluster, Region, Service},
    token::Range,
};
use secrecy::SecretString;
use uuid::Uuid;

#[derive(Debug, Subcommand)]
pub(crate) enum Ring {
    /// Print windows and events as they come
    Watch(Watch),
    /// Who leads, who lives, who owns which range, and the backlog
    Status(Seen),
    /// Prove from outside that published ranges cover the ring; exit 1 when they don't
    Audit(Audit),
    /// Which token and slot a transaction has, and who looks after it now
    Owner(Owner),
    /// The token and slot of transaction ids
    Token(Ids),
    /// How a range is cut into N parts, equally or by weights
    Split(Split),
}

/// How to listen: the variables are those of the stock `nats` tool.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Bus {
    /// NATS servers, separated by commas
    #[arg(
        long,
        env = "NATS_URL",
        default_value = "nats://127.0.0.1:4222",
        value_name = "URL",
        hide_env_values = true
    )]
    pub(crate) nats: SecretString,
    /// NATS user: one that may subscribe to ring.>
    #[arg(long, env = "NATS_USER", value_name = "NAME", requires = "password")]
    pub(crate) user: Option<String>,
    /// Its password
    #[arg(
        long,
        env = "NATS_PASSWORD",
        value_name = "SECRET",
        hide_env_values = true
    )]
    pub(crate) password: Option<SecretString>,
    /// A credentials file instead
    #[arg(long, env = "NATS_CREDS", value_name = "FILE", conflicts_with = "user")]
    pub(crate) creds: Option<std::path::PathBuf>,
    /// A CA's certificate file
    #[arg(long, env = "NATS_CA", value_name = "FILE")]
    pub(crate) ca: Option<std::path::PathBuf>,
}

/// Which rings.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Seen {
    #[command(flatten)]
    pub(crate) bus: Bus,
    /// Only this region
    #[arg(long, env = "RINGSAGA__REGION")]
    pub(crate) region: Option<Region>,
    /// Only this cluster
    #[arg(long, env = "RINGSAGA__CLUSTER")]
    pub(crate) cluster: Option<Cluster>,
    /// Only this service
    #[arg(long)]
    pub(crate) service: Option<Service>,
}

/// What to print.
#[derive(Debug, ClapArgs)]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) seen: Seen,
    /// End after so many messages
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
}

/// What to prove.
#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) seen: Seen,
    /// How many windows in a row
    #[arg(long, default_value_t = 3, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) windows: u32,
    /// Declared gaps (frozen seats) fail, too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Give up when no window at all is heard for this many seconds
    #[arg(long, default_value_t = 150, value_name = "SECONDS")]
    pub(crate) patience: u64,
}

/// Whose owner.
#[derive(Debug, ClapArgs)]
pub(crate) struct Owner {
    #[command(flatten)]
    pub(crate) seen: Seen,
    /// The transaction's id
    #[arg(value_name = "ID", value_parser = transaction)]
    pub(crate) id: Uuid,
}

/// Transaction ids.
#[derive(Debug, ClapArgs)]
pub(crate) struct Ids {
    /// Transaction ids (UUIDs); "-" reads one a line from standard input
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

/// What to split.
#[derive(Debug, ClapArgs)]
pub(crate) struct Split {
    /// Number of parts
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) parts: u32,
    /// Both ends inclusive; the whole ring by default
    #[arg(long, value_name = "START..END", value_parser = range, allow_hyphen_values = true)]
    pub(crate) of: Option<Range>,
    /// One weight a part, e.g. 2,1,1: parts in proportion, by largest remainder
    #[arg(long, value_name = "W,W,…", value_delimiter = ',')]
    pub(crate) weights: Option<Vec<u32>>,
}

/// Reads `START..END`.
fn range(text: &str) -> Result<Range, String> {
    let (start, end) = text
        .split_once("..")
        .ok_or("write START..END, both inclusive")?;
    let number = |part: &str| {
        part.trim().parse::<i64>().map_err(|_| {
            format!("{part:?} is not a token: write a whole number from -2^63 to 2^63-1")
        })
    };
    Range::new(number(start)?, number(end)?).map_err(|error| error.to_string())
}

/// Reads a transaction id.
pub(crate) fn transaction(text: &str) -> Result<Uuid, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("{text:?} is not a transaction id (a UUID)"))
}
