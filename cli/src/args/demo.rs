//! The demo's flags, declared.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use clap::Args as ClapArgs;

/// What to show.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Demo {
    /// Orders to place, as CSV with the columns order_id, customer, sku, quantity, amount_cents;
    /// by default 500 that ship with the program
    #[arg(long, value_name = "FILE")]
    pub(crate) orders: Option<PathBuf>,
    /// Drives what is not told: the order of the orders, who dies, and when to the second
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// When something happens, from the first order on, e.g. slave=8s or payment-up=20s; roles:
    /// payment-down, payment-up, slave, order, master, nats; may be repeated, also for one role
    #[arg(long, value_name = "ROLE=TIME")]
    pub(crate) kill_at: Vec<KillAt>,
    /// Leave everything running at the end, to look around; Ctrl-C ends it
    #[arg(long)]
    pub(crate) keep: bool,
    /// Keep data and logs in this folder; a temporary one by default
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Something that happens during the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Blow {
    /// The payment service answers 503.
    PaymentDown,
    /// It works again.
    PaymentUp,
    /// A slave is killed.
    Slave,
    /// An order service is killed.
    Order,
    /// The leading master is killed.
    Master,
    /// A NATS node is killed.
    Nats,
}

/// A blow and when it falls, counted from the first order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KillAt {
    /// What.
    pub(crate) blow: Blow,
    /// When.
    pub(crate) at: Duration,
}

impl Blow {
    /// All, in the order in which they fall by default.
    pub(crate) const ALL: [Self; 6] = [
        Self::PaymentDown,
        Self::Slave,
        Self::Order,
        Self::PaymentUp,
        Self::Master,
        Self::Nats,
    ];

    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PaymentDown => "payment-down",
            Self::PaymentUp => "payment-up",
            Self::Slave => "slave",
            Self::Order => "order",
            Self::Master => "master",
            Self::Nats => "nats",
        }
    }
}

impl FromStr for KillAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (role, time) = text
            .split_once('=')
            .ok_or("write ROLE=TIME, for example slave=8s")?;
        let named = |blow: &Blow| blow.name() == role.trim();
        let blow = Blow::ALL.into_iter().find(named).ok_or_else(|| {
            let names = Blow::ALL.map(Blow::name).join(", ");
            format!("{role:?} is no role: write one of {names}")
        })?;
        let at = humantime::parse_duration(time.trim()).map_err(|error| {
            format!("{time:?} is no time ({error}): write \"8s\" or \"1500ms\"")
        })?;
        Ok(Self { blow, at })
    }
}

impl fmt::Display for KillAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={}",
            self.blow.name(),
            humantime::format_duration(self.at)
        )
    }
}
