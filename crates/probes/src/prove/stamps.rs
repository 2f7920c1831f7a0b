//! Quality of stamps: how many packets have one, in which steps, whether they go back, and how far the gaps between packets
//! are off, from those intended and from those at the other end.

use super::Verdict;
use super::side::{Stage, Stamps};
use serde::Serialize;

/// Differences that tell a resolution: of fewer random ones, the greatest common divisor is often a multiple of it. That of
/// ten is wrong once in a thousand times (the chance of a common factor 2 is 2^-10).
const FEWEST: usize = 10;

/// Stamps of one place in a stage.
pub(super) type Column = fn(&Stage) -> &Stamps;

/// Stamps of one place, of all packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stamped {
    /// Packets that were there.
    pub packets: usize,
    /// Of those, with a stamp.
    pub stamped: usize,
    /// Packets that arrived behind one that was sent later (RFC 4737, 3.3).
    pub reordered: usize,
    /// The steps in which stamps differ; `None` where too few do.
    pub resolution_ns: Option<i64>,
    /// Stamps that are before that of the packet sent in front, unless this one overtook it.
    pub backward: usize,
    /// By the rate of the packets.
    pub by_rate: Vec<AtRate>,
    /// The stamps that gaps were compared with.
    pub against: Option<String>,
}

/// The same, of packets at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AtRate {
    /// Packets a second.
    pub rate_pps: i64,
    /// As above.
    pub packets: usize,
    /// As above.
    pub stamped: usize,
    /// Distance of gaps from those intended.
    pub gap_error: Option<Errors>,
    /// Distance of gaps from those at the other end.
    pub against: Option<Errors>,
}

/// Errors of gaps, without their sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// The median.
    pub p50_ns: i64,
    /// The 99th percentile.
    pub p99_ns: i64,
    /// The largest.
    pub max_ns: i64,
}

impl Errors {
    fn of(mut errors: Vec<i64>) -> Option<Self> {
        errors.sort_unstable();
        let last = errors.len().checked_sub(1)?;
        // By nearest rank.
        let at = |percent: usize| errors[(errors.len() * percent).div_ceil(100) - 1];
        Some(Self { p50_ns: at(50), p99_ns: at(99), max_ns: errors[last] })
    }
}

/// Measures the stamps of one place. Gaps are compared with the first of `others` that has most of the packets.
pub(super) fn measured(
    stages: &[Stage],
    column: Column,
    packets: fn(&Stage) -> usize,
    others: &[(String, Column)],
) -> Stamped {
    let count = |column: Column| stages.iter().flat_map(column).flatten().count();
    let all = stages.iter().map(|stage| stage.process.len()).sum::<usize>();
    let other = others.iter().find(|(_, column)| 2 * count(*column) > all);
    let (mut steps, mut backward) = (Vec::new(), 0);
    let mut last: Option<(Option<usize>, i64)> = None;
    for stage in stages {
        let places = stage.places();
        for (place, stamp) in places.iter().zip(column(stage)) {
            let Some(stamp) = *stamp else { continue };
            if let Some((before, stamp_before)) = last.replace((*place, stamp)) {
                let step = stamp.wrapping_sub(stamp_before);
                steps.push(step);
                // Where it was stamped, a packet may have been overtaken already, or not yet.
                let overtaken = place.is_some() && before > *place;
                backward += usize::from(step < 0 && !overtaken);
            }
        }
        last = last.map(|(_, stamp)| (None, stamp));
    }
    let at_rate = |stage: &Stage| AtRate {
        rate_pps: 1_000_000_000 / stage.gap_ns,
        packets: packets(stage),
        stamped: column(stage).iter().flatten().count(),
        gap_error: Errors::of(gap_errors(column(stage), |_| Some(stage.gap_ns))),
        against: other.and_then(|(_, other)| {
            let other = other(stage);
            Errors::of(gap_errors(column(stage), |at| {
                Some(other[at]?.wrapping_sub(other[at - 1]?))
            }))
        }),
    };
    let differ = steps.iter().filter(|step| **step != 0).count() >= FEWEST;
    Stamped {
        packets: stages.iter().map(packets).sum(),
        stamped: count(column),
        reordered: stages.iter().map(Stage::reordered).sum(),
        resolution_ns: differ
            .then(|| steps.iter().fold(0, |gcd, step| divisor(gcd, step.saturating_abs()))),
        backward,
        by_rate: stages.iter().map(at_rate).collect(),
        against: other.map(|(name, _)| name.clone()),
    }
}

/// Errors of the gaps of successive packets; `expected`: the gap in front of a packet.
fn gap_errors(stamps: &Stamps, expected: impl Fn(usize) -> Option<i64>) -> Vec<i64> {
    let error = |at: usize| {
        let gap = stamps[at]?.wrapping_sub(stamps[at - 1]?);
        Some(gap.wrapping_sub(expected(at)?).saturating_abs())
    };
    (1..stamps.len()).filter_map(error).collect()
}

fn divisor(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// The verdict on stamps, and what speaks against them.
pub(super) fn judged(claimed: bool, told: &Stamped) -> (Verdict, Option<String>) {
    let missing = told.packets - told.stamped.min(told.packets);
    match (told.stamped, told.resolution_ns) {
        (0, _) if !claimed => (Verdict::Absent, None),
        (0, _) => (Verdict::Refuted, Some(format!("none of {} packets has a stamp", told.packets))),
        (2.., None) if missing == 0 => (Verdict::Refuted, Some("stamps are alike".to_owned())),
        _ if missing > 0 => (Verdict::Partial, Some(without(missing, told))),
        _ if told.backward > 0 => {
            (Verdict::Partial, Some(format!("{} stamps go back", told.backward)))
        }
        _ => (Verdict::Proven, None),
    }
}

/// Number of packets without a stamp, and at which rates.
fn without(missing: usize, told: &Stamped) -> String {
    let text = format!("{missing} of {} packets have no stamp", told.packets);
    let at = |at: &AtRate| {
        let missing = at.packets - at.stamped.min(at.packets);
        (missing > 0)
            .then(|| format!("{missing} of {} at {} kpps", at.packets, at.rate_pps / 1_000))
    };
    let rates: Vec<String> = told.by_rate.iter().filter_map(at).collect();
    if told.by_rate.len() < 2 { text } else { format!("{text}: {}", rates.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP_NS: i64 = 10_000;

    fn stage(sent: impl Fn(i64) -> Option<i64>, received: impl Fn(i64) -> Option<i64>) -> Stage {
        let mut stage = Stage::new(GAP_NS, 100);
        let all = |of: &dyn Fn(i64) -> Option<i64>| (0..100).map(of).collect();
        stage.process = all(&|n| Some(n * GAP_NS));
        stage.sent_nic = all(&sent);
        stage.received_nic = all(&received);
        stage.arrivals = (0..100).collect();
        stage
    }

    fn received(stage: &Stage) -> Stamped {
        let others: [(String, Column); 2] = [
            ("NIC of a".to_owned(), |stage| &stage.sent_nic),
            ("process at a".to_owned(), |stage| &stage.process),
        ];
        measured(std::slice::from_ref(stage), |stage| &stage.received_nic, Stage::arrived, &others)
    }

    #[test]
    fn good_stamps_are_proven() {
        // Every other packet is late by 40 ns at both ends; the receiver's clock is read up to 16 ns too late.
        let late = |n: i64| n * GAP_NS + n % 2 * 40;
        let told = received(&stage(|n| Some(late(n)), |n| Some(late(n) + 7_000 + n % 3 * 8)));
        assert_eq!((told.packets, told.stamped, told.backward), (100, 100, 0));
        assert_eq!((told.resolution_ns, told.against.as_deref()), (Some(8), Some("NIC of a")));
        let AtRate { gap_error, against, .. } = told.by_rate[0];
        assert_eq!(gap_error.map(|errors| errors.max_ns), Some(40 + 16));
        assert_eq!(against, Some(Errors { p50_ns: 8, p99_ns: 16, max_ns: 16 }));
        assert_eq!(told.by_rate[0].rate_pps, 100_000);
        assert_eq!(judged(true, &told), (Verdict::Proven, None));
    }

    /// Regression: a packet that was overtaken was told as a stamp that goes back.
    #[test]
    fn stamps_of_packets_that_overtake_each_other_do_not_go_back() {
        let swapped = |n: i64| match n {
            50 => Some(51 * GAP_NS),
            51 => Some(50 * GAP_NS),
            n => Some(n * GAP_NS),
        };
        let told = |of: fn(i64) -> Option<i64>, arrivals: &[usize]| {
            let mut stage = stage(Some, of);
            stage.arrivals[50..52].copy_from_slice(arrivals);
            let told = received(&stage);
            (told.reordered, told.backward)
        };
        // In front of the place of the stamps, behind it, and not at all.
        assert_eq!(told(swapped, &[51, 50]), (1, 0));
        assert_eq!(told(|n| Some(n * GAP_NS), &[51, 50]), (1, 0));
        assert_eq!(told(swapped, &[50, 51]), (0, 1));
    }

    #[test]
    fn a_card_that_stamps_nothing_is_refuted() {
        let told = received(&stage(|_| None, |_| None));
        assert_eq!((told.stamped, told.resolution_ns), (0, None));
        assert_eq!(told.against.as_deref(), Some("process at a"));
        let why = Some("none of 100 packets has a stamp".to_owned());
        assert_eq!(judged(true, &told), (Verdict::Refuted, why));
        assert_eq!(judged(false, &told), (Verdict::Absent, None));
    }

    #[test]
    fn missing_backward_and_equal_stamps_are_told() {
        let told = |of: fn(i64) -> Option<i64>| judged(true, &received(&stage(Some, of)));
        let every_other = told(|n| (n % 2 == 0).then_some(n));
        assert_eq!(every_other, (Verdict::Partial, Some("50 of 100 packets have no stamp".into())));
        let back = told(|n| Some(if n == 50 { 0 } else { n * GAP_NS }));
        assert_eq!(back, (Verdict::Partial, Some("1 stamps go back".into())));
        assert_eq!(told(|_| Some(7)), (Verdict::Refuted, Some("stamps are alike".into())));
        // A register that is never read again: one stamp, then none.
        let one = told(|n| (n == 0).then_some(5));
        assert_eq!(one, (Verdict::Partial, Some("99 of 100 packets have no stamp".into())));
    }
}
