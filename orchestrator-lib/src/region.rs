//! This node's region in the registry of codes: which code its transactions' ids get, and whether
//! registry, region and code agree (R19).

use ring_core::id::RegionCode;

use crate::{Config, config::ConfigError};

impl Config {
    /// The code in the ids of transactions that are started here; zero is none.
    #[must_use]
    pub fn code(&self) -> RegionCode {
        let said = RegionCode::new(self.region_code).unwrap_or_default();
        self.regions.code(&self.region).unwrap_or(said)
    }

    /// What is wrong with code and registry.
    pub(crate) fn region_mistake(&self) -> Option<ConfigError> {
        let Some(said) = RegionCode::new(self.region_code) else {
            return Some(ConfigError::RegionCode(self.region_code));
        };
        if self.regions.is_empty() {
            return None;
        }
        let Some(code) = self.regions.code(&self.region) else {
            let text = format!(
                "{} has no code there: register it everywhere first",
                self.region
            );
            return Some(ConfigError::Regions(text));
        };
        let differs = said.value() != 0 && said != code;
        differs.then(|| {
            let (region, code, said) = (&self.region, code.value(), said.value());
            let text = format!("{region} has the code {code} there, region_code says {said}");
            ConfigError::Regions(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(code: u16, regions: &str) -> Config {
        let mut config = Config::new("eu", "main", "orders", "o-1", "postgres://h/d").unwrap();
        config.region_code = code;
        config.regions = regions.parse().unwrap();
        config
    }

    #[test]
    fn the_own_region_has_the_code_that_the_registry_says() {
        assert_eq!(config(0, "").code().value(), 0);
        assert_eq!(config(3, "").code().value(), 3);
        assert_eq!(config(0, "eu=7,us=3").code().value(), 7);
        for (code, regions, said) in [
            (
                3,
                "eu=7,us=3",
                "eu has the code 7 there, region_code says 3",
            ),
            (0, "us=3", "eu has no code there"),
            (4096, "", "must be below 4096"),
        ] {
            let error = config(code, regions).check().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(config(7, "eu=7,us=3").check().is_ok());
    }
}
