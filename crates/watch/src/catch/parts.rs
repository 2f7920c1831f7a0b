//! The parts of a round trip, and which of them is longer than usual.

use serde::Serialize;
use std::collections::VecDeque;
use tailtrim_roundtrip::Stamps;

/// So many answered probes tell what is usual: at ten probes a second those of the last seven seconds. Late ones do not
/// count.
const USUAL: usize = 64;

/// The fewest of which the median is told: the 95 % interval of the median of eight lies between their second and
/// seventh.
const ENOUGH: usize = 8;

/// Part of a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// In this host, from the application's call until the driver had the probe.
    OwnHostBefore,
    /// Between the hosts, and all that has no stamp.
    Network,
    /// In the far host, by its own report.
    Residence,
    /// In this host, from the driver until the application had the reply.
    OwnHostBehind,
}

impl Part {
    const ALL: [Self; 4] =
        [Self::OwnHostBefore, Self::Network, Self::Residence, Self::OwnHostBehind];
}

/// Time that each part took; without a stamp for it, it is in that of the network. All add up to the time from this
/// application to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts([Option<i64>; 4]);

impl Parts {
    /// The parts of an answered round trip.
    pub(crate) fn of(stamps: &Stamps) -> Option<Self> {
        let whole_ns = stamps.app_receive_ns? - stamps.app_send_ns;
        let before = stamps.sent_ns.map(|ns| ns - stamps.app_send_ns);
        let behind = stamps.received_ns.zip(stamps.app_receive_ns).map(|(from, to)| to - from);
        let between_ns = whole_ns - before.unwrap_or(0) - behind.unwrap_or(0);
        // A far host that had the probe for longer than that, or shorter than no time, is not believed.
        let residence = stamps.residence_ns().filter(|ns| (0..=between_ns).contains(ns));
        let network_ns = between_ns - residence.unwrap_or(0);
        Some(Self([before, Some(network_ns), residence, behind]))
    }

    /// The time of one, if there are stamps for it.
    pub(crate) fn of_part(&self, part: Part) -> Option<i64> {
        self.0[part as usize]
    }
}

/// Usual times of the parts of the round trips to a target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usual(VecDeque<Parts>);

/// A part of a late round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Share {
    /// The part.
    pub(crate) name: Part,
    /// Time that it took.
    pub(crate) ns: i64,
    /// Time that it usually takes; `None`: there were too few round trips.
    pub(crate) usual_ns: Option<i64>,
    /// Its share of what the round trip took longer than usual, in millionths.
    pub(crate) share_ppm: i64,
}

impl Usual {
    /// Enters an answered round trip that was not late.
    pub(crate) fn enter(&mut self, parts: Parts) {
        if self.0.len() == USUAL {
            self.0.pop_front();
        }
        self.0.push_back(parts);
    }

    fn ns(&self, part: Part) -> Option<i64> {
        let mut known: Vec<i64> = self.0.iter().filter_map(|parts| parts.of_part(part)).collect();
        known.sort_unstable();
        (known.len() >= ENOUGH).then(|| known[known.len() / 2])
    }

    /// The parts of a late round trip with their shares of the delay, the largest first.
    pub(crate) fn shares(&self, late: &Parts) -> Vec<Share> {
        let known = Part::ALL.into_iter().filter_map(|part| Some((part, late.of_part(part)?)));
        let mut shares: Vec<(i64, Share)> = known
            .map(|(name, ns)| {
                let usual_ns = self.ns(name);
                let more_ns = (ns - usual_ns.unwrap_or(0)).max(0);
                (more_ns, Share { name, ns, usual_ns, share_ppm: 0 })
            })
            .collect();
        let all_ns: i64 = shares.iter().map(|(more_ns, _)| more_ns).sum();
        for (more_ns, share) in &mut shares {
            let ppm = i128::from(*more_ns) * 1_000_000 / i128::from(all_ns.max(1));
            share.share_ppm = ppm as i64;
        }
        shares.sort_by_key(|(more_ns, _)| std::cmp::Reverse(*more_ns));
        shares.into_iter().map(|(_, share)| share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(before_ns: i64, there_ns: i64, residence_ns: i64, behind_ns: i64) -> Stamps {
        let received_ns = before_ns + there_ns + residence_ns + 500;
        Stamps {
            sent_ns: Some(before_ns),
            // The far host has another clock.
            far_received_ns: Some(9_000),
            far_sent_ns: Some(9_000 + residence_ns),
            received_ns: Some(received_ns),
            app_receive_ns: Some(received_ns + behind_ns),
            ..Stamps::default()
        }
    }

    #[test]
    fn the_part_that_is_longer_than_usual_comes_first() {
        let mut usual = Usual::default();
        for number in 0..ENOUGH as i64 {
            usual.enter(Parts::of(&stamps(20, 5_000 + number, 300, 40)).unwrap());
        }
        for (late, part, share_ppm) in [
            (stamps(20, 9_000, 300, 40), Part::Network, 1_000_000),
            (stamps(20, 5_004, 3_300, 1_040), Part::Residence, 750_000),
            (stamps(820, 5_004, 300, 40), Part::OwnHostBefore, 1_000_000),
            (stamps(20, 5_004, 300, 4_040), Part::OwnHostBehind, 1_000_000),
        ] {
            let parts = Parts::of(&late).unwrap();
            let shares = usual.shares(&parts);
            assert_eq!((shares[0].name, shares[0].share_ppm), (part, share_ppm));
            let whole_ns = late.app_receive_ns.unwrap();
            assert_eq!(shares.iter().map(|share| share.ns).sum::<i64>(), whole_ns);
        }
    }

    #[test]
    fn what_has_no_stamp_or_is_impossible_counts_as_network() {
        let of = |stamps: Stamps| Parts::of(&stamps).unwrap();
        let bare = of(Stamps { sent_ns: None, received_ns: None, ..stamps(20, 400, 100, 40) });
        assert_eq!(bare.0, [None, Some(960), Some(100), None]);
        let boasting = of(Stamps { far_sent_ns: Some(99_000), ..stamps(20, 400, 100, 40) });
        assert_eq!(boasting.of_part(Part::Residence), None);
        assert_eq!(boasting.of_part(Part::Network), Some(1_000));
        // Nothing is usual yet: all of each part counts.
        assert_eq!(Usual::default().shares(&bare)[0].usual_ns, None);
    }
}
