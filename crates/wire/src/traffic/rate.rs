//! Exact packet rates.

use super::{NS_PER_S, WIRE_OVERHEAD};
use std::fmt;
use std::str::FromStr;

/// A packet rate as a fraction, so that the n-th departure is exact however large n is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    amount: u64,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Packets a second.
    Packets,
    /// Bits a second on the wire: preamble, FCS and inter-frame gap included.
    Bits,
}

/// A rate that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "rate {text:?}: expected packets such as 120000, 120kpps or 1.5Mpps, or bits on the wire such as 500Mbit/s"
)]
pub struct RateError {
    text: String,
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let error = || RateError { text: text.to_owned() };
        let (number, unit) = if let Some(number) = text.strip_suffix("bit/s") {
            (number, Unit::Bits)
        } else {
            (text.strip_suffix("pps").unwrap_or(text), Unit::Packets)
        };
        let number = number.trim_end();
        let (number, scale) = match number.chars().last() {
            Some('k') => (&number[..number.len() - 1], 1_000),
            Some('M') => (&number[..number.len() - 1], 1_000_000),
            Some('G') => (&number[..number.len() - 1], 1_000_000_000),
            _ => (number, 1),
        };
        let amount =
            decimal(number.trim_end(), scale).filter(|amount| *amount > 0).ok_or_else(error)?;
        Ok(Self { amount, unit })
    }
}

/// A decimal number times `scale`, if that is a whole number.
fn decimal(text: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let places = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = part.checked_mul(scale)?;
    if !part.is_multiple_of(places) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(part / places)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Packets => write!(f, "{}pps", self.amount),
            Unit::Bits => write!(f, "{}bit/s", self.amount),
        }
    }
}

impl Rate {
    /// Time between packets of `mean_bytes` (without FCS) on average, as a fraction of nanoseconds.
    #[must_use]
    pub fn interval_ns(self, mean_bytes: Fraction) -> Fraction {
        let (numerator, denominator) = match self.unit {
            Unit::Packets => (u128::from(NS_PER_S), u128::from(self.amount)),
            Unit::Bits => {
                let wire =
                    mean_bytes.numerator + u128::from(WIRE_OVERHEAD) * mean_bytes.denominator;
                let bits = 8 * wire * u128::from(NS_PER_S);
                (bits, mean_bytes.denominator * u128::from(self.amount))
            }
        };
        Fraction { numerator, denominator }
    }
}

/// A positive rational number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    /// Above the line.
    pub numerator: u128,
    /// Below it, not 0.
    pub denominator: u128,
}

impl Fraction {
    /// A whole number.
    #[must_use]
    pub fn whole(value: u64) -> Self {
        Self { numerator: u128::from(value), denominator: 1 }
    }

    /// `count` times this, rounded down.
    #[must_use]
    pub fn times(self, count: u64) -> u64 {
        u64::try_from(u128::from(count) * self.numerator / self.denominator).unwrap_or(u64::MAX)
    }

    /// The nearest floating-point number.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// The multiples of a fraction from 0 on, rounded down: without a division for each.
#[derive(Debug, Clone)]
pub(super) struct Multiples {
    of: Fraction,
    whole_step: u64,
    rest_step: u128,
    whole: u64,
    /// Remainder of the rounding, in parts of the denominator.
    rest: u128,
}

impl Multiples {
    pub(super) fn new(of: Fraction) -> Self {
        let rest_step = of.numerator % of.denominator;
        Self { of, whole_step: of.times(1), rest_step, whole: 0, rest: 0 }
    }

    #[inline]
    pub(super) fn current(&self) -> u64 {
        self.whole
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.whole = self.whole.saturating_add(self.whole_step);
        self.rest += self.rest_step;
        if self.rest >= self.of.denominator {
            self.rest -= self.of.denominator;
            self.whole = self.whole.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_exactly() {
        for (text, shown) in [
            ("10000", "10000pps"),
            ("120kpps", "120000pps"),
            ("1.5Mpps", "1500000pps"),
            ("0.25k", "250pps"),
            ("500Mbit/s", "500000000bit/s"),
            ("2.5 Gbit/s", "2500000000bit/s"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.to_string(), shown, "{text}");
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }
        for text in [
            "",
            "0",
            "-1",
            "1.23",
            "k",
            "1e6",
            "1.5.2k",
            "10 apples",
            "99999999999999999999",
            "0pps",
            "+5",
        ] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn bits_count_what_the_wire_carries() {
        // 64-byte frames with FCS fill 10 Gbit/s at 14.88 Mpps.
        let rate: Rate = "10Gbit/s".parse().unwrap();
        let interval = rate.interval_ns(Fraction::whole(60));
        assert_eq!(interval.times(10), 672);
        assert_eq!(interval.times(1), 67);
    }

    #[test]
    fn the_last_departure_of_a_long_run_is_exact() {
        let interval = "3".parse::<Rate>().unwrap().interval_ns(Fraction::whole(60));
        assert_eq!(interval.times(30_000_000_000), 10_000_000_000_000_000_000);
    }

    proptest::proptest! {
        #[test]
        fn multiples_are_the_products(numerator in 1_u64.., denominator in 1_u64..1_000_000_007) {
            let of = Fraction { numerator: numerator.into(), denominator: denominator.into() };
            let mut multiples = Multiples::new(of);
            for count in 0..200 {
                proptest::prop_assert_eq!(multiples.current(), of.times(count));
                multiples.advance();
            }
        }
    }
}
