//! Outcomes of packets that are in no pair, once the ends of both captures are known. One rule and one count serve the
//! native matcher and the engines.

use super::Options;
use crate::matching::Fate;
use crate::summary;
use std::collections::BTreeMap;
use tailtrim_stats::SlotCounts;

/// Outcome of a packet that is in no pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Ingress: never left.
    Lost,
    /// Ingress: the egress capture began after the packet entered, or ended before it must have left.
    InFlight,
    /// Ingress: not to be told from another packet in flight.
    Duplicate,
    /// Ingress: left after the window.
    BeyondWindow,
    /// Egress: a further egress packet of a matched one.
    Copy,
    /// Egress: nothing that entered explains it.
    Unmatched,
    /// Egress: its packet may have entered before the ingress capture began.
    EnteredBefore,
}

/// The stamps up to which the trim and the ends of the captures decide what became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// A packet that entered before that may have left before the egress capture began.
    pub lost_from_ns: i64,
    /// A packet that entered until then and was not seen to leave is lost. One that entered later may have
    /// left behind the end of the egress capture.
    pub lost_until_ns: i64,
    /// An unmatched packet that left until then may have entered before the ingress capture began.
    pub entered_before_until_ns: i64,
    /// Packets stamped until then lie within the trim; [`i64::MIN`] without a trim and without any match.
    pub trimmed_until_ns: i64,
}

impl Ends {
    /// Takes the longest latency and the end of the trim, `None` before the first match. The first ingress stamp is
    /// [`i64::MAX`] where there is none, the last egress stamp [`i64::MIN`]. `lost_from_ns` is what [`lost_from_ns`] gives.
    pub(super) fn new(
        options: &Options,
        lost_from_ns: i64,
        (longest_ns, trimmed_until_ns): (i64, Option<i64>),
        first_ingress_ns: i64,
        last_egress_ns: i64,
    ) -> Self {
        // Nothing matches after the window, and no packet took longer than the longest.
        let latest_ns = options.window.window_ns.min(longest_ns.saturating_add(1));
        // An empty egress capture says nothing of when it ended: taken as one that recorded to the end, a dead
        // device is told as one; a warning names the other possibility.
        let lost_until_ns = if options.watched_to_the_end || last_egress_ns == i64::MIN {
            i64::MAX
        } else {
            last_egress_ns.saturating_sub(latest_ns)
        };
        Self {
            lost_from_ns,
            lost_until_ns,
            entered_before_until_ns: first_ingress_ns.saturating_add(longest_ns),
            trimmed_until_ns: trimmed_until_ns.unwrap_or(i64::MIN),
        }
    }

    /// Outcome of a packet whose fate the matching decided. A packet that is still in flight at the end has the fate
    /// [`Fate::Lost`] here.
    #[must_use]
    pub fn outcome(&self, fate: Fate, stamp_ns: i64) -> Outcome {
        match fate {
            Fate::Lost if (self.lost_from_ns..=self.lost_until_ns).contains(&stamp_ns) => {
                Outcome::Lost
            }
            Fate::Lost => Outcome::InFlight,
            Fate::Duplicate => Outcome::Duplicate,
            Fate::BeyondWindow => Outcome::BeyondWindow,
            Fate::Copy => Outcome::Copy,
            Fate::Unmatched if stamp_ns <= self.entered_before_until_ns => Outcome::EnteredBefore,
            Fate::Unmatched => Outcome::Unmatched,
        }
    }

    /// Whether a packet lies within the trim.
    #[must_use]
    pub fn is_trimmed(&self, stamp_ns: i64) -> bool {
        stamp_ns <= self.trimmed_until_ns
    }
}

/// Two captures that are started, or stopped, one after the other, by hand or by a script, begin or end within about a
/// second.
pub(super) const TOGETHER_NS: i64 = 1_000_000_000;

/// When the egress capture began, if that was late, by the first stamps of both captures; otherwise [`i64::MIN`]: a device
/// may lose its first packets.
pub(super) fn lost_from_ns(options: &Options, entered_ns: i64, left_ns: Option<i64>) -> i64 {
    let late = |left_ns: &i64| left_ns.saturating_sub(entered_ns) > TOGETHER_NS;
    let left_ns = left_ns.filter(|left_ns| !options.watched_to_the_end && late(left_ns));
    left_ns.unwrap_or(i64::MIN)
}

/// Counts of the packets in no pair, by outcome.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Neither `packets` nor what pairs come to is counted here.
    pub(super) ingress: summary::Ingress,
    /// Neither `packets` nor what pairs come to is counted here.
    pub(super) egress: summary::Egress,
    /// Packets within the trim that were lost or left after the window.
    pub(super) trimmed_undelivered: u64,
    /// Lost packets by the second in which they entered, those within the trim included.
    pub(super) lost_by_second: BTreeMap<i64, u64>,
    /// Packets after the trim that were lost or left after the window, by when they entered.
    pub(super) undelivered: SlotCounts,
}

impl Tally {
    /// Packets that were lost after the trim.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ingress.lost
    }

    /// Counts packets that came to an outcome within the trim or after it. `millisecond` is that in which
    /// they entered, since the origin; only of [`Outcome::Lost`] and [`Outcome::BeyondWindow`] it is looked at.
    pub fn add(&mut self, outcome: Outcome, trimmed: bool, millisecond: i64, packets: u64) {
        let (ingress, egress) = (&mut self.ingress, &mut self.egress);
        let (count, trim) = match outcome {
            Outcome::Lost => (&mut ingress.lost, &mut ingress.trimmed),
            Outcome::InFlight => (&mut ingress.cut, &mut ingress.trimmed),
            Outcome::Duplicate => (&mut ingress.duplicate, &mut ingress.trimmed),
            Outcome::BeyondWindow => (&mut ingress.beyond_window, &mut ingress.trimmed),
            Outcome::Copy => (&mut egress.copy, &mut egress.trimmed),
            Outcome::Unmatched => (&mut egress.unmatched, &mut egress.trimmed),
            Outcome::EnteredBefore => (&mut egress.cut, &mut egress.trimmed),
        };
        *(if trimmed { trim } else { count }) += packets;
        match (outcome, trimmed) {
            (Outcome::Lost | Outcome::BeyondWindow, true) => self.trimmed_undelivered += packets,
            (Outcome::Lost | Outcome::BeyondWindow, false) => {
                self.undelivered.record(millisecond, packets);
            }
            _ => {}
        }
        if outcome == Outcome::Lost {
            *self.lost_by_second.entry(millisecond.div_euclid(1_000)).or_default() += packets;
        }
    }
}
