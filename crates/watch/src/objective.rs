//! Objectives of a target: a limit, and which packets are bad.

use std::fmt;
use std::str::FromStr;
use tailtrim_wire::duration::time_ns;

/// Kind of a bad packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bad {
    /// Answered later than this; lost ones do not count.
    Later(i64),
    /// Not answered, or later than this.
    LaterOrLost(i64),
    /// Not answered.
    Lost,
}

/// A limit on the share of bad packets: `p99.9 < 5ms`, `adjusted p99 < 5ms` (a lost packet is infinitely late), or
/// `loss < 0.1%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    text: String,
    bad: Bad,
    limit: f64,
}

/// An invalid objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("objective {text:?}: expected 'p99.9 < 5ms', 'adjusted p99 < 5ms' or 'loss < 0.1%'")]
pub struct ObjectiveError {
    text: String,
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let read = || {
            let (what, limit) = text.split_once('<')?;
            let (what, limit) = (what.trim(), limit.trim());
            if what == "loss" {
                let (share, _) = percent(limit.strip_suffix('%')?.trim_end())?;
                return Some((Bad::Lost, share));
            }
            let (adjusted, quantile) = match what.strip_prefix("adjusted ") {
                Some(quantile) => (true, quantile.trim_start()),
                None => (false, what),
            };
            let (_, share) = percent(quantile.strip_prefix('p')?)?;
            let limit_ns = i64::try_from(time_ns(limit)?).ok().filter(|ns| *ns > 0)?;
            let bad = if adjusted { Bad::LaterOrLost(limit_ns) } else { Bad::Later(limit_ns) };
            Some((bad, share))
        };
        let error = || ObjectiveError { text: text.to_owned() };
        let (bad, limit) = read().filter(|(_, share)| *share > 0.0).ok_or_else(error)?;
        Ok(Self { text: text.trim().to_owned(), bad, limit })
    }
}

/// A share, between 0 and 1, from a number of percent, and the rest. Both are the nearest numbers, which 1 - 0.99 is not.
fn percent(text: &str) -> Option<(f64, f64)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits: u64 = Some([whole, decimals].concat())
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?
        .parse()
        .ok()?;
    let all = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()? + 2)?;
    let rest = all.checked_sub(digits).filter(|rest| *rest > 0)?;
    Some((digits as f64 / all as f64, rest as f64 / all as f64))
}

impl Objective {
    /// The largest share of bad packets.
    #[must_use]
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// The latency from which on a packet is bad, in ns.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<i64> {
        match self.bad {
            Bad::Later(ns) | Bad::LaterOrLost(ns) => Some(ns),
            Bad::Lost => None,
        }
    }

    /// Whether an answered packet with this latency is bad; `None`: it does not count.
    #[must_use]
    pub fn judge_answered(&self, latency_ns: i64) -> bool {
        self.deadline_ns().is_some_and(|deadline_ns| latency_ns >= deadline_ns)
    }

    /// Whether packets without an answer count, as bad ones.
    #[must_use]
    pub fn counts_lost(&self) -> bool {
        !matches!(self.bad, Bad::Later(_))
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_shares_of_bad_packets() {
        let of = |text: &str| text.parse::<Objective>().unwrap();
        let tail = of("p99.9 < 5ms");
        assert_eq!(tail.limit().to_string(), "0.001");
        assert_eq!(
            (tail.judge_answered(4_999_999), tail.judge_answered(5_000_000), tail.counts_lost()),
            (false, true, false)
        );
        let adjusted = of(" adjusted p99<50 us");
        assert_eq!((adjusted.deadline_ns(), adjusted.counts_lost()), (Some(50_000), true));
        let loss = of("loss < 0.1 %");
        assert_eq!(loss.limit().to_string(), "0.001");
        assert_eq!(of("p99 < 1s").limit().to_string(), "0.01");
        assert_eq!((loss.deadline_ns(), loss.counts_lost()), (None, true));
        assert!(!loss.judge_answered(i64::MAX));
    }

    #[test]
    fn a_text_without_unit_or_limit_is_refused() {
        for text in [
            "",
            "p99",
            "p99 < 5",
            "p100 < 5ms",
            "p-1 < 5ms",
            "p99 < 0ms",
            "loss < 0%",
            "loss < 0.1",
            "loss < 100%",
            "p99 > 5ms",
            "median < 5ms",
            "p1e1 < 5ms",
            "pNaN < 5ms",
        ] {
            assert!(text.parse::<Objective>().is_err(), "{text}");
        }
    }
}
