//! Findings of an analysis, no matter whether the native matcher or an engine matched the packets.

use super::latencies::Latencies;
use super::{Analysis, Options, Second, WorstPacket, report};
use crate::clock::stamps;
use crate::summary;
use crate::unmatched::Leftovers;
use tailtrim_stats::{Histogram, Ranked, SlotCounts, Worst};

/// Everything that the result is made of. Of the outcomes, the matched packets and the trimmed among
/// them are still to be added.
pub(super) struct Findings {
    pub(super) signature: summary::SignatureSettings,
    pub(super) taps: summary::Taps,
    pub(super) ingress: summary::Ingress,
    pub(super) egress: summary::Egress,
    /// Packets that have no stamp themselves, of ingress and egress.
    pub(super) unstamped: [u64; 2],
    /// Packets that could not be matched in their order although that was asked for.
    pub(super) unnumbered: u64,
    pub(super) trimmed_undelivered: u64,
    pub(super) undelivered: SlotCounts,
    pub(super) latencies: Latencies,
    pub(super) ingress_gaps: Histogram,
    pub(super) egress_gaps: Histogram,
    pub(super) seconds: Vec<Second>,
}

impl Findings {
    /// The result.
    pub(super) fn analysis(mut self, options: &Options) -> Analysis {
        let latencies = Ranked::new(&self.latencies.histogram);
        self.ingress.matched = latencies.count();
        self.ingress.stalled = self.latencies.stalled;
        self.egress.stalled = self.latencies.stalled;
        self.ingress.trimmed += self.latencies.trimmed;
        self.egress.matched = latencies.count();
        self.egress.trimmed += self.latencies.trimmed;
        let worst = std::mem::replace(&mut self.latencies.worst, Worst::new(0));
        let worst: Vec<WorstPacket> = worst
            .into_sorted()
            .into_iter()
            .map(|(_, index, sample)| WorstPacket { sample, index })
            .collect();
        self.set_unstamped_aside();
        let (summary, curve) = report::summarize(&self, options, &latencies, &worst);
        Analysis {
            summary,
            latencies,
            curve,
            ingress_gaps: self.ingress_gaps,
            egress_gaps: self.egress_gaps,
            delay_variation: self.latencies.delay_variation,
            worst,
            lost: Vec::new(),
            lost_frames: None,
            seconds: self.seconds,
            bursts: self.latencies.bursts,
            leftovers: Leftovers::default(),
        }
    }
}

impl Findings {
    /// The steps of the stamps at ingress and at egress, in ps.
    pub(super) fn resolutions_ps(&self) -> [u64; 2] {
        let sides =
            [(&self.ingress_gaps, &self.taps.ingress), (&self.egress_gaps, &self.taps.egress)];
        sides.map(|(gaps, tap)| stamps::resolution_ps(&Ranked::new(gaps), tap.unit_ps))
    }

    /// Takes packets whose other half has no stamp from the lost and the unmatched: they are in no pair for that reason.
    ///
    /// By number, since a packet without a stamp has no place among the others. So where packets were lost, too, the
    /// seconds of those that were not are unknown: the first ones are taken.
    fn set_unstamped_aside(&mut self) {
        let [entered, left] = self.unstamped;
        let (ingress, egress) = (&mut self.ingress, &mut self.egress);
        let mut found = ingress.lost.min(left);
        ingress.lost -= found;
        ingress.unstamped += found;
        let explained = egress.unmatched.min(entered);
        egress.unmatched -= explained;
        egress.unstamped += explained;
        for second in &mut self.seconds {
            let here = second.lost.min(found);
            second.lost -= here;
            found -= here;
        }
    }
}

/// Settings of the signature for the summary.
pub(super) fn signature(options: &Options, bytes: usize) -> summary::SignatureSettings {
    let Options { selection, rewrites, in_order, .. } = options;
    let masks = [("nat", rewrites.nat), ("tos", rewrites.tos), ("tunnel", rewrites.tunnel)];
    summary::SignatureSettings {
        selection: selection.as_ref().map(ToString::to_string),
        bytes,
        masks: masks.iter().filter(|(_, masked)| *masked).map(|(name, _)| *name).collect(),
        in_order: *in_order,
    }
}
