//! The mean of a run and how sure it is, although successive packets are alike.

use super::Probability;
use super::grid::Grid;
use super::student::critical;
use serde::{Deserialize, Serialize};

/// Batches are merged in pairs when there are so many, so that 16 to 32 are complete. Fewer than ten widen the
/// interval, more than thirty gain nothing (Schmeiser 1982, *Operations Research* 30, p. 556), and the fewer, the
/// longer the dependence that they cover.
const MAX_BATCHES: u64 = 32;

/// A mean with its confidence interval, in nanoseconds, rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mean {
    /// The exact sum of all samples divided by their number.
    pub value: i64,
    /// The true mean is at least this; `None` with fewer than two batches.
    pub low: Option<i64>,
    /// The true mean is at most this; `None` with fewer than two batches.
    pub high: Option<i64>,
}

/// Exact sums of successive samples in batches of equal length.
///
/// The means of batches that are longer than the dependence between samples are independent, so Student's t of
/// their spread gives the interval (batch means; Law, *Simulation Modeling and Analysis*, section 9.5.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchMeans {
    sums: Vec<i128>,
    grid: Grid,
    total: i128,
    count: u64,
}

impl Default for BatchMeans {
    fn default() -> Self {
        Self::behind(0)
    }
}

impl BatchMeans {
    /// Sums of the samples behind so many others, to be [added](Self::append) to the sums of those.
    #[must_use]
    pub fn behind(samples: u64) -> Self {
        let grid = Grid::behind(samples, MAX_BATCHES);
        Self { sums: vec![0; grid.held], grid, total: 0, count: 0 }
    }

    /// Records the next samples in the order of arrival.
    pub fn record_all(&mut self, values_ns: &[i64]) {
        let mut rest = values_ns;
        while !rest.is_empty() {
            if self.grid.left == 0 {
                self.begin();
            }
            let left = self.grid.left;
            let now = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
            let (batch, later) = rest.split_at(now);
            let sum: i128 = batch.iter().map(|&value_ns| i128::from(value_ns)).sum();
            if let Some(last) = self.sums.last_mut() {
                *last += sum;
            }
            self.total += sum;
            self.count += batch.len() as u64;
            self.grid.left -= batch.len() as u64;
            rest = later;
        }
    }

    fn begin(&mut self) {
        if self.grid.is_full() {
            self.double();
        }
        self.sums.push(0);
        self.grid.begin();
    }

    fn double(&mut self) {
        for (place, into) in self.grid.double().enumerate() {
            let sum = std::mem::take(&mut self.sums[place]);
            self.sums[into] += sum;
        }
        self.sums.resize(self.grid.held, 0);
    }

    /// Adds the samples that follow, which were recorded [behind](Self::behind) as many as were recorded here.
    pub fn append(&mut self, later: &Self) {
        while self.grid.length < later.grid.length {
            self.double();
        }
        let from = (later.grid.first - self.grid.first) as usize;
        self.sums.resize(from + later.sums.len(), 0);
        for (sum, later) in self.sums[from..].iter_mut().zip(&later.sums) {
            *sum += later;
        }
        self.grid.append(later.grid);
        self.total += later.total;
        self.count += later.count;
    }

    /// The mean of all samples; `None` without any.
    #[must_use]
    pub fn mean(&self, confidence: Probability) -> Option<Mean> {
        let count = i128::from(self.count);
        // Half of the divisor added first rounds to the nearest.
        let value = i64::try_from((2 * self.total + count).checked_div_euclid(2 * count)?).ok()?;
        let mean = self.total as f64 / self.count as f64;
        let reach = self.half_width(mean, confidence);
        let bound = |sign: f64| reach.map(|reach| (mean + sign * reach).round() as i64);
        Some(Mean { value, low: bound(-1.0), high: bound(1.0) })
    }

    fn half_width(&self, mean: f64, confidence: Probability) -> Option<f64> {
        let complete = &self.sums[..self.grid.complete()];
        let alpha = confidence.complement_f64();
        if complete.len() < 2 || alpha == 0.0 {
            return None;
        }
        let (length, batches) = (self.grid.length as f64, complete.len() as f64);
        let squares: f64 = complete.iter().map(|&sum| (sum as f64 / length - mean).powi(2)).sum();
        let variance = squares / (batches - 1.0);
        Some(critical(alpha, batches - 1.0) * (variance / batches).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_pcg::Pcg64Mcg;
    use rand_pcg::rand_core::{Rng, SeedableRng};

    fn mean_of(values_ns: &[i64]) -> Option<Mean> {
        let mut means = BatchMeans::default();
        // However they come.
        for part in values_ns.chunks(7) {
            means.record_all(part);
        }
        means.mean(Probability::P95)
    }

    #[test]
    fn sums_are_exact() {
        assert_eq!(mean_of(&[]), None);
        assert_eq!(mean_of(&[5]), Some(Mean { value: 5, low: None, high: None }));
        assert_eq!(mean_of(&[3, 4]).unwrap().value, 4);
        assert_eq!(mean_of(&[-3, -4]).unwrap().value, -3);
        assert_eq!(mean_of(&[i64::MAX; 100]).unwrap().value, i64::MAX);
        let constant = mean_of(&[1_000; 10_000]).unwrap();
        assert_eq!((constant.low, constant.high), (Some(1_000), Some(1_000)));
    }

    proptest! {
        #[test]
        fn stretches_add_up_in_any_grouping(
            values in prop::collection::vec(any::<i64>(), 0..300),
            [first, second] in any::<[prop::sample::Index; 2]>(),
        ) {
            let [first, second] = [first, second].map(|cut| cut.index(values.len() + 1));
            let (first, second) = (first.min(second), first.max(second));
            let stretch = |from: usize, to: usize| {
                let mut stretch = BatchMeans::behind(from as u64);
                stretch.record_all(&values[from..to]);
                stretch
            };
            let [a, b, c] = [(0, first), (first, second), (second, values.len())]
                .map(|(from, to)| stretch(from, to));
            let whole = stretch(0, values.len());
            let (mut left, mut right) = (a.clone(), b.clone());
            left.append(&b);
            left.append(&c);
            prop_assert_eq!(&left, &whole);
            right.append(&c);
            let mut left = a;
            left.append(&right);
            prop_assert_eq!(&left, &whole);
        }
    }

    /// Failed where the first of them has no samples and lies behind an odd number of batches.
    #[test]
    fn a_stretch_without_samples_takes_any_that_follows() {
        let values: Vec<i64> = (0..300).collect();
        for from in 0..values.len() {
            for to in from..=values.len() {
                let mut later = BatchMeans::behind(from as u64);
                later.record_all(&values[from..to]);
                let mut stretch = BatchMeans::behind(from as u64);
                stretch.append(&later);
                assert_eq!(stretch, later, "{from} to {to}");
            }
        }
    }

    /// Share of runs whose interval holds the true mean, in percent. Each value keeps the part `kept` of the deviation
    /// of the one before.
    fn coverage_percent(kept: f64, samples: usize) -> f64 {
        const RUNS: u64 = 1_000;
        let mut random = Pcg64Mcg::seed_from_u64(0x6d65_616e);
        let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        let holds = (0..RUNS).filter(|_| {
            let mut deviation = 0.0;
            let values: Vec<i64> = (0..samples + 1_000)
                .map(|_| {
                    deviation = kept * deviation + 1e6 * uniform();
                    deviation as i64
                })
                .skip(1_000)
                .collect();
            let mean = mean_of(&values).unwrap();
            mean.low.is_some_and(|low| low <= 0) && mean.high.is_some_and(|high| high >= 0)
        });
        holds.count() as f64 / RUNS as f64 * 100.0
    }

    // The binomial error of 1,000 runs is 0.7 %.
    #[test]
    #[ignore = "simulation: make test-simulations runs it"]
    fn the_interval_holds_the_mean() {
        for (kept, samples) in [(0.0, 3_000), (0.9, 3_000), (0.99, 30_000)] {
            let percent = coverage_percent(kept, samples);
            assert!((92.5..=97.5).contains(&percent), "{kept}: {percent} %");
        }
    }
}
