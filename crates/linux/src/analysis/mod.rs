//! The analysis of two captures on several cores: a thread for each capture reads, decompresses, decodes and signs ahead
//! of this one, which matches and counts, and one behind it takes the samples.
//!
//! This thread is given the same batches in the same order as on one core, so the result is the same to the byte, whatever
//! the captures hold.

mod ahead;
mod behind;
mod cores;

use crate::source::{Extent, Source};
use ahead::Ahead;
use cores::Cores;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use tailtrim_tail::analysis::{self, Analysis, AnalysisError, Options, Sink};

/// The cores that this process may use.
#[must_use]
pub fn all_cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Analyses two captures on at most so many cores; more than four change nothing. Otherwise as
/// [`analysis::analyze`].
///
/// # Errors
/// Those of [`analysis::analyze`].
pub fn analyze<S: Sink + Send>(
    ingress: Source,
    egress: Source,
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
    let ahead = |source: Source| {
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
