//! The analysis of two captures on several cores. The result is the same to the byte on any number of them.
//!
//! On four and more, plain captures are cut in time into stretches, which several threads match; this one joins them. Of
//! others, and on fewer cores, a thread for each capture reads, decompresses, decodes and signs ahead of this one, which is given the same batches in
//! the same order as on one core. A further thread takes the samples.

mod ahead;
mod behind;
mod cuts;
mod joining;
pub mod remote;
mod stretches;
mod turns;

use crate::cores::Cores;
use crate::source::{Extent, Source};
use ahead::Ahead;
use cuts::Side;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use stretches::{PACKETS, Stretches};
use tailtrim_tail::analysis::{self, Analysis, AnalysisError, Options, Sink, Terms};
use tailtrim_tail::capture::CaptureError;

/// From so many cores on, captures are cut. Before that, reading ahead is as fast and takes a tenth of the memory: on two
/// cores 10 million pairs took 0.47 s and 15 MB, cut 0.50 s and 120 MB, on one core 0.64 s. It keeps three cores busy.
const CUT_FROM: usize = 4;

/// Threads that read a capture each. So many cores have nothing to spare for decompressing further ahead.
const READERS: usize = 2;

/// The cores that this process may use.
#[must_use]
pub fn all_cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Analyses two captures on at most so many cores. Otherwise as [`analysis::analyze`].
///
/// # Errors
/// Those of [`analysis::analyze`].
pub fn analyze<S: Sink + Send>(
    mut ingress: Source,
    mut egress: Source,
    jobs: NonZeroUsize,
    options: &Options,
    sink: &mut S,
    progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, AnalysisError> {
    if jobs.get() == 1 {
        let (mut ingress, mut egress) = (ingress.capture, egress.capture);
        return analysis::analyze(&mut ingress, &mut egress, options, sink, progress);
    }
    let cores = Arc::new(Cores::new(jobs));
    // The core of this thread.
    let _working = cores.work();
    if jobs.get() >= CUT_FROM
        && let Some(stretches) = stretches(&mut ingress, &mut egress, PACKETS, options)?
    {
        if !sink.takes_samples() {
            return stretches.analyze(jobs, &cores, options, sink, progress);
        }
        return behind::analyzed(sink, &cores, |sink| {
            stretches.analyze(jobs, &cores, options, sink, progress)
        });
    }
    let ahead = |source: Source| {
        if jobs.get() > READERS
            && let Some(spare) = source.spare
        {
            // It is not set yet.
            let _ = spare.set(Arc::clone(&cores));
        }
        let waits_for_others = matches!(source.extent, Extent::Unknown);
        Ahead::new(source.capture, waits_for_others, Arc::clone(&cores))
    };
    let (mut ingress, mut egress) = (ahead(ingress), ahead(egress));
    if !sink.takes_samples() {
        return analysis::analyze(&mut ingress, &mut egress, options, sink, progress);
    }
    behind::analyzed(sink, &cores, |sink| {
        analysis::analyze(&mut ingress, &mut egress, options, sink, progress)
    })
}

/// The captures cut into stretches of so many packets, where they can be read from any place on and are long enough for
/// it.
fn stretches(
    ingress: &mut Source,
    egress: &mut Source,
    packets: u64,
    options: &Options,
) -> Result<Option<Stretches>, CaptureError> {
    let (terms, sides) = sides(ingress, egress, options)?;
    Ok(sides.and_then(|sides| Stretches::of(sides, terms, packets, options)))
}

/// What the first records settle, and the captures where they can be read from any place on.
fn sides(
    ingress: &mut Source,
    egress: &mut Source,
    options: &Options,
) -> Result<(Terms, Option<[Side; 2]>), CaptureError> {
    let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
    let side = |source: &Source, shift_ns: i64| {
        let (plain, track) = (source.plain.clone()?, source.capture.track()?);
        let (name, salvage) = (source.capture.name().to_owned(), source.capture.salvages());
        Some(Side { name, salvage, plain, track, shift_ns })
    };
    let sides = side(ingress, 0).zip(side(egress, terms.shift_ns()));
    Ok((terms, sides.map(|(ingress, egress)| [ingress, egress])))
}
