//! The baseline and the margin that the file of targets asks for.

use serde::{Deserialize, Serialize};

const MINUTES_A_DAY: i64 = 1_440;

/// A span of minutes, in ns since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) from_ns: i64,
    pub(crate) until_ns: i64,
}

/// References beside which minutes are judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The pinned baseline.
    pub(crate) baseline: Option<Span>,
    /// Smallest difference of a percentile that counts.
    pub(crate) margin: f64,
}

impl Asked {
    /// Reads both; the margin is 5 % by default.
    pub(crate) fn of(
        baseline: Option<&str>,
        margin: Option<&str>,
    ) -> Result<Self, (&'static str, String)> {
        let baseline = baseline.map(|text| {
            span(text).ok_or_else(|| {
                let text = format!(
                    "{text:?}: expected two times (UTC), at least two days apart, such as \
                     2026-11-20T00:00..2026-11-27T00:00"
                );
                ("baseline", text)
            })
        });
        let margin = margin.map(|text| {
            let percent = text.trim().strip_suffix('%').and_then(|n| n.trim_end().parse().ok());
            let share = percent.map(|percent: f64| percent / 100.0);
            share.filter(|share| (0.001..=10.0).contains(share)).ok_or_else(|| {
                ("margin", format!("{text:?}: expected a share from 0.1% to 1000%, such as 5%"))
            })
        });
        Ok(Self { baseline: baseline.transpose()?, margin: margin.transpose()?.unwrap_or(0.05) })
    }
}

/// Two times, or days, with `..` between them.
fn span(text: &str) -> Option<Span> {
    let (from, until) = text.split_once("..")?;
    let (from, until) = (minute(from.trim())?, minute(until.trim())?);
    let minute_ns = crate::minute::MINUTE_NS;
    (until - from >= 2 * MINUTES_A_DAY)
        .then(|| Span { from_ns: from * minute_ns, until_ns: until * minute_ns })
}

/// The minute of a time such as 2026-11-20T00:00, or of the begin of a day, counted from 1970 on.
fn minute(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00"));
    let numbers = |text: &str, by: char| -> Option<Vec<i64>> {
        let fits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()) && part.len() <= 4;
        text.split(by).map(|part| part.parse().ok().filter(|_| fits(part))).collect()
    };
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let [hour, minute] = numbers(time, ':')?[..] else { return None };
    let fits = (1970..=2200).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute);
    // Days of the civil calendar from March on, 400 years of which are 146,097 (Hinnant).
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    fits.then_some((days - 719_468) * MINUTES_A_DAY + hour * 60 + minute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_sys::clock;

    #[test]
    fn spans_are_two_times_in_utc() {
        let asked = Asked::of(Some("2026-11-20T06:30..2026-11-27"), Some("10 %")).unwrap();
        let span = asked.baseline.unwrap();
        assert_eq!((clock::date(span.from_ns), asked.margin), ("2026-11-20".to_owned(), 0.1));
        assert_eq!(span.from_ns % 86_400_000_000_000, 390 * 60_000_000_000);
        assert_eq!(span.until_ns % 86_400_000_000_000, 0);
        assert_eq!(clock::date(span.until_ns), "2026-11-27");
        let leap = minute("2028-02-29T00:00Z").unwrap();
        assert_eq!(clock::date(leap * 60_000_000_000), "2028-02-29");
        assert_eq!(Asked::of(None, None).unwrap(), Asked { baseline: None, margin: 0.05 });
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "yesterday", "2026-11-20..2026-11-21", "2026-13-01..2027-01-01", "a..b"] {
            assert_eq!(Asked::of(Some(text), None).unwrap_err().0, "baseline", "{text}");
        }
        for text in ["5", "0%", "x%", "-1%"] {
            assert_eq!(Asked::of(None, Some(text)).unwrap_err().0, "margin", "{text}");
        }
    }
}
