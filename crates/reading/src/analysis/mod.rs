//! The analysis of two captures on several cores. The result is the same to the byte on any number of them.
//!
//! Plain captures are cut in time into stretches, which threads match; this one joins them. If the number of samples
//! before a stretch is known, and no samples are wanted, its pairs are counted as they are matched. Otherwise captures
//! are cut only on four and more cores, and the pairs are kept until their turn. Other captures, and all captures on
//! fewer cores, are read by a thread each, which decompresses, decodes and signs ahead of this one; this one gets the
//! same batches in the same order as on one core. A further thread takes the samples, unless the sink follows the
//! decisions.

mod clocks;
mod coordinator;
mod cuts;
mod joining;
mod missing;
mod read_ahead;
pub mod remote;
mod sample_writer;
pub(crate) mod second_look;
mod stretch_queue;
mod stretches;
mod threads;
mod twice;

pub use coordinator::{Answers, StretchError};

use crate::converted;
use crate::cores::Cores;
use crate::source::{CaptureInput, Extent};
use cuts::Side;
use read_ahead::ReadAhead;
use second_look::SecondLook;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use stretches::{PACKETS, Stretches};
use tailtrim_tail::analysis::{self, Analysis, AnalysisError, Options, Sink, Terms};
use tailtrim_tail::capture::CaptureError;

/// Least number of cores on which captures are cut although pairs have to be kept. On fewer cores, reading ahead is as
/// fast and takes a tenth of the memory: on two cores 10 million pairs took 0.47 s and 15 MB, cut 0.50 s and 120 MB, on
/// one core 0.64 s. It keeps three cores busy.
const CUT_FROM: usize = 4;

/// Threads that match where another one takes the samples: a sample takes longer to compress and to write than to
/// match, so that further ones would only wait, each with the pairs of a stretch (21 MB).
const FEEDING: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// If no pairs are kept, there are about so many stretches for each thread, so that all end at about the same time,
/// but none is longer than eight of [`PACKETS`].
const FOR_EACH: u64 = 4;
const LONGEST: u64 = 8 * PACKETS;

/// Estimate of a record's bytes: a small frame and its header.
const RECORD: u64 = 80;

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
    if jobs.get() == 1 {
        let (mut ingress, mut egress) = (ingress.capture, egress.capture);
        return analysis::analyze(&mut ingress, &mut egress, options, sink, progress);
    }
    let cores = Arc::new(Cores::new(jobs));
    // The core of this thread.
    let _working = cores.work();
    // Clocks are corrected from a packet of a number on, which is not known within a capture.
    let in_pieces = !options.clock_fit.corrects();
    if in_pieces && !sink.takes_samples() {
        let packets = packets_of(&ingress, jobs);
        if let Some(stretches) = stretches(&mut ingress, &mut egress, packets, options)?
            && stretches.begin_early()
            && let Some(analysis) =
                threads::analyze(&stretches, jobs, &cores, options, &mut progress)?
        {
            return Ok(analysis);
        }
    }
    if in_pieces
        && jobs.get() >= CUT_FROM
        && !sink.follows()
        && let Some(stretches) = stretches(&mut ingress, &mut egress, PACKETS, options)?
        && stretches.begin_at_a_cut()
    {
        if !sink.takes_samples() {
            return joining::analyze(&stretches, jobs, &cores, options, sink, progress);
        }
        return sample_writer::analyzed(sink, &cores, |sink| {
            joining::analyze(&stretches, jobs.min(FEEDING), &cores, options, sink, progress)
        });
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
    if !sink.takes_samples() || sink.follows() {
        return analysis::analyze(&mut ingress, &mut egress, options, sink, progress);
    }
    sample_writer::analyzed(sink, &cores, |sink| {
        analysis::analyze(&mut ingress, &mut egress, options, sink, progress)
    })
}

/// Packets of a stretch where no pairs are kept.
fn packets_of(ingress: &CaptureInput, jobs: NonZeroUsize) -> u64 {
    let size = ingress.plain.as_ref().map_or(0, |plain| plain.size);
    (size / RECORD / (FOR_EACH * jobs.get() as u64)).clamp(PACKETS, LONGEST)
}

/// The captures cut into stretches of so many packets, where they can be read from any place on and are long enough for
/// it.
fn stretches(
    ingress: &mut CaptureInput,
    egress: &mut CaptureInput,
    packets: u64,
    options: &Options,
) -> Result<Option<Stretches>, CaptureError> {
    let (terms, sides) = sides(ingress, egress, options)?;
    let sides = sides.filter(|_| terms.allow_stretches());
    Ok(sides.and_then(|sides| Stretches::of(sides, terms, packets, options)))
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
