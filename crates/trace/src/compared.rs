//! Clocks of two NICs, compared all along a run: stamps of the one become times of the other, within a bound that the
//! readings prove.
//!
//! Each clock is read against the system's, the reference immediately before and after the other one. So the system's
//! clock only bridges these moments, and may be slewed or set between two comparisons. Between comparisons, and behind
//! the last one, the difference is taken to go on evenly; what the next comparison shows of that is part of the bound.

use crate::phc::{DRIFT_PPM, Offset, Step};

/// Without a comparison for longer, those before and after say little of what the clocks did meanwhile: eight times
/// the interval at which they are made.
pub const LONGEST_GAP_NS: i64 = 2_000_000_000;
/// Intervals that the line ahead spans: over one only, errors of its ends would turn it most.
const BASELINE: usize = 4;
/// Comparisons from which a bound is known: four that lines foretell.
pub const FEWEST: usize = 2 * BASELINE + 1;
/// A converted time is rounded.
const ROUNDED_NS: i64 = 1;

/// A clock compared with the reference at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// When, by the compared clock.
    pub at_ns: i64,
    /// The compared clock minus the reference.
    pub ahead_ns: i64,
    /// Error bound, either way.
    pub error_ns: i64,
}

impl Comparison {
    /// Makes one of three readings: the reference, the compared clock, the reference again. Whatever the system's clock or
    /// the reference did between its two readings is part of the error.
    #[must_use]
    pub fn of(before: Offset, compared: Offset, after: Offset) -> Self {
        let grown_ns = after.offset_ns.saturating_sub(before.offset_ns);
        let reference = Line([(before.at_ns, before.offset_ns), (after.at_ns, after.offset_ns)]);
        let known_ns = compared.error_ns.saturating_add(before.error_ns.max(after.error_ns));
        Self {
            at_ns: compared.at_ns.saturating_add(compared.offset_ns),
            ahead_ns: compared.offset_ns.saturating_sub(reference.at(compared.at_ns)),
            error_ns: known_ns.saturating_add(grown_ns.saturating_abs()),
        }
    }
}

/// The line through two points, as (time, value).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line([(i64, i64); 2]);

impl Line {
    fn at(self, ns: i64) -> i64 {
        let [(from, value), (to, end)] =
            self.0.map(|(at, value)| (i128::from(at), i128::from(value)));
        if to == from {
            return self.0[1].1;
        }
        let now = value + ((i128::from(ns) - from) * (end - value)).div_euclid(to - from);
        i64::try_from(now).unwrap_or(if now < 0 { i64::MIN } else { i64::MAX })
    }
}

/// A piece of the conversion: stamps of the compared clock in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    line: Line,
    from_ns: i64,
    /// Its end; `None` as long as the next comparison is still to come.
    until_ns: Option<i64>,
}

impl Piece {
    /// Whether a stamp is in its span.
    #[must_use]
    #[inline]
    pub fn has(&self, stamp_ns: i64) -> bool {
        stamp_ns >= self.from_ns && self.until_ns.is_none_or(|until_ns| stamp_ns < until_ns)
    }

    /// Whether the next comparison replaces it.
    #[must_use]
    #[inline]
    pub fn is_last(&self) -> bool {
        self.until_ns.is_none()
    }

    /// The time of the reference at a stamp of the compared clock.
    #[must_use]
    #[inline]
    pub fn of_reference(&self, stamp_ns: i64) -> i64 {
        stamp_ns.saturating_sub(self.line.at(stamp_ns))
    }
}

/// All comparisons of a clock with the reference.
#[derive(Debug, Clone, Default)]
pub struct Compared {
    /// The compared clock, and how far it is ahead.
    points: Vec<(i64, i64)>,
    /// The first one behind the last step.
    even_from: usize,
    error_ns: i64,
    missed_ns: i64,
    longest_gap_ns: i64,
    steps: Vec<Step>,
}

impl Compared {
    /// Adds the next one. Returns the step of one of the clocks that it shows.
    pub fn push(&mut self, next: Comparison) -> Option<Step> {
        self.error_ns = self.error_ns.max(next.error_ns);
        let step = self.ahead().and_then(|line| {
            let [from, to] = line.0;
            let missed_ns = next.ahead_ns.saturating_sub(line.at(next.at_ns));
            let span_ns = next.at_ns.saturating_sub(to.0).saturating_abs();
            let leverage = 1.0 + span_ns as f64 / to.0.saturating_sub(from.0).max(1) as f64;
            let explained =
                2.0 * leverage * self.error_ns as f64 + DRIFT_PPM * 1e-6 * span_ns as f64;
            if missed_ns.saturating_abs() as f64 > explained {
                let by_ns = next.ahead_ns.saturating_sub(to.1);
                return Some(Step { at_ns: next.at_ns, by_ns });
            }
            if self.points.len() > self.even_from + BASELINE {
                self.missed_ns = self.missed_ns.max(missed_ns.saturating_abs());
            }
            self.longest_gap_ns = self.longest_gap_ns.max(span_ns);
            None
        });
        if step.is_some() {
            self.even_from = self.points.len();
        }
        self.steps.extend(step);
        self.points.push((next.at_ns, next.ahead_ns));
        step
    }

    /// The line by which the clocks go on: level behind a step.
    fn ahead(&self) -> Option<Line> {
        let last = self.points.len().checked_sub(1)?;
        let first = last.saturating_sub(BASELINE).max(self.even_from);
        Some(Line([self.points[first], self.points[last]]))
    }

    /// The piece of the conversion for a stamp, by the comparisons so far; nothing without any.
    #[must_use]
    pub fn piece(&self, stamp_ns: i64) -> Option<Piece> {
        let behind = self.points.partition_point(|(at, _)| *at <= stamp_ns);
        if behind == self.points.len() {
            let line = self.ahead()?;
            return Some(Piece { line, from_ns: line.0[1].0, until_ns: None });
        }
        let line = Line([self.points[behind.saturating_sub(1)], self.points[behind]]);
        let from_ns = if behind == 0 { i64::MIN } else { self.points[behind - 1].0 };
        Some(Piece { line, from_ns, until_ns: Some(self.points[behind].0) })
    }

    /// Largest error of a converted stamp, either way; nothing where too little was compared.
    ///
    /// A comparison is off by its error. Between two of them the clocks may have run unevenly: where their pace grows or
    /// falls, or changes once, or a clock is set, the difference stays between the line through the comparisons before
    /// and that to the next one. So it is off either by as much as the former misses the next one at most. Several such
    /// changes between two comparisons hide one another in part: that counts twice.
    #[must_use]
    pub fn error_ns(&self) -> Option<i64> {
        (self.points.len() >= FEWEST && self.steps.is_empty())
            .then(|| self.error_ns.saturating_add(2 * self.missed_ns + ROUNDED_NS))
    }

    /// Number of comparisons.
    #[must_use]
    pub fn readings(&self) -> usize {
        self.points.len()
    }

    /// The largest error of a comparison, either way.
    #[must_use]
    pub fn reading_error_ns(&self) -> i64 {
        self.error_ns
    }

    /// The longest time without a comparison.
    #[must_use]
    pub fn longest_gap_ns(&self) -> i64 {
        self.longest_gap_ns
    }

    /// Jumps of one of the clocks.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Lead of the compared clock at the first and at the last comparison.
    #[must_use]
    pub fn ends_ns(&self) -> Option<[i64; 2]> {
        Some([self.points.first()?.1, self.points.last()?.1])
    }

    /// Surplus of its speed from the first comparison to the last, in millionths.
    #[must_use]
    pub fn drift_ppm(&self) -> Option<f64> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        let [span, grown] = [last.0.saturating_sub(first.0), last.1.saturating_sub(first.1)];
        (span > 0).then(|| grown as f64 / span as f64 * 1e6)
    }
}

#[cfg(test)]
mod tests;
