//! Samples that another thread takes: to compress and to write one takes longer than to match it.

use crate::cores::Cores;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::Builder;
use std::{io, mem, panic, thread};
use tailtrim_tail::analysis::{AnalysisError, Sample, Sink};

/// Samples that are handed over at a time.
const BLOCK: usize = 8_192;

/// Blocks that wait to be taken: 1 MB.
const WAITING: usize = 4;

/// Hands samples to the thread that has the sink.
pub(super) struct SampleWriter<'a> {
    samples: Vec<Sample>,
    hand_over: SyncSender<Vec<Sample>>,
    again: Receiver<Vec<Sample>>,
    cores: &'a Cores,
}

/// Analyses with a sink that another thread calls.
pub(super) fn analyzed<S: Sink + Send, T>(
    sink: &mut S,
    cores: &Cores,
    analyze: impl FnOnce(&mut SampleWriter<'_>) -> Result<T, AnalysisError>,
) -> Result<T, AnalysisError> {
    let (hand_over, samples) = sync_channel(WAITING);
    let (used, again) = channel();
    thread::scope(|scope| {
        let taking = Builder::new()
            .name("samples".to_owned())
            .spawn_scoped(scope, move || take(sink, &samples, &used, cores))
            .map_err(AnalysisError::Sink)?;
        let mut behind =
            SampleWriter { samples: Vec::with_capacity(BLOCK), hand_over, again, cores };
        let analysis = analyze(&mut behind);
        let rest = behind.send().map_err(AnalysisError::Sink);
        drop(behind);
        match cores.lend(|| taking.join()) {
            Ok(Ok(())) => rest.and(analysis),
            // These samples came before whatever else ended the analysis.
            Ok(Err(error)) => Err(AnalysisError::Sink(error)),
            Err(failure) => panic::resume_unwind(failure),
        }
    })
}

impl SampleWriter<'_> {
    #[cold]
    fn send(&mut self) -> io::Result<()> {
        let empty = self.again.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK));
        let sent = match self.hand_over.try_send(mem::replace(&mut self.samples, empty)) {
            Err(TrySendError::Full(samples)) => {
                self.cores.lend(|| self.hand_over.send(samples)).is_ok()
            }
            sent => sent.is_ok(),
        };
        // Why, the thread says.
        if sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

impl Sink for SampleWriter<'_> {
    #[inline]
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        self.samples.push(*sample);
        if self.samples.len() == BLOCK { self.send() } else { Ok(()) }
    }
}

/// Takes samples to the last one, or until one cannot be taken.
fn take(
    sink: &mut impl Sink,
    blocks: &Receiver<Vec<Sample>>,
    used: &Sender<Vec<Sample>>,
    cores: &Cores,
) -> io::Result<()> {
    for mut samples in blocks {
        let _working = cores.work();
        for sample in samples.drain(..) {
            sink.sample(&sample)?;
        }
        // At the end the analysis takes none back.
        drop(used.send(samples));
    }
    Ok(())
}
