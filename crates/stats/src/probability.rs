//! Probabilities as exact decimal fractions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most decimals a probability may have: 10^18 is the largest power of ten in a `u64`.
const MAX_DECIMALS: u32 = 18;

/// Why a text is no [`Probability`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProbabilityError {
    /// The text is not a plain decimal number.
    #[error(
        "`{0}` is not a probability: expected a decimal such as `0.999` or a percentage such as `99.9%`"
    )]
    Syntax(String),
    /// The number is zero or above one.
    #[error("`{0}` is not a probability: expected more than 0 and at most 1 (100%)")]
    Range(String),
    /// The number has more decimals than are kept exactly.
    #[error("`{0}` has too many decimals: expected at most 18 (16 in a percentage)")]
    Decimals(String),
}

/// A probability in (0, 1], kept as an exact decimal fraction.
///
/// In binary floating point `0.07 * 100` is above 7 and its ceiling 8; here every rank is integer
/// arithmetic. Equal numbers are equal values however they were written (`0.50`, `50%`). The serde
/// form is the decimal text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Probability {
    numerator: u64,
    /// A power of ten, as small as the numerator allows.
    denominator: u64,
}

impl Probability {
    /// The lower quartile, 0.25.
    pub const P25: Self = Self::literal(25, 100);
    /// The median, 0.5.
    pub const P50: Self = Self::literal(5, 10);
    /// The upper quartile, 0.75.
    pub const P75: Self = Self::literal(75, 100);
    /// 0.8, in so many cases more packets are to decide.
    pub const P80: Self = Self::literal(8, 10);
    /// 0.9.
    pub const P90: Self = Self::literal(9, 10);
    /// 0.95, the usual confidence.
    pub const P95: Self = Self::literal(95, 100);
    /// 0.99.
    pub const P99: Self = Self::literal(99, 100);
    /// 0.999.
    pub const P99_9: Self = Self::literal(999, 1_000);
    /// 0.9999.
    pub const P99_99: Self = Self::literal(9_999, 10_000);
    /// 0.99999.
    pub const P99_999: Self = Self::literal(99_999, 100_000);
    /// One: its quantile is the maximum.
    pub const ONE: Self = Self::literal(1, 1);

    const fn literal(numerator: u64, denominator: u64) -> Self {
        Self { numerator, denominator }
    }

    /// The probability written with `count` nines: 0.9, 0.99, … `None` unless `1 <= count <= 18`.
    #[must_use]
    pub const fn nines(count: u32) -> Option<Self> {
        if count == 0 || count > MAX_DECIMALS {
            return None;
        }
        let denominator = 10_u64.pow(count);
        Some(Self::literal(denominator - 1, denominator))
    }

    /// The numerator of the shortest decimal fraction.
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator of the shortest decimal fraction, a power of ten.
    #[must_use]
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// The 1-based rank ⌈p·n⌉ of this quantile among `n` samples; 1 if `n` is zero.
    #[must_use]
    pub fn rank(self, n: u64) -> u64 {
        let product = u128::from(self.numerator) * u128::from(n);
        let rank = product.div_ceil(u128::from(self.denominator));
        // p <= 1, so the rank is at most n and the conversion cannot fail.
        u64::try_from(rank).unwrap_or(n).max(1)
    }

    /// The nearest `f64`.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// The nearest `f64` to 1 − p. The subtraction is exact: at p = 0.999999999 the difference of
    /// two `f64` would have lost half of its digits.
    #[must_use]
    pub fn complement_f64(self) -> f64 {
        (self.denominator - self.numerator) as f64 / self.denominator as f64
    }

    /// The probability in percent without the sign: `99.9`.
    #[must_use]
    pub fn percent_text(self) -> String {
        decimal(u128::from(self.numerator) * 100, u128::from(self.denominator))
    }
}

/// `numerator / denominator` as the shortest decimal, the denominator being a power of ten.
fn decimal(numerator: u128, denominator: u128) -> String {
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    if rest == 0 {
        return whole.to_string();
    }
    let width = denominator.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

impl FromStr for Probability {
    type Err = ProbabilityError;

    /// Reads `0.999`, `.5`, `1`, a percentage `99.9%`, or the same as `99.9` or `p99.9`; blanks around the number are
    /// ignored. Without a sign, a number from 10 on is a percentage;
    /// 1.5 is a mistake rather than 1.5 %.
    fn from_str(text: &str) -> Result<Self, ProbabilityError> {
        let syntax = || ProbabilityError::Syntax(text.to_owned());
        let trimmed = text.trim();
        let percentile = trimmed.strip_prefix('p');
        let unsigned = percentile.unwrap_or(trimmed);
        let percentage = unsigned.strip_suffix('%');
        let number = percentage.map_or(unsigned, str::trim_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let tens = whole.trim_start_matches('0').len() > 1;
        let shift = if percentile.is_some() || percentage.is_some() || tens { 2 } else { 0 };
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return Err(syntax());
        }

        let fraction = fraction.trim_end_matches('0');
        let decimals = u32::try_from(fraction.len())
            .ok()
            .and_then(|n| n.checked_add(shift))
            .filter(|n| *n <= MAX_DECIMALS)
            .ok_or_else(|| ProbabilityError::Decimals(text.to_owned()))?;
        let whole = whole.trim_start_matches('0');
        let range = || ProbabilityError::Range(text.to_owned());
        // Three digits suffice for 100 %, so that the digits together fit a u128.
        if whole.len() > 3 {
            return Err(range());
        }
        let digits: u128 = format!("0{whole}{fraction}").parse().map_err(|_| syntax())?;
        let mut denominator = 10_u64.pow(decimals);
        let mut numerator = u64::try_from(digits)
            .ok()
            .filter(|n| (1..=denominator).contains(n))
            .ok_or_else(range)?;
        while numerator % 10 == 0 && denominator > 1 {
            numerator /= 10;
            denominator /= 10;
        }
        Ok(Self { numerator, denominator })
    }
}

impl TryFrom<String> for Probability {
    type Error = ProbabilityError;

    fn try_from(text: String) -> Result<Self, ProbabilityError> {
        text.parse()
    }
}

impl From<Probability> for String {
    fn from(p: Probability) -> Self {
        p.to_string()
    }
}

impl fmt::Display for Probability {
    /// The shortest decimal: `0.999`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&decimal(u128::from(self.numerator), u128::from(self.denominator)))
    }
}

impl Ord for Probability {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = u128::from(self.numerator) * u128::from(other.denominator);
        let right = u128::from(other.numerator) * u128::from(self.denominator);
        left.cmp(&right)
    }
}

impl PartialOrd for Probability {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn p(text: &str) -> Probability {
        text.parse().unwrap()
    }

    #[test]
    fn ranks_where_floating_point_is_one_off() {
        for (text, rank) in [("0.07", 7), ("0.14", 14), ("0.28", 28), ("0.55", 55)] {
            assert_eq!(p(text).rank(100), rank, "{text}");
        }
        assert_eq!(p("0.999").rank(1000), 999);
        assert_eq!(p("0.999").rank(1001), 1000);
        assert_eq!(p("0.00001").rank(5), 1);
        assert_eq!(p("0.5").rank(0), 1);
        assert_eq!(Probability::ONE.rank(u64::MAX), u64::MAX);
        assert_eq!(p("0.5").rank(u64::MAX), 1 << 63);
    }

    #[test]
    fn reads_what_people_write() {
        for (text, shown, percent) in [
            ("0.999", "0.999", "99.9"),
            (".5", "0.5", "50"),
            ("99.9%", "0.999", "99.9"),
            (" 99.99 % ", "0.9999", "99.99"),
            ("0.50000000000000000000000", "0.5", "50"),
            ("1", "1", "100"),
            ("1.", "1", "100"),
            ("100%", "1", "100"),
            ("0.1%", "0.001", "0.1"),
            ("0.000000000000000001", "0.000000000000000001", "0.0000000000000001"),
        ] {
            assert_eq!(p(text).to_string(), shown, "{text}");
            assert_eq!(p(text).percent_text(), percent, "{text}");
        }
        assert_eq!(format!("{:>6}", Probability::P50), "   0.5");
    }

    #[test]
    fn a_percentile_is_read_as_people_write_it() {
        for text in ["0.9999", "99.99%", "99.99", "p99.99", " 99.99 % ", "p99.99%"] {
            assert_eq!(p(text).to_string(), "0.9999", "{text}");
        }
        assert_eq!(p("p1").to_string(), "0.01");
        assert_eq!(
            (p("1"), p("100"), p("p100")),
            (Probability::ONE, Probability::ONE, Probability::ONE)
        );
    }

    #[test]
    fn refuses_with_the_text_and_the_reason() {
        for text in [
            "", ".", "%", "abc", "1e-3", "+0.5", "-0.5", "0,5", "0.5.5", "99.9%%", "½", "p", "pp50",
        ] {
            assert_eq!(text.parse::<Probability>(), Err(ProbabilityError::Syntax(text.to_owned())));
        }
        for text in
            ["0", "0.0", "0%", "1.1", "2", "100.1", "p0", "100.1%", "9999999999999999999999"]
        {
            assert_eq!(text.parse::<Probability>(), Err(ProbabilityError::Range(text.to_owned())));
        }
        for text in ["0.0000000000000000001", "99.12345678901234567%"] {
            assert_eq!(
                text.parse::<Probability>(),
                Err(ProbabilityError::Decimals(text.to_owned()))
            );
        }
        let message = "9.9".parse::<Probability>().unwrap_err().to_string();
        assert!(message.contains("`9.9`") && message.contains("100%"), "{message}");
    }

    #[test]
    fn nines_and_complements_are_exact() {
        assert_eq!(Probability::nines(3), Some(Probability::P99_9));
        assert_eq!(Probability::nines(0), None);
        assert_eq!(Probability::nines(19), None);
        let p = Probability::nines(18).unwrap();
        assert_eq!(p.complement_f64(), 1e-18);
        assert_eq!(p.rank(u64::MAX), u64::MAX - 18);
    }

    proptest! {
        #[test]
        fn text_round_trips_and_orders(a in 1..=1_000_000_u64, b in 1..=1_000_000_u64) {
            let text = |n: u64| format!("{}.{:06}", n / 1_000_000, n % 1_000_000);
            let (x, y) = (p(&text(a)), p(&text(b)));
            prop_assert_eq!(p(&x.to_string()), x);
            prop_assert_eq!(p(&format!("{}%", x.percent_text())), x);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x == y, a == b);
        }

        #[test]
        fn the_rank_is_the_smallest_that_reaches_p(a in 1..=1000_u64, n in 1..5000_u64) {
            let rank = p(&format!("{}.{:03}", a / 1000, a % 1000)).rank(n);
            prop_assert!(rank * 1000 >= a * n && (rank - 1) * 1000 < a * n);
        }
    }
}
