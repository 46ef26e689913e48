//! What a participant is told. It is no part of the ring: only a database and an address.

use std::{net::SocketAddr, time::Duration};

use ring_shell::config::{ConfigError, Settings};
use secrecy::SecretString;

use super::{inventory, payment};
use crate::{Log, Logged, Service, log_settings};

/// Most pieces that the shelf holds of a sku that nobody has counted.
const STOCK: u32 = 100_000;

/// A participant's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Inventory or payment.
    pub service: Service,
    /// `http.listen`
    pub listen: SocketAddr,
    /// `database.url`
    pub database: SecretString,
    /// `shop.stock`: pieces of each sku at the beginning.
    pub stock: u32,
    log: Log,
}

impl Config {
    /// Reads it.
    ///
    /// # Errors
    /// Every mistake at once.
    pub fn read(mut settings: Settings, service: Service) -> Result<Self, ConfigError> {
        let s = &mut settings;
        let listen = s.needed("http.listen", "127.0.0.1:8080");
        let database = s.needed("database.url", "postgres://shop:secret@localhost/payment");
        let stock = s.or("shop.stock", STOCK);
        let log = log_settings(s);
        // Answers get two seconds; there is nothing else to hand over.
        let _: Duration = s.or("shutdown.grace", Duration::from_secs(2));
        let read = || {
            Some(Self {
                service,
                listen: listen?,
                database: database?,
                stock,
                log,
            })
        };
        let (read, _) = settings.finish(read())?;
        // `finish` has reported what is missing.
        read.ok_or(ConfigError { mistakes: vec![] })
    }

    pub(super) fn name(&self) -> &'static str {
        match self.service {
            Service::Payment => "shop-payment",
            Service::Inventory | Service::Order => "shop-inventory",
        }
    }

    pub(super) fn schema(&self) -> &'static str {
        match self.service {
            Service::Payment => payment::SCHEMA,
            Service::Inventory | Service::Order => inventory::SCHEMA,
        }
    }
}

impl Logged for Config {
    fn log(&self) -> Log {
        self.log.clone()
    }
}
