//! The late packets of a run and the stalls that delayed them.

/// A time during which packets waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// When the first packet that waited arrived, after the first ingress stamp.
    pub arrival_ns: i64,
    /// Number of that packet among the samples.
    pub packet: usize,
    /// When the wait ended, on the axis of arrivals: the departure less the median latency.
    pub end_ns: i64,
}

impl Stall {
    /// Delay of the packet that waited longest.
    #[must_use]
    pub fn delay_ns(&self) -> i64 {
        self.end_ns - self.arrival_ns
    }
}

/// The late packets of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// The median latency.
    pub median_ns: i64,
    /// Packets with a latency above this are late.
    pub threshold_ns: i64,
    /// The number of late packets.
    pub packets: u64,
    /// The stalls that they waited for, in order of time.
    pub stalls: Vec<Stall>,
}

/// A bin of the distribution belongs to its body while it holds this part of the fullest one. A normal law falls to
/// that at 3.5 standard deviations.
const BODY: u64 = 500;

/// So many bins in a row that hold less end the body. A bin is as wide as the middle half, so that a second part of the
/// body is found up to 16 of these away: published ones are at three times the median (see the test).
const SPARSE: usize = 16;

/// Narrower bins would show the resolution of stamps instead of the distribution: two steps of 12.5 ns, that of the
/// published captures (Intel X552).
const NARROWEST_NS: i64 = 25;

/// The late packets among samples (ingress stamp, egress stamp) in order of the ingress stamp.
#[must_use]
pub fn late(samples: &[(i64, i64)]) -> Late {
    if samples.is_empty() {
        return Late { median_ns: 0, threshold_ns: 0, packets: 0, stalls: Vec::new() };
    }
    let mut latencies: Vec<i64> = samples.iter().map(|(in_ns, out_ns)| out_ns - in_ns).collect();
    latencies.sort_unstable();
    let median_ns = latencies[latencies.len() / 2];
    let threshold_ns = end_of_body(&latencies, median_ns);
    let stalls = stalls_above(samples, median_ns, threshold_ns);
    let packets = (latencies.len() - latencies.partition_point(|ns| *ns <= threshold_ns)) as u64;
    Late { median_ns, threshold_ns, packets, stalls }
}

/// The stalls of packets with a higher latency than this.
pub(super) fn stalls_above(
    samples: &[(i64, i64)],
    median_ns: i64,
    threshold_ns: i64,
) -> Vec<Stall> {
    let first_ns = samples.first().map_or(0, |sample| sample.0);
    let mut stalls: Vec<Stall> = Vec::new();
    let mut busy_until_ns = i64::MIN;
    for (packet, &(in_ns, out_ns)) in samples.iter().enumerate() {
        if out_ns - in_ns <= threshold_ns {
            continue;
        }
        // Arrived before the one that waits had left: it waits for the same end.
        if in_ns >= busy_until_ns {
            let end_ns = out_ns - median_ns - first_ns;
            stalls.push(Stall { arrival_ns: in_ns - first_ns, packet, end_ns });
        }
        busy_until_ns = busy_until_ns.max(out_ns);
    }
    stalls
}

/// Where the body of the distribution ends, going up from the median.
pub(super) fn end_of_body(sorted: &[i64], median_ns: i64) -> i64 {
    let quartile = |n: usize| sorted[(sorted.len() - 1) * n / 4];
    let width_ns = (quartile(3) - quartile(1)).max(NARROWEST_NS);
    let above = &sorted[sorted.partition_point(|ns| *ns < median_ns)..];
    let mut fullest = 0;
    let mut end_ns = median_ns;
    let mut start = 0;
    let mut sparse = 0;
    let mut edge_ns = median_ns;
    while start < above.len() && sparse < SPARSE {
        edge_ns += width_ns;
        let size = above[start..].partition_point(|ns| *ns < edge_ns);
        start += size;
        fullest = fullest.max(size as u64);
        if size as u64 * BODY >= fullest {
            (end_ns, sparse) = (edge_ns, 0);
        } else {
            sparse += 1;
        }
    }
    end_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_wait_for_one_end_are_one_stall() {
        let mut samples: Vec<(i64, i64)> = (0..1000).map(|n| (n * 1000, n * 1000 + 100)).collect();
        // A stall until 505,500: six packets leave one behind the other.
        for (n, sample) in samples[500..506].iter_mut().enumerate() {
            sample.1 = 505_500 + 100 * (n as i64 + 1);
        }
        let late = late(&samples);
        assert_eq!(late.median_ns, 100);
        assert_eq!(late.stalls, [Stall { arrival_ns: 500_000, packet: 500, end_ns: 505_500 }]);
        assert_eq!(late.stalls[0].delay_ns(), 5_500);
        assert_eq!(late.packets, 6);
    }

    #[test]
    fn the_body_may_have_gaps() {
        // As published: most around 100, one in fifty around 300, the tail above that.
        let mut sorted: Vec<i64> = (0..10_000).map(|n| 100 + n % 40).collect();
        sorted.extend((0..200).map(|n| 290 + n % 10));
        sorted.extend([2_000, 3_000]);
        sorted.sort_unstable();
        let end_ns = end_of_body(&sorted, sorted[sorted.len() / 2]);
        assert!((300..2_000).contains(&end_ns), "{end_ns}");
    }
}
