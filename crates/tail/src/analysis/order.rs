//! Check of the order of captures: packets leave after they enter.

use super::Analysis;
use crate::summary::{Summary, all_do, grouped};
use crate::times;
use tailtrim_stats::Probability;

/// Captures of which many packets left before they entered, or all when they entered, or which go two ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Every packet has the same stamp on both sides.
    #[error(
        "{} the same time stamp in both captures: ingress and egress are copies of one capture",
        all_do(*samples, "packet", ["has", "have"])
    )]
    Same {
        /// Matched packets.
        samples: u64,
    },
    /// Packets of both captures go two ways.
    #[error("{text}", text = text.split(':').next().unwrap_or_default())]
    TwoDirections {
        /// The warning.
        text: String,
    },
    /// Many packets left before they entered.
    #[error(
        "{} of {} packets left before they entered (median latency {}): {}the clocks of the taps disagree",
        grouped(*negative), grouped(*samples), times::text(*median_ns),
        if *median_ns > 0 { "" } else { "ingress and egress are swapped, or " }
    )]
    Negative {
        /// Packets whose latency is negative.
        negative: u64,
        /// Matched packets.
        samples: u64,
        /// The median of their latencies.
        median_ns: i64,
    },
}

/// Packets of which one, or more, has a negative latency, where p99 is wrong too: the clocks make others late by as much.
const MANY: u64 = 100;

impl Analysis {
    /// Whether packets left after they entered. A few that did not are the taps' clocks, and a warning.
    ///
    /// # Errors
    /// [`OrderError`] where many did not, all latencies are 0, or packets go two ways.
    pub fn check_order(&self) -> Result<(), OrderError> {
        let Summary { samples, latency_ns, warnings, clock_fit, .. } = &self.summary;
        if let Some(warning) = warnings.iter().find(|one| one.code == "two_directions") {
            return Err(OrderError::TwoDirections { text: warning.text.clone() });
        }
        let warned = warnings.iter().find(|warning| warning.code == "not_positive");
        let not_positive = warned.map_or(0, |warning| warning.count);
        // The clocks are told as wrong already, unless no packet at all left after it entered. With a correction the
        // fastest packets may have no latency.
        let told = warnings.iter().any(|warning| warning.invalidates) && not_positive < *samples;
        if clock_fit.is_some() || told {
            return Ok(());
        }
        if latency_ns.min == Some(0) && latency_ns.max == Some(0) {
            return Err(OrderError::Same { samples: *samples });
        }
        let negative = samples - self.latencies.count_above(-1);
        let Some(median_ns) = self.latencies.quantile(Probability::P50) else { return Ok(()) };
        if negative * MANY < *samples {
            return Ok(());
        }
        Err(OrderError::Negative { negative, samples: *samples, median_ns })
    }
}
