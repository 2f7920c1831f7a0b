//! Findings of an analysis, no matter whether the native matcher or an engine matched the packets.

use super::latencies::Latencies;
use super::{Analysis, Options, Second, WorstPacket, report};
use crate::signature::{Rewrites, Selection};
use crate::summary;
use tailtrim_stats::{Histogram, Ranked, SlotCounts, Worst};

/// Everything that the result is made of. Of the outcomes, the matched packets and the trimmed among
/// them are still to be added.
pub(super) struct Findings {
    pub(super) signature: summary::SignatureSettings,
    pub(super) taps: summary::Taps,
    pub(super) ingress: summary::Ingress,
    pub(super) egress: summary::Egress,
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
            seconds: self.seconds,
            bursts: self.latencies.bursts,
        }
    }
}

/// Settings of the signature for the summary.
pub(super) fn signature(
    selection: Option<&Selection>,
    rewrites: Rewrites,
    bytes: usize,
) -> summary::SignatureSettings {
    let masks = [("nat", rewrites.nat), ("tos", rewrites.tos), ("tunnel", rewrites.tunnel)];
    summary::SignatureSettings {
        selection: selection.map(ToString::to_string),
        bytes,
        masks: masks.iter().filter(|(_, masked)| *masked).map(|(name, _)| *name).collect(),
    }
}
