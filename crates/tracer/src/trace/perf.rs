//! Recording by `perf_event_open`: the same events, a buffer for each CPU, where tracefs can be read but has no
//! instance for us.
//!
//! All events of a CPU are in a group with one leader, so that one call, and one interrupt, begins and ends recording
//! there.

use super::read::{Buffer, RecordedBuffers, Step};
use super::source::{Vocabulary, Wanted};
use super::{SENDER_KILOBYTES, TraceError, place, wanted};
use crate::clock::Counter;
use std::fs;
use std::io;
use std::path::Path;
use tailtrim_host::Cpus;
use tailtrim_sys::perf::{self, Recorder};
use tailtrim_trace::page::Missed;
use tailtrim_trace::perf::{Item, items};
use tailtrim_trace::record::Decoder;

/// perf wakes its readers by such interrupts, so the kernel does not let it record their end
/// (`arch/x86/include/asm/trace/irq_vectors.h`); a beginning without an end says nothing.
const OF_PERF_ITSELF: &str = "irq_vectors/irq_work_";

/// The events of one CPU.
#[derive(Debug)]
struct OfCpu {
    cpu: u32,
    recorder: Recorder,
    tracepoints: Vec<perf::Tracepoint>,
}

/// An event to record, with its filter.
struct Tracepoint {
    name: String,
    id: u16,
    filter: Option<String>,
}

/// All CPUs.
#[derive(Debug)]
pub(super) struct Perf {
    measured: Vec<OfCpu>,
    sending: Vec<OfCpu>,
}

impl Perf {
    /// Sets everything up.
    pub(super) fn open(
        wanted: Wanted<'_>,
        vocabulary: &mut Vocabulary,
    ) -> Result<Self, TraceError> {
        let folder = place::events()?;
        let watched: Vec<u32> = wanted.cpus.iter().collect();
        let events = known(&folder, wanted::measured(), vocabulary, |_| None)?;
        let senders = wanted::SENDERS.map(str::to_owned);
        let senders =
            known(&folder, senders, vocabulary, |event| Some(wanted::filter(event, &watched)))?;
        vocabulary.check()?;
        let mut open = |cpus: &Cpus, kilobytes: u32, events: &[Tracepoint]| {
            let of_cpu = |cpu| OfCpu::open(cpu, kilobytes, events, &mut vocabulary.refused);
            cpus.iter().map(of_cpu).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            measured: open(wanted.cpus, wanted.kilobytes, &events)?,
            sending: open(wanted.sending, SENDER_KILOBYTES, &senders)?,
        })
    }

    pub(super) fn start(&mut self) -> Result<(), TraceError> {
        let mut all = self.sending.iter_mut().chain(&mut self.measured);
        all.try_for_each(|one| one.recorder.enable().map_err(|error| refused(one.cpu, &error)))
    }

    pub(super) fn stop(&mut self) -> Result<u64, TraceError> {
        let disable =
            |one: &mut OfCpu| one.recorder.disable().map_err(|error| refused(one.cpu, &error));
        self.measured.iter_mut().try_for_each(disable)?;
        let disarmed = Counter::MonotonicRaw.now();
        self.sending.iter_mut().try_for_each(disable)?;
        Ok(disarmed)
    }

    /// After [`stop`](Self::stop).
    pub(super) fn recorded(
        &self,
        decoder: &Decoder,
        disarmed: u64,
    ) -> Result<RecordedBuffers, TraceError> {
        let of = |all: &[OfCpu]| {
            let one = |one: &OfCpu| Ok((one.cpu, one.recorded(decoder, disarmed)?));
            all.iter().map(one).collect::<Result<Vec<_>, TraceError>>()
        };
        Ok(RecordedBuffers { measured: of(&self.measured)?, sending: of(&self.sending)? })
    }
}

/// Those that this kernel has.
fn known(
    folder: &Path,
    events: impl IntoIterator<Item = String>,
    vocabulary: &mut Vocabulary,
    filter: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Tracepoint>, TraceError> {
    let mut known = Vec::new();
    for name in events {
        if name.starts_with(OF_PERF_ITSELF) {
            vocabulary.missing.push(name.replace('/', ":"));
        } else if let Some(format) = vocabulary.learn(folder, &name)? {
            known.push(Tracepoint { id: format.id, filter: filter(&name), name });
        }
    }
    Ok(known)
}

impl OfCpu {
    fn open(
        cpu: u32,
        kilobytes: u32,
        wanted: &[Tracepoint],
        refusals: &mut Vec<String>,
    ) -> Result<Self, TraceError> {
        let failed = |error: io::Error| refused(cpu, &error);
        let recorder = Recorder::new(cpu, kilobytes as usize * 1_024).map_err(failed)?;
        let mut tracepoints = Vec::new();
        for tracepoint in wanted {
            let event = recorder.tracepoint(tracepoint.id, cpu).map_err(failed)?;
            // Without the filter all sent interrupts are recorded, and those to other CPUs are skipped later.
            if let Some(filter) = &tracepoint.filter
                && let Err(error) = event.filter(filter)
            {
                refusals.push(format!(
                    "perf, CPU {cpu}, {}: filter {filter:?}: {error}",
                    tracepoint.name
                ));
            }
            tracepoints.push(event);
        }
        Ok(Self { cpu, recorder, tracepoints })
    }

    fn recorded(&self, decoder: &Decoder, disarmed: u64) -> Result<Buffer, TraceError> {
        let mut buffer = Buffer::default();
        let (bytes, room) = self.recorder.records().map_err(|error| refused(self.cpu, &error))?;
        let mut told = 0;
        for item in items(bytes) {
            match item {
                Ok(Item::Sample { stamp, record }) => buffer.take(decoder, stamp, record),
                Ok(Item::Lost { stamp, count }) => {
                    told += count;
                    buffer.steps.push(Step::Lost(Missed::Count(count), stamp));
                }
                Ok(Item::Other) => buffer.unknown += 1,
                Err(error) => {
                    let problem = error.to_string();
                    return Err(TraceError::Damaged { cpu: self.cpu, problem });
                }
            }
        }
        // Losses at the end were not recorded, since there was no room.
        let lost: Option<u64> = self.tracepoints.iter().map(perf::Tracepoint::lost).sum();
        buffer.lost = lost.unwrap_or(told).max(told);
        let missed = match lost.map(|lost| lost.saturating_sub(told)) {
            Some(0) => None,
            Some(count) => Some(Missed::Count(count)),
            None => (!room).then_some(Missed::Some),
        };
        if let Some(missed) = missed {
            buffer.steps.push(Step::Lost(missed, disarmed));
        }
        Ok(buffer)
    }
}

fn refused(cpu: u32, error: &io::Error) -> TraceError {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let what = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "perf needs root or CAP_PERFMON to record kernel events (kernel.perf_event_paranoid is {})",
            paranoid.trim()
        ),
        Some(libc::ENOSYS) => "this kernel has no perf_event_open (CONFIG_PERF_EVENTS)".to_owned(),
        Some(libc::EMFILE) => "raise the limit of open files (ulimit -n)".to_owned(),
        Some(libc::ENOMEM) => "the buffer is too large: make it smaller".to_owned(),
        _ => "expected perf_event_open to record tracepoints of a CPU".to_owned(),
    };
    TraceError::Impossible(format!("CPU {cpu}: {error}; {what}"))
}
