//! Captures that are read again, or before their analysis, for the clocks of their taps: whatever the time between the stamps
//! of a packet. These are files.

use crate::source::{self, CaptureInput, Reading};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use tailtrim_tail::analysis::{Analysis, Options, Terms};
use tailtrim_tail::capture::CaptureError;
use tailtrim_tail::clock::{ClockFit, SampledSide, apart, clock_fit};
use tailtrim_tail::summary::Summary;

/// Packets of a hundred that both captures lack of each other, at least, where the captures are read again.
const LACKED: u64 = 1;

/// Fewest packets for which they are.
const FEWEST: u64 = 10;

/// Whether both captures have packets that the other one seems to lack.
fn lack_packets(summary: &Summary) -> bool {
    let Summary { ingress, egress, .. } = summary;
    let not_left = ingress.lost + ingress.beyond_window + ingress.cut;
    let not_entered = egress.unmatched + egress.cut;
    let many = |lacking: u64, of: u64| lacking >= FEWEST && lacking * 100 >= of * LACKED;
    many(not_left, ingress.packets) && many(not_entered, egress.packets)
}

/// Adds warnings to an analysis if packets that seem lost have left, but with stamps too far apart to be matched.
///
/// # Errors
/// The captures cannot be read again.
pub fn look_again(
    analysis: &mut Analysis,
    captures: [&Path; 2],
    readings: &[Reading; 2],
    options: &Options,
    jobs: NonZeroUsize,
) -> Result<(), CaptureError> {
    if !lack_packets(&analysis.summary) || !captures.iter().all(|capture| capture.is_file()) {
        return Ok(());
    }
    let [ingress, egress] = sampled(captures, readings, options, jobs)?;
    let found = apart(&ingress, &egress, options.window);
    if !found.is_empty() {
        let warnings = &mut analysis.summary.warnings;
        // Those say why.
        warnings.retain(|warning| !["no_samples", "egress_ended_early"].contains(&warning.code));
        warnings.splice(..0, found);
    }
    Ok(())
}

/// Finds how to correct the clocks of two captures.
///
/// # Errors
/// The captures cannot be read.
pub fn fit(
    captures: [&Path; 2],
    readings: &[Reading; 2],
    options: &Options,
    jobs: NonZeroUsize,
) -> Result<ClockFit, CaptureError> {
    let [ingress, egress] = sampled(captures, readings, options, jobs)?;
    Ok(clock_fit(&ingress, &egress))
}

/// Some packets of both captures.
fn sampled(
    captures: [&Path; 2],
    readings: &[Reading; 2],
    options: &Options,
    jobs: NonZeroUsize,
) -> Result<[SampledSide; 2], CaptureError> {
    let [ingress, egress] = [0, 1].map(|side| source::open(captures[side], readings[side].clone()));
    let (mut ingress, mut egress) = (ingress?, egress?);
    let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
    let read = |mut input: CaptureInput, shift_ns: i64| {
        SampledSide::read(&mut input.capture, terms.signer(), shift_ns)
    };
    if jobs.get() == 1 {
        return Ok([read(ingress, 0)?, read(egress, terms.shift_ns())?]);
    }
    thread::scope(|scope| {
        let ahead = thread::Builder::new().spawn_scoped(scope, || read(ingress, 0));
        let left = read(egress, terms.shift_ns())?;
        let entered = match ahead.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(entered)) => entered?,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => read(source::open(captures[0], readings[0].clone())?, 0)?,
        };
        Ok([entered, left])
    })
}
