//! The service process behind the stamps of a first-come first-served device.
//!
//! A packet that finds the device idle takes the shortest latency: transport and service. One that comes
//! while another is served leaves a service time after it; where several are taken together, they leave together
//! after a service time for each. What is longer was waiting for the CPU.

use super::batch;
use serde::Serialize;

/// Service process of the device, inferred from the stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Service {
    /// Latency of a packet that does not wait.
    pub base_ns: i64,
    /// Time of that in which the CPU is busy with it alone: the spacing of departures under a queue, or what a
    /// batch takes for each of its packets.
    pub service_ns: i64,
    /// Packets that leave together, typically, where any do; 1 of a device that sends each alone.
    pub batch: u64,
    /// Busy periods: stretches in which each packet came before the one ahead of it had been served.
    pub busy_periods: u64,
    /// Packets that found another one waiting or served.
    pub queued: u64,
}

/// A packet's passage: when it came, when the CPU was free for it, when it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// When it came.
    pub arrival_ns: i64,
    /// When the packet ahead of it had been served, or when it came, whichever is later.
    pub begin_ns: i64,
    /// When it had been served.
    pub served_ns: i64,
    /// When it left: served and transported.
    pub departure_ns: i64,
    /// Time that its turn takes without stalls: the first packet of a batch has that of the whole batch, the others
    /// none.
    pub own_ns: i64,
}

impl Passage {
    /// Whether it came before the packet ahead of it had been served.
    #[must_use]
    pub fn queued(&self) -> bool {
        self.begin_ns > self.arrival_ns
    }

    /// Time from its turn until it had been served: service and stalls.
    #[must_use]
    pub fn taken_ns(&self) -> i64 {
        self.served_ns - self.begin_ns
    }

    /// Latency.
    #[must_use]
    pub fn latency_ns(&self) -> i64 {
        self.departure_ns - self.arrival_ns
    }
}

/// The service process and the passages of samples (ingress stamp, egress stamp), in the order in which
/// they left.
#[must_use]
pub fn passages(samples: &[(i64, i64)]) -> (Service, Vec<Passage>) {
    let ordered = in_order(samples);
    let mut latencies: Vec<i64> = ordered.iter().map(|sample| sample.1 - sample.0).collect();
    latencies.sort_unstable();
    // The shortest but for one in a thousand, which clock errors may have made. Of a normal law this is 3.1 standard
    // deviations below the median: its lower end.
    let base_ns = latencies.get(latencies.len() / 1000).copied().unwrap_or(0).max(0);
    based(ordered, base_ns)
}

/// The same where the latency of a packet that does not wait is known.
pub(super) fn passages_with(samples: &[(i64, i64)], base_ns: i64) -> (Service, Vec<Passage>) {
    based(in_order(samples), base_ns.max(0))
}

/// In the order in which they left.
fn in_order(samples: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut ordered = samples.to_vec();
    ordered.sort_by_key(|(arrival_ns, departure_ns)| (*departure_ns, *arrival_ns));
    ordered
}

fn based(ordered: Vec<(i64, i64)>, base_ns: i64) -> (Service, Vec<Passage>) {
    let spacing_ns = spacing_ns(&ordered, base_ns);
    let service_ns =
        batch::service_ns(&ordered, spacing_ns).map_or(spacing_ns, |ns| ns.min(base_ns));
    let transport_ns = base_ns - service_ns;
    let mut passages: Vec<Passage> = Vec::with_capacity(ordered.len());
    let mut busy_periods = 0;
    let mut queued = 0;
    for (arrival_ns, departure_ns) in ordered {
        let before_ns = passages.last().map_or(i64::MIN, |passage| passage.served_ns);
        let served_ns = departure_ns - transport_ns;
        let begin_ns = arrival_ns.max(before_ns);
        // Stamps that are early for this service are those of a device faster than its base for once.
        let begin_ns = begin_ns.min(served_ns);
        passages.push(Passage {
            arrival_ns,
            begin_ns,
            served_ns,
            departure_ns,
            own_ns: service_ns,
        });
        if before_ns > arrival_ns {
            queued += 1;
        } else {
            busy_periods += 1;
        }
    }
    let batch = if service_ns == spacing_ns {
        1
    } else {
        batch::share(&mut passages, spacing_ns, service_ns)
    };
    (Service { base_ns, service_ns, batch, busy_periods, queued }, passages)
}

/// The median spacing of departures of packets that came before the one ahead had left. The base latency where
/// none queued.
fn spacing_ns(ordered: &[(i64, i64)], base_ns: i64) -> i64 {
    let mut spacings: Vec<i64> = ordered
        .windows(2)
        .filter(|pair| pair[1].0 < pair[0].1 - base_ns)
        .map(|pair| pair[1].1 - pair[0].1)
        .collect();
    if spacings.is_empty() {
        return base_ns;
    }
    spacings.sort_unstable();
    spacings[spacings.len() / 2].clamp(0, base_ns)
}

#[cfg(test)]
mod tests {
    use super::passages_with;

    /// Clocks that disagree make latencies negative; one that queued then ended in a panic.
    #[test]
    fn a_negative_base_latency_counts_as_none() {
        let samples = [(0, -2_000), (10_000, 60_000), (10_500, 60_400), (90_000, 88_000)];
        let (service, passages) = passages_with(&samples, -2_000);
        assert_eq!((service.base_ns, passages.len()), (0, 4));
    }
}
