//! The analysis of two captures on several cores. The result is the same to the byte on any number of them.
//!
//! Plain captures of which no samples are wanted are cut in time into stretches, which threads match and count; this one,
//! too, and joins them. Other captures are read by a thread each, which decompresses, decodes and signs ahead of this one;
//! this one gets the same batches in the same order as on one core. A further thread takes the samples, which take longer
//! to compress and to write than to match, unless the sink follows the decisions. Where both captures are short and no
//! samples are written, this thread reads them alone.

mod clocks;
mod coordinator;
mod cuts;
mod missing;
mod read_ahead;
pub mod remote;
mod sample_writer;
pub(crate) mod second_look;
mod stretches;
mod threads;
mod twice;

pub use coordinator::{Answers, StretchError};

use crate::converted;
use crate::cores::Cores;
use crate::source::{CaptureInput, Extent};
use cuts::{Lengths, Side};
use read_ahead::ReadAhead;
use second_look::SecondLook;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::thread;
use stretches::Stretches;
use tailtrim_tail::analysis::{self, Analysis, AnalysisError, Options, Sink, Terms};
use tailtrim_tail::capture::CaptureError;

/// Packets of a stretch. Those before it take 7 % of the time of the shortest one and 2 % of that of the longest one, whose
/// samples and signatures take 16 MB at most.
const PACKETS: RangeInclusive<u64> = 250_000..=1_000_000;

/// Threads that read a capture each. With no more cores than these, none is left for decompressing further ahead.
const READERS: usize = 2;

/// The cores that this process may use.
#[must_use]
pub fn all_cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Analyses two captures on at most so many cores. Otherwise as [`analysis::analyze`], with what
/// [a second look](second_look) says of the clocks and of packets in no pair.
///
/// # Errors
/// The errors of [`analysis::analyze`].
pub fn analyze<S: Sink + Send>(
    mut ingress: CaptureInput,
    mut egress: CaptureInput,
    jobs: NonZeroUsize,
    options: &Options,
    sink: &mut S,
    mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, AnalysisError> {
    let again = SecondLook::at(&ingress, &egress).map(|again| again.asked(options)).transpose()?;
    let twice = options.direction.is_some() || options.fit_clocks || options.lost > 0;
    if twice && again.is_none() {
        return Err(AnalysisError::Pipe);
    }
    if let (Some(again), Some(_)) = (&again, options.direction) {
        [ingress, egress] = [again.open(0)?, again.open(1)?];
    }
    let fitted;
    let options = if let (Some(again), true) = (&again, options.fit_clocks) {
        let clock_fit = again.clock_fit(options, jobs)?;
        fitted = Options { clock_fit, ..options.clone() };
        &fitted
    } else {
        options
    };
    let mut analysis = first_look(ingress, egress, jobs, options, sink, &mut progress)?;
    if let Some(again) = again {
        analysis = further_looks(again, analysis, jobs, options.clone(), sink, &mut progress)?;
    }
    converted::tell(&mut analysis.summary)?;
    Ok(analysis)
}

/// Reads the captures again for what a result does not say: once more in all where packets are there several times.
fn further_looks<S: Sink + Send>(
    mut again: SecondLook,
    mut analysis: Analysis,
    jobs: NonZeroUsize,
    mut options: Options,
    sink: &mut S,
    progress: &mut impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, AnalysisError> {
    let mut once_more = |again: &SecondLook, options: &Options, sink: &mut S| {
        let [ingress, egress] = [again.open(0)?, again.open(1)?];
        first_look(ingress, egress, jobs, options, sink, &mut *progress)
    };
    if let Ok(Some(copies_within_ns)) = again.later_copies(&analysis.summary, &options)
        && sink.start_again().map_err(AnalysisError::Sink)?
    {
        options.copies_within_ns = Some(copies_within_ns);
        analysis = once_more(&again, &options, sink)?;
    }
    if let Ok(Some(twice)) = again.twice(&analysis.summary, &options) {
        let all = analysis.summary.egress.packets;
        let told = again.tell_apart(&twice, &options).unwrap_or(false);
        if told && sink.start_again().map_err(AnalysisError::Sink)? {
            if twice.are_flows() {
                options.copies_within_ns = None;
            }
            if options.fit_clocks {
                // Corrections begin at packets by their number, of those that count.
                options.clock_fit = again.clock_fit(&options, jobs)?;
            }
            analysis = once_more(&again, &options, sink)?;
            twice.tell(Some(all), &mut analysis.summary);
        } else {
            again.apart = None;
            twice.tell(None, &mut analysis.summary);
        }
    }
    again.explain(&mut analysis, &options, jobs);
    if options.lost > 0 {
        analysis.lost_frames = Some(again.lost(&analysis, &options)?);
    }
    Ok(analysis)
}

fn first_look<S: Sink + Send>(
    mut ingress: CaptureInput,
    mut egress: CaptureInput,
    jobs: NonZeroUsize,
    options: &Options,
    sink: &mut S,
    mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, AnalysisError> {
    let writes_samples = sink.takes_samples() && !sink.follows();
    let is_short = ingress.extent.is_short() && egress.extent.is_short();
    if jobs.get() == 1 || is_short && !writes_samples {
        let (mut ingress, mut egress) = (ingress.capture, egress.capture);
        return analysis::analyze(&mut ingress, &mut egress, options, sink, progress);
    }
    let cores = Arc::new(Cores::new(jobs));
    // The core of this thread.
    let _working = cores.work();
    // Clocks are corrected from a packet of a number on, which is not known within a capture.
    if !options.clock_fit.corrects() && !sink.takes_samples() {
        let lengths =
            Lengths { part: 2 * jobs.get() as u64, least: *PACKETS.start(), most: *PACKETS.end() };
        if let Some(stretches) = stretches(&mut ingress, &mut egress, &lengths, options)?
            && let Some(analysis) = threads::analyze(&stretches, jobs, options, &mut progress)?
        {
            return Ok(analysis);
        }
    }
    let ahead = |source: CaptureInput| {
        if jobs.get() > READERS
            && let Some(spare) = source.spare
        {
            // It is not set yet.
            let _ = spare.set(Arc::clone(&cores));
        }
        let waits_for_others = matches!(source.extent, Extent::Unknown);
        ReadAhead::new(source.capture, waits_for_others, Arc::clone(&cores))
    };
    let (mut ingress, mut egress) = (ahead(ingress), ahead(egress));
    if !writes_samples {
        return analysis::analyze(&mut ingress, &mut egress, options, sink, progress);
    }
    sample_writer::analyzed(sink, &cores, |sink| {
        analysis::analyze(&mut ingress, &mut egress, options, sink, progress)
    })
}

/// The captures cut into stretches of these lengths, where they can be read from any place on and are long enough for
/// it.
fn stretches(
    ingress: &mut CaptureInput,
    egress: &mut CaptureInput,
    lengths: &Lengths,
    options: &Options,
) -> Result<Option<Stretches>, CaptureError> {
    let (terms, sides) = sides(ingress, egress, options)?;
    let sides = sides.filter(|_| terms.allow_stretches());
    Ok(sides.and_then(|sides| Stretches::of(sides, terms, lengths)))
}

/// The terms that the first records settle, and the sides if both captures can be read from any place on.
fn sides(
    ingress: &mut CaptureInput,
    egress: &mut CaptureInput,
    options: &Options,
) -> Result<(Terms, Option<[Side; 2]>), CaptureError> {
    let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
    let side = |source: &CaptureInput, shift_ns: i64| {
        let (plain, track) = (source.plain.clone()?, source.capture.track()?);
        let (name, salvage) = (source.capture.name().to_owned(), source.capture.salvages());
        Some(Side { name, salvage, plain, track, shift_ns })
    };
    let sides = side(ingress, 0).zip(side(egress, terms.shift_ns()));
    Ok((terms, sides.map(|(ingress, egress)| [ingress, egress])))
}
