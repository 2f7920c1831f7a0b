//! Check of the order of captures: packets leave after they enter.

use crate::summary::{Summary, grouped};
use tailtrim_stats::Probability;

/// Captures whose packets mostly left before they entered, or all when they entered, or go two ways.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Every packet has the same stamp on both sides.
    #[error(
        "all {} packets have the same time stamp in both captures: ingress and egress are copies of one capture",
        grouped(*samples)
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
    /// Most packets left before they entered.
    #[error(
        "{} of {} packets left before they entered (median latency {median_ns} ns): ingress and egress are swapped, \
         or the clocks of the taps disagree",
        grouped(*not_positive), grouped(*samples)
    )]
    Negative {
        /// Packets whose latency is negative.
        not_positive: u64,
        /// Matched packets.
        samples: u64,
        /// The median of their latencies.
        median_ns: i64,
    },
}

impl Summary {
    /// Whether most packets left after they entered. A few that did not are the taps' clocks, and a warning.
    ///
    /// # Errors
    /// [`OrderError`] where the median latency is negative, all are 0, or packets go two ways.
    pub fn check_order(&self) -> Result<(), OrderError> {
        let Self { samples, latency_ns, warnings, .. } = self;
        if let Some(warning) = warnings.iter().find(|one| one.code == "two_directions") {
            return Err(OrderError::TwoDirections { text: warning.text.clone() });
        }
        let warned = warnings.iter().find(|warning| warning.code == "not_positive");
        let not_positive = warned.map_or(0, |warning| warning.count);
        // The clocks are told as wrong already, unless no packet at all left after it entered. With a correction the
        // fastest packets may have no latency.
        let told = warnings.iter().any(|warning| warning.invalidates) && not_positive < *samples;
        if self.clock_fit.is_some() || told {
            return Ok(());
        }
        let median = latency_ns.quantiles.iter().find(|quantile| quantile.p == Probability::P50);
        if latency_ns.min == Some(0) && latency_ns.max == Some(0) {
            return Err(OrderError::Same { samples: *samples });
        }
        let Some(median_ns) = median.and_then(|quantile| quantile.value).filter(|ns| *ns < 0)
        else {
            return Ok(());
        };
        Err(OrderError::Negative { not_positive, samples: *samples, median_ns })
    }
}
