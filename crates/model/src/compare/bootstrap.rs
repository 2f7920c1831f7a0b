//! The studentised bootstrap of the difference between two shares, at several quantiles at once:
//! it tells how they go together.

use super::side::Excess;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// What is resampled for one quantile: the excess of both sides.
pub(super) struct Statistic {
    pub(super) excess: [Excess; 2],
    pub(super) samples: [f64; 2],
}

/// Draws of the statistic at each quantile, from the same resampled units: how much neighbouring
/// quantiles say the same. What each alone may reach is Student's t (see [`Region`](super::region)).
pub(super) struct Draws {
    /// By quantile, in the order drawn.
    drawn: Vec<Vec<f64>>,
}

/// How often each unit is drawn, or the normal deviates of few, for each number of units that the
/// quantiles of a side have.
struct Weights {
    of: Vec<(usize, bool, Vec<f64>)>,
}

impl Draws {
    pub(super) fn new(of: &[Statistic], draws: u32, seed: u64) -> Self {
        let mut drawn = vec![Vec::with_capacity(draws as usize); of.len()];
        let mut random = Pcg64::seed_from_u64(seed);
        let mut weights = [0, 1].map(|side| Weights::new(of.iter().map(|one| &one.excess[side])));
        for _ in 0..draws {
            for side in &mut weights {
                side.draw(&mut random);
            }
            for (statistic, drawn) in of.iter().zip(&mut drawn) {
                drawn.push(statistic.studentised(&weights));
            }
        }
        Self { drawn }
    }

    /// For each quantile, the p-values that its own draws have among themselves.
    pub(super) fn p_values(&self) -> Vec<Vec<f64>> {
        let column = |drawn: &Vec<f64>| {
            let mut sorted = drawn.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let all = sorted.len() as f64;
            let p = |one: &f64| {
                let below = sorted.partition_point(|other| other <= one);
                let above = sorted.len() - sorted.partition_point(|other| other < one);
                (2.0 * below.min(above) as f64 / all).min(1.0)
            };
            drawn.iter().map(p).collect()
        };
        self.drawn.iter().map(column).collect()
    }
}

impl Statistic {
    /// The difference of the shares B − A in standard errors, after resampling.
    fn studentised(&self, weights: &[Weights; 2]) -> f64 {
        let [a, b] = [0, 1].map(|side| {
            let excess = &self.excess[side];
            let samples = self.samples[side];
            let weights = weights[side].of(excess);
            let (shift, variance) = if excess.few {
                normal(excess, weights)
            } else {
                reweighted(excess, weights, samples)
            };
            (shift / samples, variance / (samples * samples))
        });
        (b.0 - a.0) / (a.1 + b.1).sqrt().max(f64::MIN_POSITIVE)
    }
}

impl Weights {
    fn new<'a>(excesses: impl Iterator<Item = &'a Excess>) -> Self {
        let mut of: Vec<(usize, bool, Vec<f64>)> = Vec::new();
        for excess in excesses {
            let (units, few) = (excess.of.len(), excess.few);
            if !of.iter().any(|known| (known.0, known.1) == (units, few)) {
                of.push((units, few, vec![0.0; if few { units * units } else { units }]));
            }
        }
        Self { of }
    }

    fn draw(&mut self, random: &mut Pcg64) {
        for (_, few, weights) in &mut self.of {
            if *few {
                deviates(weights, random);
            } else {
                resample(weights, random);
            }
        }
    }

    fn of(&self, excess: &Excess) -> &[f64] {
        let asked = (excess.of.len(), excess.few);
        let found = self.of.iter().find(|known| (known.0, known.1) == asked);
        found.map_or(&[], |known| &known.2)
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

/// Repetitions, and blocks of a run that drifts, are few: drawing from three with replacement leaves
/// one of them alone every ninth time. They are drawn from the normal law with the covariance between quantiles that they show,
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
