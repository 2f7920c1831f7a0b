//! Sent probes that came back with stamps: how far the gaps between them are off those intended, and which were late.

use crate::port::{Departed, Departing, Fate};
use serde::Serialize;
use tailtrim_stats::{DepartureLateness, LatenessSummary};
use tailtrim_wire::traffic::Probe;

/// The probes sent, by the stamps of sent packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransmitStamps {
    /// By those of the NIC, in its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<Stamped>,
    /// By those of the kernel, when it gave packets to the NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Stamped>,
}

/// The probes sent, by stamps of one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stamped {
    /// Probes with a stamp.
    pub stamped: u64,
    /// Probes without one.
    pub unstamped: u64,
    /// Distance of the gaps between probes from those intended, without its sign, as far as two that follow each other
    /// have a stamp.
    pub gap_error_ns: LatenessSummary,
    /// Late ones, where the clock of the stamps is that of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<Late>,
}

/// Probes that departed later than a bound after they were to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Late {
    /// The bound: as of departures that are noted as late.
    pub beyond_ns: i64,
    /// Their number.
    pub probes: u64,
}

/// Probes of one sender that came back.
#[derive(Debug, Default)]
pub(super) struct Back {
    kernel: Column,
    nic: Column,
    late: u64,
    pub(super) missed: u64,
    /// Probes that the kernel was to stamp.
    asked: u64,
    departing: Departing,
}

/// Stamps of one place.
#[derive(Debug, Default)]
struct Column {
    stamped: u64,
    /// The last one, and its probe.
    last: Option<(i64, Probe)>,
    gap_errors: DepartureLateness,
}

impl Column {
    fn record(&mut self, ns: i64, probe: Probe, step: u64) {
        self.stamped += 1;
        if let Some((before_ns, before)) = self.last.replace((ns, probe))
            && before.sequence + step == probe.sequence
        {
            let intended_ns = probe.intended_ns.wrapping_sub(before.intended_ns).cast_signed();
            let error_ns = ns.wrapping_sub(before_ns).wrapping_sub(intended_ns);
            self.gap_errors.record(error_ns.saturating_abs());
        }
    }

    fn add(&mut self, other: &Self) {
        self.stamped += other.stamped;
        self.gap_errors.merge(&other.gap_errors);
    }

    fn told(&self, sent: u64, late: Option<u64>) -> Stamped {
        Stamped {
            stamped: self.stamped,
            unstamped: sent.saturating_sub(self.stamped),
            gap_error_ns: self.gap_errors.summary(),
            late: late.map(|probes| Late { beyond_ns: super::stalls::STALL_NS, probes }),
        }
    }
}

impl Back {
    /// For probes of a port.
    pub(super) fn of(departing: Departing) -> Self {
        Self { departing, ..Self::default() }
    }

    /// Notes what came back; `step`: from one probe of this sender to its next. Returns a stamp of the kernel.
    pub(super) fn record(&mut self, Departed { probe, fate }: Departed, step: u64) -> Option<i64> {
        match fate {
            Fate::Missed => self.missed += 1,
            Fate::Nic(ns) => self.nic.record(ns, probe, step),
            Fate::Kernel(ns) => {
                self.kernel.record(ns, probe, step);
                let lateness_ns = ns - probe.intended_ns.cast_signed();
                self.late += u64::from(lateness_ns > super::stalls::STALL_NS);
                return Some(ns);
            }
        }
        None
    }

    /// Notes that so many probes were given together, of which the port took some.
    pub(super) fn gave(&mut self, together: usize, taken: usize) {
        let asked = self.departing.kernel_stamps_of(together);
        self.asked += if asked { taken as u64 } else { 0 };
    }

    /// Whether some of so many probes have not come back.
    pub(super) fn misses_some(&self, sent: u64) -> bool {
        let missed = self.missed;
        self.kernel.stamped + missed < self.asked
            || self.departing.nic_stamps && self.nic.stamped + missed < sent
    }

    pub(super) fn add(&mut self, other: Self) {
        self.kernel.add(&other.kernel);
        self.nic.add(&other.nic);
        self.late += other.late;
        self.missed += other.missed;
        self.departing = other.departing;
    }

    /// The result, for so many probes that were sent.
    pub(super) fn told(&self, sent: u64) -> Option<TransmitStamps> {
        let Departing { kernel_stamps, nic_stamps, .. } = self.departing;
        (kernel_stamps || nic_stamps).then(|| TransmitStamps {
            nic: nic_stamps.then(|| self.nic.told(sent, None)),
            kernel: kernel_stamps.then(|| self.kernel.told(sent, Some(self.late))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Departing =
        Departing { kernel_stamps: true, singly: true, nic_stamps: true, timed: None };

    fn heard(back: &mut Back, sequence: u64, fate: Fate) {
        let probe = Probe { flow: 0, sequence, intended_ns: sequence * 10_000 };
        back.record(Departed { probe, fate }, 1);
    }

    #[test]
    fn gaps_are_compared_where_two_that_follow_each_other_have_a_stamp() {
        let mut back = Back::of(BOTH);
        (0..7).for_each(|_| back.gave(1, 1));
        // A clock of its own; the third and the fifth find its register full.
        for (sequence, late_ns) in [(0, 0), (1, 40), (3, 0), (5, 900), (6, 870)] {
            heard(&mut back, sequence, Fate::Nic(7 + sequence as i64 * 10_000 + late_ns));
        }
        for sequence in 0..7 {
            let late_ns = if sequence == 4 { 20_001 } else { 20_000 };
            heard(&mut back, sequence, Fate::Kernel(sequence as i64 * 10_000 + late_ns));
        }
        assert!(back.misses_some(7));
        let TransmitStamps { nic, kernel } = back.told(7).unwrap();
        let (nic, kernel) = (nic.unwrap(), kernel.unwrap());
        assert_eq!((nic.stamped, nic.unstamped, nic.late), (5, 2, None));
        assert_eq!(
            (nic.gap_error_ns.max, nic.gap_error_ns.quantiles[0].value),
            (Some(40), Some(30))
        );
        assert_eq!((kernel.stamped, kernel.unstamped, kernel.gap_error_ns.max), (7, 0, Some(1)));
        assert_eq!(kernel.late, Some(Late { beyond_ns: 20_000, probes: 1 }));
    }

    #[test]
    fn what_was_missed_has_no_stamp_and_needs_none() {
        let mut back = Back::of(Departing { nic_stamps: false, ..BOTH });
        back.gave(1, 1);
        back.gave(1, 1);
        // Probes that are given together have no stamps.
        back.gave(2, 2);
        heard(&mut back, 0, Fate::Kernel(5));
        assert!(back.misses_some(2));
        heard(&mut back, 1, Fate::Missed);
        assert!(!back.misses_some(2));
        let mut all = Back::default();
        all.add(back);
        assert_eq!(all.missed, 1);
        let told = all.told(1).unwrap();
        assert_eq!((told.nic, told.kernel.unwrap().unstamped), (None, 0));
        assert_eq!(Back::of(Departing::default()).told(5), None);
    }
}
