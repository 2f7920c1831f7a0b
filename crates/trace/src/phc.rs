//! The clock of a NIC (PHC) against `CLOCK_REALTIME`: offset and error from readings of the kernel.
//!
//! `PTP_SYS_OFFSET_PRECISE` gives one pair that the hardware took at once, `PTP_SYS_OFFSET_EXTENDED` the system's
//! clock immediately before and after the driver's reading, `PTP_SYS_OFFSET` the same from further outside
//! (`linux/ptp_clock.h`).

use serde::{Deserialize, Serialize};

/// Method of reading the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The hardware latched both.
    Precise,
    /// The system's clock around the driver's reading of the register.
    Extended,
    /// The system's clock around the call.
    Basic,
}

/// The system's clock before, the NIC's, the system's after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triple {
    /// `CLOCK_REALTIME`.
    pub before_ns: i64,
    /// The NIC's clock.
    pub phc_ns: i64,
    /// `CLOCK_REALTIME`; the same as before where the hardware latched both.
    pub after_ns: i64,
}

/// Offset of the NIC's clock at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// When, `CLOCK_REALTIME`.
    pub at_ns: i64,
    /// The NIC's clock minus `CLOCK_REALTIME`.
    pub offset_ns: i64,
    /// Error bound, either way.
    pub error_ns: i64,
}

/// Drift between two clocks that needs no fault: an oscillator of Ethernet is within 100 ppm (IEEE 802.3, 40.6.1.2.6), and the kernel
/// steers the system's clock by at most 500 ppm (adjtimex(2)).
pub const DRIFT_PPM: f64 = 600.0;

/// A jump of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Step {
    /// When it was noticed.
    pub at_ns: i64,
    /// By how much; negative: back.
    pub by_ns: i64,
}

/// A NIC's clock during a recording, as in the header of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The device, `ptp0`.
    pub device: String,
    /// Its driver's name for it.
    pub name: String,
    /// Method of reading it.
    pub method: Method,
    /// The NIC's clock minus `CLOCK_REALTIME` when recording began.
    pub offset_ns: i64,
    /// Growth of the offset until recording ended.
    pub drift_ns: i64,
    /// Time of the first reading, `CLOCK_REALTIME`.
    pub from_ns: i64,
    /// Time of the second reading, `CLOCK_REALTIME`.
    pub to_ns: i64,
    /// Error bound of a time between the two, either way.
    pub error_ns: i64,
}

/// The system's clock, the NIC's, the system's and so on, as `PTP_SYS_OFFSET` gives them; nothing without a reading.
#[must_use]
pub fn alternating(ns: &[i64]) -> Vec<Triple> {
    let triple =
        |three: &[i64]| Triple { before_ns: three[0], phc_ns: three[1], after_ns: three[2] };
    ns.windows(3).step_by(2).map(triple).collect()
}

/// The offset by the narrowest reading; `None` without a reading.
///
/// `resolution_ns` is the unit of the NIC's register: a reading may be that much too early.
#[must_use]
pub fn narrowest(triples: &[Triple], resolution_ns: i64) -> Option<Offset> {
    let width = |triple: &Triple| triple.after_ns.checked_sub(triple.before_ns);
    let usable = triples.iter().filter(|triple| width(triple).is_some_and(|width| width >= 0));
    let best = usable.min_by_key(|triple| width(triple))?;
    let width_ns = best.after_ns - best.before_ns;
    let at_ns = best.before_ns + width_ns / 2;
    Some(Offset {
        at_ns,
        offset_ns: best.phc_ns.checked_sub(at_ns)?,
        // Half of an odd width is rounded down.
        error_ns: (width_ns + 1) / 2 + resolution_ns,
    })
}

impl Chain {
    /// From a reading before and one after.
    ///
    /// Between the two the NIC's clock is assumed to run evenly. Where it was stepped or steered meanwhile, the drift
    /// is large, and half of the drift is part of the error.
    #[must_use]
    pub fn new(device: &str, name: &str, method: Method, before: Offset, after: Offset) -> Self {
        let drift_ns = after.offset_ns.saturating_sub(before.offset_ns);
        let ends_ns = before.error_ns.max(after.error_ns);
        Self {
            device: device.to_owned(),
            name: name.to_owned(),
            method,
            offset_ns: before.offset_ns,
            drift_ns,
            from_ns: before.at_ns,
            to_ns: after.at_ns,
            error_ns: ends_ns.saturating_add(drift_ns.saturating_abs() / 2 + 1),
        }
    }

    /// `CLOCK_REALTIME` at a time of the NIC's clock, also outside of the two readings.
    #[must_use]
    pub fn realtime_ns(&self, phc_ns: i64) -> i64 {
        let begin = i128::from(self.from_ns) + i128::from(self.offset_ns);
        let span = i128::from(self.to_ns) - i128::from(self.from_ns);
        // While the NIC's clock advances by `phc_span`, the system's advances by `span`.
        let phc_span = span + i128::from(self.drift_ns);
        let since = i128::from(phc_ns) - begin;
        let ns = if phc_span > 0 { (since * span).div_euclid(phc_span) } else { since };
        i64::try_from(i128::from(self.from_ns) + ns).unwrap_or(if ns < 0 {
            i64::MIN
        } else {
            i64::MAX
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_narrowest_decides() {
        let triple = |before_ns, phc_ns, after_ns| Triple { before_ns, phc_ns, after_ns };
        let all = [triple(0, 5_100, 400), triple(1_000, 6_020, 1_041), triple(2_000, 7_000, 1_990)];
        let expected = Offset { at_ns: 1_020, offset_ns: 5_000, error_ns: 21 + 8 };
        assert_eq!(narrowest(&all, 8), Some(expected));
        assert_eq!(narrowest(&all[2..], 8), None);
        assert_eq!(narrowest(&[], 8), None);
    }

    #[test]
    fn alternating_readings() {
        assert_eq!(alternating(&[1, 50, 3, 52, 5]).len(), 2);
        let second = Triple { before_ns: 3, phc_ns: 52, after_ns: 5 };
        assert_eq!(alternating(&[1, 50, 3, 52, 5])[1], second);
        assert_eq!(alternating(&[1, 50]), []);
    }

    proptest! {
        /// A NIC whose clock is ahead and runs at another pace is read with delays on both sides.
        #[test]
        fn times_come_back_within_the_error(
            ahead in -2_000_000_000_i64..2_000_000_000_000,
            ppb in -100_000_i64..100_000,
            delays in proptest::collection::vec((1_i64..3_000, 1_i64..3_000), 2..20),
            at in 0_i64..10_000_000_000,
        ) {
            const START: i64 = 1_790_000_000_000_000_000;
            let phc = |realtime: i64| realtime + ahead + (i128::from(realtime - START) * i128::from(ppb) / 1_000_000_000) as i64;
            let read = |from: i64| {
                let triples: Vec<Triple> = delays.iter().enumerate().map(|(turn, (one, other))| {
                    let before_ns = from + turn as i64 * 10_000;
                    Triple { before_ns, phc_ns: phc(before_ns + one), after_ns: before_ns + one + other }
                }).collect();
                narrowest(&triples, 1).unwrap()
            };
            let chain = Chain::new("ptp0", "nic", Method::Extended, read(START), read(START + 10_000_000_000));
            let off = chain.realtime_ns(phc(START + at)) - (START + at);
            prop_assert!(off.abs() <= chain.error_ns, "{off} {chain:?}");
        }
    }
}
