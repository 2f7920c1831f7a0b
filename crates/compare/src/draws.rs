//! Null distribution of the difference between two shares, at several quantiles at once, by random draws.

use super::dealt::Dealt;
use super::few::Few;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The statistic that is drawn anew for one quantile.
pub(super) enum Statistic {
    /// Blocks, dealt anew between the sides.
    Blocks(Dealt),
    /// Few units, drawn from the normal law.
    Few(Few),
}

/// Draws of the statistic at each quantile, all from the same units: how far each goes, and how
/// much neighbouring quantiles say the same.
pub(super) struct Draws {
    /// By quantile, in the order drawn.
    drawn: Vec<Vec<f64>>,
    /// The same in order of size.
    sorted: Vec<Vec<f64>>,
}

impl Draws {
    pub(super) fn new(of: &[Statistic], draws: u32, seed: u64) -> Self {
        let mut drawn = vec![Vec::with_capacity(draws as usize); of.len()];
        let mut random = Pcg64::seed_from_u64(seed);
        let mut deal = Deal::new(of);
        let mut weights = [0, 1].map(|side| Weights::new(of, side));
        for _ in 0..draws {
            deal.draw(&mut random);
            for side in &mut weights {
                side.draw(&mut random);
            }
            for (statistic, drawn) in of.iter().zip(&mut drawn) {
                let distance = match statistic {
                    Statistic::Blocks(blocks) => blocks.distance(deal.first()),
                    Statistic::Few(few) => {
                        let rows = [0, 1].map(|side| weights[side].of(few.units(side)));
                        few.draw(rows, &mut random)
                    }
                };
                drawn.push(rounded(distance));
            }
        }
        let mut sorted = drawn.clone();
        sorted.iter_mut().for_each(|column| column.sort_unstable_by(f64::total_cmp));
        Self { drawn, sorted }
    }

    /// Two-sided p-value of a distance at a quantile, from the draws that go as far or farther.
    pub(super) fn p_value(&self, quantile: usize, distance: f64) -> f64 {
        let rarer = self.tail(quantile, rounded(distance)) + 1;
        (2.0 * rarer as f64 / (self.sorted[quantile].len() + 1) as f64).min(1.0)
    }

    /// For each quantile, the p-values that its own draws have among themselves.
    pub(super) fn p_values(&self) -> Vec<Vec<f64>> {
        let of = |quantile: usize, column: &[f64]| {
            let p = |one: &f64| self.tail(quantile, *one) as f64 / column.len() as f64;
            column.iter().map(|one| (2.0 * p(one)).min(1.0)).collect()
        };
        self.drawn.iter().enumerate().map(|(quantile, column)| of(quantile, column)).collect()
    }

    /// Draws that go as far or farther, to the side where they are fewer.
    fn tail(&self, quantile: usize, distance: f64) -> usize {
        let sorted = &self.sorted[quantile];
        let below = sorted.partition_point(|other| *other <= distance);
        let above = sorted.len() - sorted.partition_point(|other| *other < distance);
        below.min(above)
    }
}

/// Equal sums of other terms are equal: counts are whole, and the same deals come again.
fn rounded(distance: f64) -> f64 {
    const DIGITS: f64 = 1e9;
    libm::round(distance * DIGITS) / DIGITS
}

/// Which units the first side gets: the same for all quantiles.
struct Deal {
    order: Vec<usize>,
    first: usize,
}

impl Deal {
    fn new(of: &[Statistic]) -> Self {
        let units = of.iter().find_map(|one| match one {
            Statistic::Blocks(blocks) => Some(blocks.units()),
            Statistic::Few(_) => None,
        });
        let (all, first) = units.unwrap_or_default();
        Self { order: (0..all).collect(), first }
    }

    fn draw(&mut self, random: &mut Pcg64) {
        let all = self.order.len();
        for index in 0..self.first {
            // The upper half of a product is uniform to within 2^-57.
            let rest = (all - index) as u128;
            let chosen = index + ((u128::from(random.next_u64()) * rest) >> 64) as usize;
            self.order.swap(index, chosen);
        }
    }

    fn first(&self) -> &[usize] {
        &self.order[..self.first]
    }
}

/// Normal deviates of few units, for each number of them that the quantiles of a side have.
struct Weights {
    of: Vec<(usize, Vec<f64>)>,
}

impl Weights {
    fn new(of: &[Statistic], side: usize) -> Self {
        let mut known: Vec<(usize, Vec<f64>)> = Vec::new();
        for statistic in of {
            let Statistic::Few(few) = statistic else { continue };
            let units = few.units(side);
            if !known.iter().any(|(same, _)| *same == units) {
                known.push((units, vec![0.0; units * units]));
            }
        }
        Self { of: known }
    }

    fn draw(&mut self, random: &mut Pcg64) {
        for (_, weights) in &mut self.of {
            deviates(weights, random);
        }
    }

    fn of(&self, units: usize) -> &[f64] {
        let found = self.of.iter().find(|(same, _)| *same == units);
        found.map_or(&[], |(_, weights)| weights)
    }
}

/// Standard normal deviates (Box and Muller 1958).
pub(super) fn deviates(weights: &mut [f64], random: &mut Pcg64) {
    let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    for weight in weights {
        let radius = libm::sqrt(-2.0 * libm::log(uniform()));
        *weight = radius * libm::cos(std::f64::consts::TAU * uniform());
    }
}
