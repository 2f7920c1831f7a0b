//! The studentised bootstrap of the difference between two shares, at several quantiles at once.

use super::side::{Excess, Side};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// What is resampled for one quantile: the excess of both sides.
pub(super) struct Statistic {
    pub(super) excess: [Excess; 2],
    pub(super) samples: [f64; 2],
}

/// Draws of the statistic at each quantile, from the same resampled units.
pub(super) struct Draws {
    /// By quantile, in the order drawn.
    drawn: Vec<Vec<f64>>,
    /// By quantile, ascending.
    sorted: Vec<Vec<f64>>,
}

impl Draws {
    pub(super) fn new(sides: &[Side<'_>; 2], of: &[Statistic], draws: u32, seed: u64) -> Self {
        let mut drawn = vec![Vec::with_capacity(draws as usize); of.len()];
        let units = [0, 1].map(|side| of.first().map_or(0, |one| one.excess[side].of.len()));
        let few = [sides[0].has_few(), sides[1].has_few()];
        let mut random = Pcg64::seed_from_u64(seed);
        let mut weights = [0, 1].map(|side| {
            let count: usize = units[side];
            vec![0.0; if few[side] { count * count } else { count }]
        });
        for _ in 0..draws {
            for (side, few) in weights.iter_mut().zip(few) {
                if few {
                    deviates(side, &mut random);
                } else {
                    resample(side, &mut random);
                }
            }
            for (statistic, drawn) in of.iter().zip(&mut drawn) {
                drawn.push(statistic.studentised(&weights, few));
            }
        }
        let mut sorted = drawn.clone();
        sorted.iter_mut().for_each(|column| column.sort_unstable_by(f64::total_cmp));
        Self { drawn, sorted }
    }

    /// The two-sided p of a statistic seen at a quantile: twice the smaller tail.
    pub(super) fn p_value(&self, quantile: usize, seen: f64) -> f64 {
        if seen == 0.0 {
            return 1.0;
        }
        let column = &self.sorted[quantile];
        let below = column.partition_point(|drawn| *drawn <= seen);
        let above = column.len() - column.partition_point(|drawn| *drawn < seen);
        let tail = (below.min(above) + 1) as f64 / (column.len() + 1) as f64;
        (2.0 * tail).min(1.0)
    }

    /// How far the statistic reaches below and above zero, leaving out `alpha` / 2 on either side.
    pub(super) fn critical(&self, quantile: usize, alpha: f64) -> (f64, f64) {
        let column = &self.sorted[quantile];
        // The rank whose p-value is just above alpha: what reaches beyond it is refuted.
        let out = libm::floor(alpha / 2.0 * (column.len() + 1) as f64) as usize;
        let out = out.saturating_sub(1).min(column.len().saturating_sub(1));
        match (column.get(out), column.get(column.len().wrapping_sub(out + 1))) {
            (Some(low), Some(high)) => (-low.min(0.0), high.max(0.0)),
            _ => (f64::INFINITY, f64::INFINITY),
        }
    }

    /// For each quantile, the p-values that its own draws have among themselves.
    pub(super) fn p_values(&self) -> Vec<Vec<f64>> {
        let column = |(drawn, sorted): (&Vec<f64>, &Vec<f64>)| {
            let all = sorted.len() as f64;
            let p = |one: &f64| {
                let below = sorted.partition_point(|other| other <= one);
                let above = sorted.len() - sorted.partition_point(|other| other < one);
                (2.0 * below.min(above) as f64 / all).min(1.0)
            };
            drawn.iter().map(p).collect()
        };
        self.drawn.iter().zip(&self.sorted).map(column).collect()
    }
}

impl Statistic {
    /// The difference of the shares B − A in standard errors, after resampling.
    fn studentised(&self, weights: &[Vec<f64>; 2], few: [bool; 2]) -> f64 {
        let [a, b] = [0, 1].map(|side| {
            let excess = &self.excess[side];
            let samples = self.samples[side];
            let (shift, variance) = if few[side] {
                normal(excess, &weights[side])
            } else {
                reweighted(excess, &weights[side], samples)
            };
            (shift / samples, variance / (samples * samples))
        });
        (b.0 - a.0) / (a.1 + b.1).sqrt().max(f64::MIN_POSITIVE)
    }
}

/// How often each of `weights.len()` units is drawn when as many are drawn with replacement.
fn resample(weights: &mut [f64], random: &mut Pcg64) {
    weights.fill(0.0);
    let units = weights.len() as u128;
    for _ in 0..weights.len() {
        // The upper half of a product is uniform to within 2^-58.
        let index = ((u128::from(random.next_u64()) * units) >> 64) as usize;
        weights[index] += 1.0;
    }
}

/// The sum of resampled units and its variance. The variance is that of the original share: the
/// one of the real statistic does not follow the number of late packets either.
fn reweighted(excess: &Excess, weights: &[f64], samples: f64) -> (f64, f64) {
    let units = excess.of.len() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    for (weight, one) in weights.iter().zip(&excess.of) {
        sum += weight * one;
        squares += weight * one * one;
    }
    let binomial = |share: f64| samples * share * (1.0 - share);
    let share = excess.share + sum / samples;
    let own = binomial(excess.share);
    if binomial(share) <= 0.0 {
        return (sum, excess.effect * own);
    }
    let variance = (squares - sum * sum / units) * units / (units - 1.0);
    (sum, variance.max(0.25) / binomial(share) * own)
}

/// Repetitions, and blocks of a run that drifts, are few: drawing from three with replacement leaves one of them alone every ninth
/// time. They are drawn from the normal law with the covariance between quantiles that they show,
/// so that the statistic follows Student's t with as many degrees of freedom as there are (Welch's
/// where the sides differ): each drawn one is a sum of all, weighted by normal deviates.
fn normal(excess: &Excess, weights: &[f64]) -> (f64, f64) {
    let units = excess.of.len() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    for row in weights.chunks_exact(excess.of.len().max(1)) {
        let drawn: f64 = row.iter().zip(&excess.of).map(|(weight, one)| weight * one).sum();
        sum += drawn;
        squares += drawn * drawn;
    }
    // Sums of that many deviations, of which one degree of freedom is the mean.
    let scale = 1.0 / (units - 1.0);
    let variance = (squares - sum * sum / units).max(0.0) * units / (units - 1.0);
    (sum * scale.sqrt(), variance * scale)
}

/// Standard normal deviates (Box and Muller 1958).
fn deviates(weights: &mut [f64], random: &mut Pcg64) {
    let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    for weight in weights {
        let radius = libm::sqrt(-2.0 * libm::log(uniform()));
        *weight = radius * libm::cos(std::f64::consts::TAU * uniform());
    }
}
