//! Load, losses and latency at the taps, second by second.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Nanoseconds of a second.
pub(super) const SECOND_NS: i64 = 1_000_000_000;

/// Packets and bytes at the taps in one second, and their outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Second {
    /// Seconds since the first ingress stamp.
    pub second: i64,
    /// Frames and L2 bytes that entered.
    pub ingress_packets: u64,
    /// Bytes on the wire, without FCS, that entered.
    pub ingress_bytes: u64,
    /// Frames that left.
    pub egress_packets: u64,
    /// Bytes on the wire, without FCS, that left.
    pub egress_bytes: u64,
    /// Packets that entered and were lost, trimmed ones included.
    pub lost: u64,
    /// Samples that entered.
    pub samples: u64,
    /// The largest latency of those samples, in ns.
    pub max_latency_ns: Option<i64>,
}

/// Frames and bytes of one second at a tap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Frames.
    pub packets: u64,
    /// Bytes on the wire, without FCS.
    pub bytes: u64,
}

/// The millisecond since `origin_ns` that a stamp lies in.
pub(super) fn millisecond(stamp_ns: i64, origin_ns: i64) -> i64 {
    stamp_ns.saturating_sub(origin_ns).div_euclid(1_000_000)
}

/// The second since `origin_ns` that a stamp lies in.
pub(super) fn second(stamp_ns: i64, origin_ns: i64) -> i64 {
    stamp_ns.saturating_sub(origin_ns).div_euclid(SECOND_NS)
}

/// Puts together what is known of each second since the origin: loads of the ingress and the egress tap,
/// lost packets, and the number and the largest latency of the samples.
pub(super) fn by_second(
    [entered, left]: [&BTreeMap<i64, Load>; 2],
    lost: &BTreeMap<i64, u64>,
    maxima: &BTreeMap<i64, (u64, i64)>,
) -> Vec<Second> {
    let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
    for (&second, load) in entered {
        let row = seconds.entry(second).or_default();
        (row.ingress_packets, row.ingress_bytes) = (load.packets, load.bytes);
    }
    for (&second, load) in left {
        let row = seconds.entry(second).or_default();
        (row.egress_packets, row.egress_bytes) = (load.packets, load.bytes);
    }
    for (&second, &lost) in lost {
        seconds.entry(second).or_default().lost = lost;
    }
    for (&second, &(samples, max_latency_ns)) in maxima {
        let row = seconds.entry(second).or_default();
        (row.samples, row.max_latency_ns) = (samples, Some(max_latency_ns));
    }
    seconds.into_iter().map(|(second, row)| Second { second, ..row }).collect()
}
