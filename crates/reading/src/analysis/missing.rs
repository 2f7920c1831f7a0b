//! Packets that are missing together: the captures are read again for when, and of which flows.

use super::second_look::{SecondLook, each};
use std::ops::Range;
use tailtrim_tail::analysis::{Analysis, Options, Terms};
use tailtrim_tail::capture::CaptureError;
use tailtrim_tail::missing::{Holes, OF_FLOWS, of_flows, of_holes};
use tailtrim_tail::summary::{Summary, Warning};
use tailtrim_wire::flow::Flow;

/// Fewer lost packets are of no flow.
const LOST: u64 = 32;

impl SecondLook {
    /// Adds to an analysis holes of the captures, and flows that are missing as a whole.
    pub(super) fn tell_missing(&self, analysis: &mut Analysis, options: &Options) {
        let mut found = Vec::new();
        for side in [0, 1] {
            let Summary { ingress, egress, .. } = &analysis.summary;
            let (gaps, lacked) = if side == 0 {
                (&analysis.ingress_gaps, egress.unmatched)
            } else {
                (&analysis.egress_gaps, ingress.lost)
            };
            if Holes::are_likely(gaps, lacked) {
                found.extend(self.hole(side, &analysis.summary, options).ok().flatten());
            }
        }
        let summary = &mut analysis.summary;
        let told: u64 = found.iter().map(|hole| hole.count).sum();
        summary.warnings.extend(found);
        let explained = told * 2 > summary.ingress.lost || summary.is_negative();
        if summary.ingress.lost >= LOST && !explained {
            let flow = |link, head: &[u8], _| Flow::of_frame(link, head);
            if let Ok([ingress, egress]) = self.marked(options, OF_FLOWS, flow) {
                summary.warnings.extend(of_flows(&ingress, &egress, summary));
            }
        }
    }

    /// The holes of the capture of a side.
    fn hole(
        &self,
        side: usize,
        summary: &Summary,
        options: &Options,
    ) -> Result<Option<Warning>, CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let shifts_ns = [0, terms.shift_ns()];
        let [here, there] = if side == 0 { [ingress, egress] } else { [egress, ingress] };
        let mut holes = Holes::default();
        each(here, 0, terms.signer(), |_, record, _, _| {
            holes.add(record.stamp_ns.saturating_add(shifts_ns[side]));
            true
        })?;
        let holes = holes.unusual();
        let within: Vec<Range<i64>> = holes.iter().map(|[from, to]| *from..*to).collect();
        let mut packets = 0;
        each(there, 0, terms.signer(), |_, record, _, _| {
            let stamp_ns = record.stamp_ns.saturating_add(shifts_ns[1 - side]);
            packets += u64::from(within.iter().any(|hole| hole.contains(&stamp_ns)));
            true
        })?;
        Ok(of_holes(&holes, side, packets, summary))
    }
}
