//! Blocks of both sides dealt anew: where the sides are alike, each deal is as likely as theirs.
//!
//! The difference is divided by its standard error in each deal, so that sides whose blocks vary
//! differently are judged rightly, too, once there are many (Janssen 1997, *Statistics &
//! Probability Letters* 36, p. 9; Chung and Romano 2013, *Annals of Statistics* 41, p. 484).

/// The blocks' shares beyond one latency: what is dealt for one quantile.
pub(super) struct Dealt {
    /// Those of A, then those of B, less the mean of all.
    shares: Vec<f64>,
    /// Number of A's blocks.
    first: usize,
    /// Variance of a block's share on each side if its packets were independent.
    chance: [f64; 2],
    sum: f64,
    squares: f64,
}

impl Dealt {
    /// `shares` of both sides, of blocks with so many `samples` on average.
    pub(super) fn new(shares: [Vec<f64>; 2], samples: [f64; 2]) -> Self {
        let first = shares[0].len();
        let mut all = shares.concat();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let chance = samples.map(|samples| mean * (1.0 - mean) / samples.max(1.0));
        all.iter_mut().for_each(|share| *share -= mean);
        let sum = all.iter().sum();
        let squares = all.iter().map(|share| share * share).sum();
        Self { shares: all, first, chance, sum, squares }
    }

    /// Blocks in all, and those of A.
    pub(super) fn units(&self) -> (usize, usize) {
        (self.shares.len(), self.first)
    }

    /// The standard error of the difference between the sides as they are.
    pub(super) fn error(&self) -> f64 {
        self.dealt(0..self.first).1
    }

    /// The difference B − A in standard errors if A had the blocks `first`.
    pub(super) fn distance(&self, first: &[usize]) -> f64 {
        let (apart, error) = self.dealt(first.iter().copied());
        if apart == 0.0 { 0.0 } else { apart / error }
    }

    fn dealt(&self, first: impl Iterator<Item = usize>) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for index in first {
            let share = self.shares[index];
            sum += share;
            squares += share * share;
        }
        let a = self.side(0, sum, squares);
        let b = self.side(1, self.sum - sum, self.squares - squares);
        (b.0 - a.0, (a.1 + b.1).sqrt().max(f64::MIN_POSITIVE))
    }

    /// The mean of a side and its variance. A tail that is more regular than chance has a periodic
    /// cause, whose phase will be another one next time: it counts as chance.
    fn side(&self, side: usize, sum: f64, squares: f64) -> (f64, f64) {
        let units = [self.first, self.shares.len() - self.first][side] as f64;
        let variance = (squares - sum * sum / units).max(0.0) / (units - 1.0).max(1.0);
        let regular = self.chance[side] * regular(units);
        let variance = if variance < regular { self.chance[side] } else { variance };
        (sum / units, variance / units)
    }
}

/// So much of the variance that chance has would be missed by two standard errors.
pub(super) fn regular(units: f64) -> f64 {
    1.0 - 2.0 * (2.0 / units.max(1.0)).sqrt()
}
