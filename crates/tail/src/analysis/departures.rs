//! When the generator was not up to its schedule: packets that say less of the device, or nothing.

/// Times in which the generator stood still or sent late probes, in ns of the ingress capture's clock. Each list is in
/// order, and both ends belong to a span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Departures {
    /// It stood still in the middle of sending. A packet with an ingress stamp of such a time may have waited in the
    /// generator's hands and not in the device. Each of them is set aside, late or not: to look at latencies would bend
    /// what is left.
    pub stalled: Vec<(i64, i64)>,
    /// It sent probes that were late. They are samples: the device had them to handle. But they came closer together than
    /// intended.
    pub late: Vec<(i64, i64)>,
}

impl Departures {
    /// Whether nothing is known to have been wrong.
    pub(super) fn are_well(&self) -> bool {
        self.stalled.is_empty() && self.late.is_empty()
    }

    pub(super) fn stalled_at(&self, ingress_ns: i64) -> bool {
        lies_in(&self.stalled, ingress_ns)
    }

    pub(super) fn late_at(&self, ingress_ns: i64) -> bool {
        lies_in(&self.late, ingress_ns)
    }
}

fn lies_in(spans: &[(i64, i64)], at_ns: i64) -> bool {
    let begun = spans.partition_point(|(from_ns, _)| *from_ns <= at_ns);
    begun > 0 && at_ns <= spans[begun - 1].1
}
