//! Times as people read them, by the same rules as `tailtrim.units` of the Python package: one unit in a table, as many
//! significant digits as tell each value from its bounds, and no decimal finer than the stamps.

use crate::summary::grouped;

/// In place of a bound that the samples do not give, and behind a value that they do not support.
pub const UNSUPPORTED: &str = "*";

/// Explanation of the mark, below a table that has it.
pub const UNSUPPORTED_LEGEND: &str = "*: not supported, too few independent episodes.";

const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1)];
const FEWEST: i32 = 3;
/// An integer of 64 bit has no more.
const ALL: i32 = 19;

/// Unit and number of digits of the times of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The unit.
    pub unit: &'static str,
    per_ns: u64,
    digits: i32,
    places: i32,
}

impl Times {
    /// The style of times in ns whose stamps have this resolution; those of a group are told apart.
    #[must_use]
    pub fn of<const N: usize>(
        groups: impl IntoIterator<Item = [Option<i64>; N]>,
        resolution_ps: u64,
    ) -> Self {
        let known = groups.into_iter().map(|mut group| {
            group.sort_unstable();
            group.into_iter().flatten().collect()
        });
        let known: Vec<Vec<i64>> = known.collect();
        let sizes = || known.iter().flatten().map(|ns| ns.unsigned_abs()).filter(|ns| *ns > 0);
        let mut least = sizes().min().unwrap_or(1_000).max(resolution_ps / 1_000);
        if sizes().max() >= Some(1_000) {
            least = least.max(1_000);
        }
        let (unit, per_ns) = UNITS.into_iter().find(|(_, per)| *per <= least).unwrap_or(UNITS[3]);
        let is_fine = |places: &i32| {
            u128::from(per_ns) * 1_000 <= u128::from(resolution_ps.max(1_000)) * ten(*places)
        };
        let places = (0..ALL).find(is_fine).unwrap_or(0);
        let finest = Self { unit, per_ns, digits: ALL, places };
        let alike = |style: Self, pair: &[i64]| style.number(pair[0]) == style.number(pair[1]);
        let mut style = Self { digits: FEWEST, ..finest };
        for pair in known.iter().flat_map(|group| group.windows(2)) {
            while alike(style, pair) && !alike(finest, pair) {
                style.digits += 1;
            }
        }
        style
    }

    /// The time without its unit.
    #[must_use]
    pub fn number(&self, ns: i64) -> String {
        let size = ns.unsigned_abs();
        let per = u128::from(self.per_ns);
        let Some(digits) = size.checked_ilog10() else { return "0".to_owned() };
        let exponent = digits as i32 - per.ilog10() as i32;
        let rounded = |exponent: i32| {
            let places = (self.digits - 1 - exponent).clamp(0, self.places);
            (places, (2 * u128::from(size) * ten(places) + per) / (2 * per))
        };
        let (mut places, mut last) = rounded(exponent);
        if last >= ten(places + exponent + 1) {
            // 9.996 has become 10.00, which is a digit too many.
            (places, last) = rounded(exponent + 1);
        }
        if last == 0 {
            return "0".to_owned();
        }
        let sign = if ns < 0 { "−" } else { "" };
        let whole = grouped((last / ten(places)) as u64);
        match places {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{:0>width$}", last % ten(places), width = places as usize),
        }
    }

    /// A bound, or the mark where there is none.
    #[must_use]
    pub fn bound(&self, ns: Option<i64>) -> String {
        ns.map_or_else(|| UNSUPPORTED.to_owned(), |ns| self.number(ns))
    }

    /// Number and unit.
    #[must_use]
    pub fn text(&self, ns: i64) -> String {
        format!("{} {}", self.number(ns), self.unit)
    }
}

/// A time that stands alone, number and unit.
#[must_use]
pub fn text(ns: i64) -> String {
    Times::of([[Some(ns)]], 1_000).text(ns)
}

/// Named times in one unit: p50 3.14, p99 18.3 µs.
#[must_use]
pub fn listed(named: &[(&str, i64)]) -> String {
    let style = Times::of(named.iter().map(|(_, ns)| [Some(*ns)]), 1_000);
    let told: Vec<String> =
        named.iter().map(|(name, ns)| format!("{name} {}", style.number(*ns))).collect();
    format!("{} {}", told.join(", "), style.unit)
}

fn ten(exponent: i32) -> u128 {
    10_u128.saturating_pow(exponent.max(0).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_stand_alone_have_three_digits() {
        for (ns, said) in [
            (13_550, "13.6 µs"),
            (9_996, "10.0 µs"),
            (950, "950 ns"),
            (0, "0 µs"),
            (-1_255, "−1.26 µs"),
            (999_949, "1,000 µs"),
            (1_673_450, "1.67 ms"),
            (30_609_512_000, "30.6 s"),
            (i64::MIN, "−9,223,372,037 s"),
        ] {
            assert_eq!(text(ns), said);
        }
    }

    #[test]
    fn digits_tell_values_from_bounds_as_far_as_the_stamps_do() {
        let groups = [
            [Some(18_212), Some(18_200), Some(18_225)],
            [Some(18_262), Some(18_250), None],
            [Some(1_000_012), Some(1_000_000), Some(1_000_025)],
        ];
        let style = Times::of(groups, 12_500);
        let told: Vec<String> =
            groups.iter().filter_map(|group| group[0]).map(|ns| style.number(ns)).collect();
        assert_eq!(told, ["18.21", "18.26", "1,000.01"]);
        assert_eq!(style.bound(None), "*");
    }

    #[test]
    fn a_longer_time_never_looks_shorter() {
        let style = Times::of([[Some(18_262), Some(18_270)], [Some(1_673_450), None]], 1_000);
        let told = |ns: i64| style.number(ns).replace(',', "").parse::<f64>().unwrap();
        assert!((0..2_000_000).step_by(7).all(|ns| told(ns) <= told(ns + 7)));
    }
}
