//! Few units: repetitions, or how slowly a run changes.
//!
//! Their quantiles are compared as latencies. Shares beyond a latency would not do: where
//! repetitions differ by more than the packets within them, all or none of a repetition are beyond,
//! and a difference of a half looks like one of a hundredth.

use super::draws::deviates;
use rand_pcg::Pcg64;
use tailtrim_stats::student::{both_tails, critical};

/// The logarithm of a side's quantile, and what its units tell of how it varies.
#[derive(Debug, Clone)]
pub(super) struct LogQuantile {
    mean: f64,
    /// Deviations of the units; they add up to zero.
    of: Vec<f64>,
    /// The stamps' resolution there: what differs by less ties in all units.
    resolution: f64,
}

impl LogQuantile {
    /// Of repetitions, each of which has a level of its own.
    pub(super) fn repetitions(levels: &[f64], resolution: f64) -> Self {
        let mean = levels.iter().sum::<f64>() / levels.len().max(1) as f64;
        Self { mean, of: levels.iter().map(|level| level - mean).collect(), resolution }
    }

    /// Of one run that drifts, with so large a half wave over its blocks: as a random walk goes on,
    /// its level differs from that of the next run with as much variance as these two units have.
    ///
    /// Of a walk that ends with variance σ², the mean varies by σ² / 3, the integral of a half wave
    /// by σ² / (2 π²).
    pub(super) fn walk(mean: f64, half_wave: f64, resolution: f64) -> Self {
        let step = half_wave * std::f64::consts::PI * (2.0_f64 / 3.0).sqrt();
        Self { mean, of: vec![step, -step], resolution }
    }

    fn freedom(&self) -> f64 {
        self.of.len() as f64 - 1.0
    }

    /// Variance of the mean.
    fn variance(&self) -> f64 {
        let squares: f64 = self.of.iter().map(|one| one * one).sum();
        squares / self.of.len() as f64 / self.freedom() + self.resolution.powi(2) / 12.0
    }
}

/// The levels of both sides.
#[derive(Debug, Clone)]
pub(super) struct Few {
    pub(super) sides: [LogQuantile; 2],
}

impl Few {
    fn apart(&self) -> f64 {
        self.sides[1].mean - self.sides[0].mean
    }

    fn error(&self) -> f64 {
        let [a, b] = [0, 1].map(|side| self.sides[side].variance());
        (a + b).sqrt().max(f64::MIN_POSITIVE)
    }

    /// Degrees of freedom of the difference: Welch's (1947, *Biometrika* 34, p. 32), who allows for
    /// the error of the variances. Satterthwaite's, of the year before, does not: three
    /// repetitions a side gave 3.5 % false verdicts for 5 %. A single degree is too few for it.
    fn freedom(&self) -> f64 {
        let v = [0, 1].map(|side| self.sides[side].variance());
        let of = [0, 1].map(|side| self.sides[side].freedom());
        let more = if of[0].min(of[1]) < 1.5 { 0.0 } else { 2.0 };
        let part = |side: usize| (v[side] / (v[0] + v[1])).powi(2) / (of[side] + more);
        let freedom = 1.0 / (part(0) + part(1)) - more;
        if freedom.is_finite() { freedom.max(1.0) } else { 1.0 }
    }

    /// The distance of B / A above `1 + margin`, or (negative) below its inverse, in standard errors.
    pub(super) fn distance(&self, margin: f64) -> f64 {
        let (apart, margin) = (self.apart(), libm::log1p(margin));
        let beyond = (apart.abs() - margin).max(0.0);
        beyond.copysign(apart) / self.error()
    }

    /// Two-sided p-value of so many standard errors.
    pub(super) fn p_value(&self, distance: f64) -> f64 {
        both_tails(distance, self.freedom())
    }

    /// The standard errors that are exceeded with probability `alpha`.
    pub(super) fn critical(&self, alpha: f64) -> f64 {
        critical(alpha, self.freedom())
    }

    /// The same of `runs` repetitions a side instead of `now`.
    pub(super) fn critical_of(&self, alpha: f64, now: u64, runs: u64) -> f64 {
        let each = (self.freedom() / (now as f64 - 1.0).max(0.5)).min(2.0);
        critical(alpha, each * (runs as f64 - 1.0))
    }

    /// The ratios within so many standard errors.
    pub(super) fn interval(&self, reach: f64) -> [f64; 2] {
        [-1.0, 1.0].map(|sign| libm::exp(self.apart() + sign * reach * self.error()))
    }

    /// The difference in standard errors, of units drawn from the normal law with the covariance
    /// between quantiles that they show: each drawn one is a sum of all, weighted by normal
    /// deviates (`rows`, of each side). Drawing from three with replacement would leave one alone every
    /// ninth time.
    ///
    /// Few units cannot show how many quantiles go their own way: three a side leave four dimensions
    /// to all of them. A part of the variance, one over these, is drawn for each quantile alone;
    /// without, three repetitions a side gave 6.0 % false verdicts for 5 % (2,000 comparisons).
    pub(super) fn draw(&self, rows: [&[f64]; 2], random: &mut Pcg64) -> f64 {
        let dimensions: f64 = self.sides.iter().map(LogQuantile::freedom).sum();
        let alone = 1.0 / dimensions.max(1.0);
        let [a, b] = [0, 1].map(|side| {
            let of = &self.sides[side].of;
            let units = of.len() as f64;
            let deviation = of.iter().map(|one| one * one).sum::<f64>().sqrt();
            let mut own = vec![0.0; of.len()];
            deviates(&mut own, random);
            let (mut sum, mut squares) = (0.0, 0.0);
            for (row, own) in rows[side].chunks_exact(of.len().max(1)).zip(&own) {
                let common: f64 = row.iter().zip(of).map(|(weight, one)| weight * one).sum();
                let drawn = (1.0 - alone).sqrt() * common + alone.sqrt() * deviation * own;
                sum += drawn;
                squares += drawn * drawn;
            }
            let variance = (squares - sum * sum / units).max(0.0) / (units - 1.0);
            (sum / units, variance / units)
        });
        (b.0 - a.0) / (a.1 + b.1).sqrt().max(f64::MIN_POSITIVE)
    }

    /// Units of a side.
    pub(super) fn units(&self, side: usize) -> usize {
        self.sides[side].of.len()
    }
}
