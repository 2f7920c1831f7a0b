//! Times and sizes as people read them.

use crate::times;

const SECOND_NS: i64 = 1_000_000_000;

/// Stamps before this, 1980, count from another moment than 1970.
const DATED_FROM_NS: i64 = 315_532_800 * SECOND_NS;

/// TAI − UTC since 2017, in s.
const TAI_AHEAD_S: i64 = 37;

/// A time without its sign: 37.0 s, 400 ms, 1.50 µs.
pub(crate) fn size(ns: i64) -> String {
    times::text(ns.saturating_abs())
}

/// A time with its sign, if that is negative.
pub(crate) fn signed(ns: i64) -> String {
    format!("{}{}", if ns < 0 { "−" } else { "" }, size(ns))
}

/// Name of a difference that clocks often have.
pub(crate) fn known(ns: i64) -> &'static str {
    let off_by = |seconds: i64| (ns.abs() - seconds * SECOND_NS).abs() < SECOND_NS / 100;
    if off_by(TAI_AHEAD_S) {
        " (TAI − UTC)"
    } else if (1..=56).any(|quarters| off_by(quarters * 900)) {
        " (another time zone)"
    } else if off_by(1) {
        " (a leap second)"
    } else {
        ""
    }
}

/// When a stamp was taken: date and time of UTC if it has one, and the time since the first.
pub(crate) fn moment(stamp_ns: i64, first_ns: i64) -> String {
    let since = (stamp_ns.saturating_sub(first_ns)) as f64 / 1e9;
    if stamp_ns < DATED_FROM_NS {
        return format!("{since:.3} s after the first packet");
    }
    let [year, month, day] = date(stamp_ns.div_euclid(86_400 * SECOND_NS));
    let ms = stamp_ns.rem_euclid(86_400 * SECOND_NS) / 1_000_000;
    let [hours, minutes, seconds] = [ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60];
    format!(
        "{year}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{:03} UTC, {since:.3} s after the first packet",
        ms % 1_000
    )
}

/// The date of a day since 1970, by the proleptic Gregorian calendar.
fn date(days: i64) -> [i64; 3] {
    // Years begin in March, so that leap days end them; 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    [era * 400 + year + i64::from(month <= 2), month, day]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_read_them() {
        let first_ns = 1_700_000_000 * SECOND_NS;
        let said = moment(first_ns + 5 * SECOND_NS, first_ns);
        assert_eq!(said, "2023-11-14 22:13:25.000 UTC, 5.000 s after the first packet");
        assert_eq!(date(11_016), [2000, 2, 29]);
        assert_eq!(date(11_017), [2000, 3, 1]);
        assert_eq!(size(-400_000_000), "400 ms");
        assert_eq!(known(-37 * SECOND_NS - 200_000), " (TAI − UTC)");
        assert_eq!(known(3_600 * SECOND_NS), " (another time zone)");
    }
}
