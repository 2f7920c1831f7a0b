//! A distribution in six numbers.

use crate::{Probability, Ranked};
use serde::Serialize;

/// The middle and the ends of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Smallest value.
    pub min: Option<i64>,
    /// Median.
    pub p50: Option<i64>,
    /// p99 by nearest rank.
    pub p99: Option<i64>,
    /// p99.9 by nearest rank.
    pub p999: Option<i64>,
    /// Largest value.
    pub max: Option<i64>,
    /// p75 − p25.
    pub iqr: Option<i64>,
}

impl Spread {
    /// That of some values.
    #[must_use]
    pub fn of(values: &Ranked) -> Self {
        Self {
            min: values.at_rank(1),
            p50: values.quantile(Probability::P50),
            p99: values.quantile(Probability::P99),
            p999: values.quantile(Probability::P99_9),
            max: values.at_rank(values.count()),
            iqr: values.iqr(),
        }
    }
}
