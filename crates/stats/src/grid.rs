//! Blocks of successive samples of equal length, which doubles whenever there are too many: the same blocks whether the
//! samples are counted in one go, or stretch by stretch, each of which knows how many samples came before.

use serde::{Deserialize, Serialize};

/// Blocks of equal length. Those before the first sample counted here are not held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Grid {
    /// There are never more blocks than this, an even number, from the first sample of all on.
    most: u64,
    /// The blocks before those that are held.
    pub(super) first: u64,
    /// The blocks begun that are held.
    pub(super) held: usize,
    /// Samples of a block.
    pub(super) length: u64,
    /// Samples that the last block lacks.
    pub(super) left: u64,
}

impl Grid {
    /// Behind so many samples, with at most so many blocks.
    pub(super) fn behind(samples: u64, most: u64) -> Self {
        let length = samples.div_ceil(most).next_power_of_two();
        let begun = samples % length;
        let left = if begun == 0 { 0 } else { length - begun };
        Self { most, first: samples / length, held: usize::from(begun > 0), length, left }
    }

    /// Whether the blocks must be [doubled](Self::double) before the next one begins.
    pub(super) fn is_full(&self) -> bool {
        self.first + self.held as u64 == self.most
    }

    pub(super) fn begin(&mut self) {
        self.held += 1;
        self.left = self.length;
    }

    /// Doubles the length. Returns where the block held at each place was put: neighbours come to one. Where none is
    /// held behind an odd number of blocks, the samples before have begun the first one.
    pub(super) fn double(&mut self) -> impl Iterator<Item = usize> {
        let (first, held) = (self.first, self.held as u64);
        let last = first + held;
        if last % 2 == 1 {
            self.left += self.length;
        }
        self.first /= 2;
        self.length *= 2;
        self.held = (last.div_ceil(2) - self.first) as usize;
        (first..last).map(move |block| (block / 2 - first / 2) as usize)
    }

    /// Adds the blocks that follow, of the same length.
    pub(super) fn append(&mut self, later: Self) {
        self.held = (later.first - self.first) as usize + later.held;
        self.left = later.left;
    }

    /// The complete blocks, as long as all from the first one on are held.
    pub(super) fn complete(&self) -> usize {
        self.held - usize::from(self.left > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Failed behind an odd number of complete blocks, of which none is held.
    #[test]
    fn blocks_that_double_are_those_behind_as_many_samples() {
        const MOST: u64 = 8;
        for samples in 0..200 {
            let mut grid = Grid::behind(samples, MOST);
            for _ in 0..4 {
                let _ = grid.double();
                let begun = samples % grid.length;
                assert_eq!(grid.first, samples / grid.length, "{samples}: {grid:?}");
                assert_eq!(grid.held, usize::from(begun > 0), "{samples}: {grid:?}");
                let left = if begun > 0 { grid.length - begun } else { 0 };
                assert_eq!(grid.left, left, "{samples}: {grid:?}");
            }
        }
    }
}
