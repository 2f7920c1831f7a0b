//! A minute of a device that is tapped, as it is counted and written.

use crate::minute::{Counts, Minute, Sample};
use crate::values::Written;
use serde::Serialize;

/// Counts of the minute of a device that probes do not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tapped {
    /// Ingress packets that are not to be told from others in flight.
    pub duplicate: u64,
    /// Ingress packets that are copies of a mirror port.
    pub copy: u64,
    /// Ingress packets without a stamp.
    pub unstamped: u64,
    /// Packets that left in this minute.
    pub egress: Egress,
    /// Frames that the filter did not take, at both taps.
    pub foreign: u64,
    /// Frames that the kernel dropped, at the ingress and the egress tap: this host was too slow.
    pub dropped: [u64; 2],
    /// Time in which both taps recorded.
    pub tapped_ns: i64,
}

/// Outcomes of packets that left; all but `packets` add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Egress {
    /// Packets at the egress tap.
    pub packets: u64,
    /// The packet of an ingress packet.
    pub matched: u64,
    /// Explained by no ingress packet.
    pub unmatched: u64,
    /// A further packet of a matched ingress packet.
    pub copy: u64,
    /// Without a stamp.
    pub unstamped: u64,
    /// May have entered before the taps recorded.
    pub cut: u64,
}

/// A minute as it is written: one line of JSON.
#[derive(Serialize)]
pub(crate) struct TapLine<'a> {
    begin_ns: i64,
    /// All that follow up to `cut` but `disturbed`, which is among `matched`, add up to it.
    packets: u64,
    matched: u64,
    disturbed: u64,
    lost: u64,
    beyond_window: u64,
    duplicate: u64,
    copy: u64,
    unstamped: u64,
    cut: u64,
    egress: &'a Egress,
    foreign: u64,
    health: TapHealth,
    worst: Option<Entered>,
    #[serde(flatten)]
    values: Written,
}

#[derive(Serialize)]
struct TapHealth {
    tapped_ns: i64,
    ingress_dropped: u64,
    egress_dropped: u64,
    clock_stepped_ns: i64,
    stolen_ns: Option<u64>,
}

/// When the slowest packet entered, and its latency.
#[derive(Serialize)]
struct Entered {
    begin_ns: i64,
    latency_ns: i64,
}

impl<'a> TapLine<'a> {
    pub(crate) fn of(minute: &Minute, begin_ns: i64, tapped: &'a Tapped) -> Self {
        let Counts { due, answered, disturbed, late, lost, cut, .. } = minute.counts;
        let Tapped { duplicate, copy, unstamped, egress, foreign, dropped, tapped_ns } = tapped;
        Self {
            begin_ns,
            packets: due + duplicate + copy + unstamped,
            matched: answered,
            disturbed,
            lost,
            beyond_window: late,
            duplicate: *duplicate,
            copy: *copy,
            unstamped: *unstamped,
            cut,
            egress,
            foreign: *foreign,
            health: TapHealth {
                tapped_ns: *tapped_ns,
                ingress_dropped: dropped[0],
                egress_dropped: dropped[1],
                clock_stepped_ns: minute.health.clock_stepped_ns,
                stolen_ns: minute.health.stolen_ns,
            },
            worst: minute
                .worst
                .map(|Sample { begin_ns, latency_ns, .. }| Entered { begin_ns, latency_ns }),
            values: minute.values.written(),
        }
    }
}
