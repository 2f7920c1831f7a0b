//! Sizes of generated frames.

use super::FCS_LEN;
use super::rate::Fraction;
use std::fmt;
use std::str::FromStr;

/// Frame sizes, counted with FCS: one, or a mix that repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes without FCS, in the order in which they come, again and again.
    cycle: Vec<usize>,
    text: String,
}

/// A frame size that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "frame size {text:?}: expected bytes with FCS from {LEAST} to {MOST}, a list such as 64,64,1518, or imix"
)]
pub struct SizesError {
    text: String,
}

/// The smallest Ethernet frame.
const LEAST: usize = 64;
/// The largest jumbo frame in use.
const MOST: usize = 9_018;

/// The "simple IMIX" of the field: 7 of 64 bytes, 4 of 594 and 1 of 1,518, interleaved so that large
/// frames come at even distances.
const IMIX: [usize; 12] = [64, 594, 64, 64, 594, 64, 1518, 64, 594, 64, 594, 64];

impl FromStr for Sizes {
    type Err = SizesError;

    fn from_str(text: &str) -> Result<Self, SizesError> {
        let error = || SizesError { text: text.to_owned() };
        let sizes: Vec<usize> = if text == "imix" {
            IMIX.to_vec()
        } else {
            text.split(',')
                .map(|size| size.trim().parse().map_err(|_| error()))
                .collect::<Result<_, _>>()?
        };
        if sizes.iter().any(|size| !(LEAST..=MOST).contains(size)) {
            return Err(error());
        }
        let cycle = sizes.into_iter().map(|size| size - FCS_LEN).collect();
        Ok(Self { cycle, text: text.to_owned() })
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Sizes {
    /// Bytes, without FCS, of the frame of this number.
    #[must_use]
    pub fn of(&self, sequence: u64) -> usize {
        self.cycle[(sequence % self.cycle.len() as u64) as usize]
    }

    /// The different sizes without FCS, ascending.
    #[must_use]
    pub fn distinct(&self) -> Vec<usize> {
        let mut sizes = self.cycle.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Bytes of a frame on average, without FCS.
    #[must_use]
    pub fn mean(&self) -> Fraction {
        let sum: usize = self.cycle.iter().sum();
        Fraction { numerator: sum as u128, denominator: self.cycle.len() as u128 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_with_fcs_on_the_command_line_and_without_inside() {
        let sizes: Sizes = "64,1518".parse().unwrap();
        assert_eq!((sizes.of(0), sizes.of(1), sizes.of(2)), (60, 1514, 60));
        assert_eq!(sizes.to_string(), "64,1518");
        for text in ["", "63", "9019", "64,", "64,big", "IMIX"] {
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn imix_is_seven_to_four_to_one() {
        let imix: Sizes = "imix".parse().unwrap();
        let count = |bytes| (0..12).filter(|&n| imix.of(n) == bytes).count();
        assert_eq!((count(60), count(590), count(1514)), (7, 4, 1));
        assert_eq!(imix.distinct(), [60, 590, 1514]);
        // 361.83 bytes with FCS.
        assert_eq!(imix.mean(), Fraction { numerator: 7 * 60 + 4 * 590 + 1514, denominator: 12 });
    }
}
