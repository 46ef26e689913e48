//! The Prometheus recorder of a binary. A library that links ours keeps its own.

use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};

use super::{Kind, METRICS};

/// Upper bounds in seconds: a NATS round trip on one machine to a Redis that hangs.
const SECONDS: [f64; 12] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
];

/// Without a listener of the exporter's own, histograms grow until this is run.
const UPKEEP: Duration = Duration::from_secs(5);

/// The numbers, as text for `/metrics`.
#[derive(Clone)]
pub struct Numbers(PrometheusHandle);

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Numbers")
    }
}

impl Numbers {
    /// In Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }
}

/// Installs the process's recorder and its upkeep. For binaries, within a tokio runtime.
///
/// # Errors
/// When one is installed already.
pub fn install_recorder() -> Result<Numbers, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets(&SECONDS)?
        .install_recorder()?;
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => describe_counter!(metric.name, metric.says),
            Kind::Gauge => describe_gauge!(metric.name, metric.says),
            Kind::Histogram => describe_histogram!(metric.name, metric.says),
        }
    }
    let upkeep = handle.clone();
    drop(tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            upkeep.run_upkeep();
        }
    }));
    Ok(Numbers(handle))
}
