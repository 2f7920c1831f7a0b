//! A second look for the clocks of the taps, whatever the time between the stamps of a packet.

use super::second_look::SecondLook;
use std::num::NonZeroUsize;
use std::thread;
use tailtrim_tail::analysis::{Analysis, Options, Terms};
use tailtrim_tail::capture::CaptureError;
use tailtrim_tail::clock::{BothBatched, ClockFit, SampledSide, apart, clock_fit};
use tailtrim_tail::summary::Summary;

/// Packets of a hundred that both captures lack of each other, at least, where the captures are read again.
const LACKED: u64 = 1;

/// Fewest packets for which they are.
const FEWEST: u64 = 10;

/// Whether both captures have packets that the other one seems to lack.
pub(super) fn lack_packets(summary: &Summary) -> bool {
    let Summary { ingress, egress, .. } = summary;
    let not_left = ingress.lost + ingress.beyond_window + ingress.cut;
    let not_entered = egress.unmatched + egress.cut;
    let many = |lacking: u64, of: u64| lacking >= FEWEST && lacking * 100 >= of * LACKED;
    many(not_left, ingress.packets) && many(not_entered, egress.packets)
}

/// Packets at the beginning of each capture that tell whether taps take stamps in batches.
const IN_BATCHES: u64 = 1 << 13;

impl SecondLook {
    /// Adds a warning to an analysis if both taps take stamps in batches.
    pub(super) fn tell_batches(&self, analysis: &mut Analysis, options: &Options) {
        let Some(batches) = BothBatched::of(analysis) else { return };
        let other_packets = || {
            let [ingress, egress] = self.marked(options, [IN_BATCHES; 2], |_, _, _| ()).ok()?;
            Some(batches.are_of_stamps(&ingress, &egress))
        };
        if batches.are_multiples(&analysis.latencies) || other_packets() == Some(true) {
            batches.tell(&mut analysis.summary);
        }
    }

    /// Adds warnings to an analysis if packets that seem lost have left, but with stamps too far apart to be matched, or if
    /// a clock was set back, and says whether that is so.
    pub(super) fn tell_clocks(
        &self,
        analysis: &mut Analysis,
        options: &Options,
        jobs: NonZeroUsize,
    ) -> Result<bool, CaptureError> {
        let told = analysis.summary.warnings.iter().any(|warning| warning.code == "clock_step");
        let untold = analysis.leftovers.set_back && !told;
        // The captures are read as they are; corrected stamps are not apart any more.
        if options.clock_fit.corrects() || !untold && !lack_packets(&analysis.summary) {
            return Ok(false);
        }
        let [ingress, egress] = self.both_sampled(options, jobs)?;
        let found = apart(&ingress, &egress, options.window);
        let are_apart = !found.is_empty();
        if are_apart {
            let warnings = &mut analysis.summary.warnings;
            // The others say why.
            warnings
                .retain(|warning| !["no_samples", "egress_ended_early"].contains(&warning.code));
            warnings.splice(..0, found);
        }
        Ok(are_apart)
    }

    /// Finds how to correct the clocks.
    pub(super) fn clock_fit(
        &self,
        options: &Options,
        jobs: NonZeroUsize,
    ) -> Result<ClockFit, CaptureError> {
        let [ingress, egress] = self.both_sampled(options, jobs)?;
        Ok(clock_fit(&ingress, &egress))
    }

    /// Some packets of both captures.
    fn both_sampled(
        &self,
        options: &Options,
        jobs: NonZeroUsize,
    ) -> Result<[SampledSide; 2], CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let read = |side: usize| {
            let shift_ns = if side == 0 { 0 } else { terms.shift_ns() };
            self.sampled(side, terms.signer(), shift_ns)
        };
        if jobs.get() == 1 {
            return Ok([read(0)?, read(1)?]);
        }
        thread::scope(|scope| {
            let ahead = thread::Builder::new().spawn_scoped(scope, || read(0));
            let left = read(1)?;
            let entered = match ahead.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(entered)) => entered?,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => read(0)?,
            };
            Ok([entered, left])
        })
    }
}
