//! Time as test packets carry it.
//!
//! Both formats wrap: NTP's seconds in 2036, PTP's in 2106. A stamp means the instant nearest to a time that
//! the reader knows, so neither year is special.

use serde::Serialize;

/// Seconds from 1900 to 1970, of which 17 years were leap years (RFC 5905 section 6).
const NTP_TO_UNIX_S: i64 = 2_208_988_800;
const NS_PER_S: i64 = 1_000_000_000;
/// Seconds after which 32 bits begin again.
const ERA_S: i64 = 1 << 32;

/// Format of a 64-bit stamp, given by the Z bit of the error estimate (RFC 8762 section 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeFormat {
    /// Seconds since 1900 and a binary fraction, 32 bits each (RFC 5905 section 6).
    #[default]
    Ntp,
    /// Seconds since 1970 and nanoseconds, 32 bits each: IEEE 1588v2, truncated (RFC 8877 section 4.3).
    Ptp,
}

impl TimeFormat {
    /// A time of UNIX as eight bytes of a packet. NTP's fraction is rounded up, so that it reads as the same
    /// nanosecond.
    #[must_use]
    pub fn write(self, unix_ns: i64) -> u64 {
        let (seconds, ns) = (unix_ns.div_euclid(NS_PER_S), unix_ns.rem_euclid(NS_PER_S) as u64);
        match self {
            Self::Ntp => {
                let fraction = (ns << 32).div_ceil(NS_PER_S as u64);
                u64::from((seconds + NTP_TO_UNIX_S) as u32) << 32 | fraction
            }
            Self::Ptp => u64::from(seconds as u32) << 32 | ns,
        }
    }

    /// The instant that such eight bytes mean, of all those 136 years apart the nearest to `near_ns`.
    ///
    /// `None` where they mean none: more than a second of nanoseconds (PTP), or an instant that `i64` does not
    /// hold.
    #[must_use]
    pub fn read(self, stamp: u64, near_ns: i64) -> Option<i64> {
        let (seconds, rest) = (stamp >> 32, stamp & u64::from(u32::MAX));
        let (seconds, ns) = match self {
            Self::Ntp => (seconds as i64 - NTP_TO_UNIX_S, (rest * NS_PER_S as u64) >> 32),
            Self::Ptp if rest < NS_PER_S as u64 => (seconds as i64, rest),
            Self::Ptp => return None,
        };
        let apart_s = near_ns.div_euclid(NS_PER_S) - seconds;
        let eras = (apart_s + ERA_S / 2).div_euclid(ERA_S);
        (seconds + eras * ERA_S).checked_mul(NS_PER_S)?.checked_add(ns as i64)
    }
}

/// Bound on the error of a stamp (RFC 4656 section 4.1.2, with the Z bit of RFC 8762 section 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErrorEstimate {
    /// S: the clock is synchronised to UTC by something outside.
    pub synchronized: bool,
    /// Z: how the stamps of this packet are written.
    pub format: TimeFormat,
    /// The error is `multiplier` · 2^(`scale` − 32) seconds; 6 bits.
    pub scale: u8,
    /// Never zero: a packet with zero is to be discarded where errors matter (RFC 4656).
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// The smallest estimate that is no less than the bound; with no bound the largest that can be written,
    /// which is 255 · 2^31 s, and nothing is synchronised.
    #[must_use]
    pub fn of_bound(bound_ns: Option<u64>, format: TimeFormat) -> Self {
        let largest = Self { synchronized: false, format, scale: 63, multiplier: 255 };
        let Some(bound_ns) = bound_ns else { return largest };
        let units = (u128::from(bound_ns) << 32).div_ceil(NS_PER_S as u128).max(1);
        let scale = (128 - units.leading_zeros()).saturating_sub(8);
        let multiplier = units.div_ceil(1 << scale);
        // Rounding up may carry into a ninth bit.
        let (scale, multiplier) = if multiplier > 255 {
            (scale + 1, multiplier.div_ceil(2))
        } else {
            (scale, multiplier)
        };
        Self { synchronized: true, format, scale: scale as u8, multiplier: multiplier as u8 }
    }

    /// The bound in ns, rounded up; it saturates.
    #[must_use]
    pub fn bound_ns(self) -> u64 {
        let units = u128::from(self.multiplier) << (self.scale & 0x3f);
        u64::try_from((units * NS_PER_S as u128).div_ceil(1 << 32)).unwrap_or(u64::MAX)
    }

    /// As two bytes: S, Z, scale, multiplier.
    #[must_use]
    pub fn write(self) -> [u8; 2] {
        let z = self.format == TimeFormat::Ptp;
        let first = u8::from(self.synchronized) << 7 | u8::from(z) << 6 | self.scale & 0x3f;
        [first, self.multiplier]
    }

    /// From two bytes.
    #[must_use]
    pub fn read([first, multiplier]: [u8; 2]) -> Self {
        let format = if first & 0x40 == 0 { TimeFormat::Ntp } else { TimeFormat::Ptp };
        Self { synchronized: first & 0x80 != 0, format, scale: first & 0x3f, multiplier }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_instants_are_what_the_standards_say() {
        // RFC 5905 section 6, figure 4: 1 January 1970 is 2,208,988,800 s of NTP.
        assert_eq!(TimeFormat::Ntp.write(0), 0x83aa_7e80_0000_0000);
        assert_eq!(TimeFormat::Ntp.write(500_000_000), 0x83aa_7e80_8000_0000);
        // The last second before NTP's era 1, 7 February 2036, 06:28:15, and the first of it.
        assert_eq!(TimeFormat::Ntp.write(2_085_978_495 * NS_PER_S), 0xffff_ffff_0000_0000);
        assert_eq!(TimeFormat::Ntp.write(2_085_978_496 * NS_PER_S), 0);
        let near = 2_085_978_400 * NS_PER_S;
        assert_eq!(TimeFormat::Ntp.read(0, near), Some(2_085_978_496 * NS_PER_S));
        assert_eq!(TimeFormat::Ptp.write(NS_PER_S + 2), 0x0000_0001_0000_0002);
        assert_eq!(TimeFormat::Ptp.read(0x1_3b9a_ca00, 0), None);
        assert_eq!(TimeFormat::Ptp.read(0x1_3b9a_c9ff, 0), Some(1_999_999_999));
    }

    #[test]
    fn error_estimates_are_bounds() {
        // 2^-32 s, the least: 0.23 ns.
        let least = ErrorEstimate::of_bound(Some(0), TimeFormat::Ntp);
        assert_eq!((least.write(), least.bound_ns()), ([0x80, 1], 1));
        let unknown = ErrorEstimate::of_bound(None, TimeFormat::Ptp);
        assert_eq!(unknown.write(), [0x7f, 0xff]);
        // 1 ms is 4,294,968 units of 2^-32 s, rounded up: 132 · 2^15.
        let one = ErrorEstimate::of_bound(Some(1_000_000), TimeFormat::Ntp);
        assert_eq!(one.write(), [0x80 | 15, 132]);
    }

    proptest! {
        #[test]
        fn times_come_back(unix_ns in -1_000_000_000_000_000_000_i64..8_000_000_000_000_000_000,
                           off_ns in -60_000_000_000_000_000_i64..60_000_000_000_000_000) {
            for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
                prop_assert_eq!(format.read(format.write(unix_ns), unix_ns + off_ns), Some(unix_ns));
            }
        }

        #[test]
        fn any_stamp_can_be_read(stamp: u64, near_ns: i64) {
            for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
                if let Some(ns) = format.read(stamp, near_ns) {
                    prop_assert!(ns.abs_diff(near_ns) <= (ERA_S as u64 / 2 + 1) * NS_PER_S as u64);
                }
            }
        }

        #[test]
        fn an_estimate_is_no_less_than_the_bound(bound_ns in 0..1_u64 << 60, bytes: [u8; 2]) {
            let estimate = ErrorEstimate::of_bound(Some(bound_ns), TimeFormat::Ntp);
            prop_assert!(estimate.bound_ns() >= bound_ns);
            prop_assert!(estimate.bound_ns() <= bound_ns + bound_ns / 100 + 1);
            prop_assert!(estimate.multiplier > 0);
            prop_assert_eq!(ErrorEstimate::read(bytes).write(), bytes);
            let _ = ErrorEstimate::read(bytes).bound_ns();
        }
    }
}
