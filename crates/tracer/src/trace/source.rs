//! Sources of records, and their knowledge of this kernel's events.

use super::perf::Perf;
use super::read::RecordedBuffers;
use super::tracefs::Tracefs;
use super::{Counts, TraceError};
use crate::clock::Counter;
use std::fs;
use std::path::Path;
use tailtrim_host::Cpus;
use tailtrim_trace::format::Format;
use tailtrim_trace::lines::Source;
use tailtrim_trace::record::Decoder;

/// Parameters of a source.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) cpus: &'a Cpus,
    /// CPUs that may send to them.
    pub(super) sending: &'a Cpus,
    /// Of each measured CPU.
    pub(super) kilobytes: u32,
}

/// The events that this kernel has and how their records are read.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    pub(super) decoder: Decoder,
    pub(super) missing: Vec<String>,
    pub(super) refused: Vec<String>,
}

impl Vocabulary {
    /// Learns an event, `system/name`, from the folder of events. If this kernel lacks it, adds it to `missing`.
    pub(super) fn learn(
        &mut self,
        events: &Path,
        event: &str,
    ) -> Result<Option<Format>, TraceError> {
        let path = events.join(event).join("format");
        if !path.exists() {
            self.missing.push(event.replace('/', ":"));
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(|source| TraceError::Read { path, source })?;
        let learned = Format::parse(&text).map_err(|error| error.to_string()).and_then(|format| {
            self.decoder.add(&format).map_err(|error| error.to_string())?;
            Ok(format)
        });
        match learned {
            Ok(format) => Ok(Some(format)),
            Err(problem) => {
                self.missing.push(event.replace('/', ":"));
                self.refused.push(problem);
                Ok(None)
            }
        }
    }

    /// Fails if switches of threads cannot be recorded: everything else needs them.
    pub(super) fn check(&self) -> Result<(), TraceError> {
        if self.missing.iter().any(|event| event == "sched:sched_switch") {
            return Err(TraceError::Impossible(
                "this kernel has no event sched:sched_switch; expected one with CONFIG_EVENT_TRACING".into(),
            ));
        }
        Ok(())
    }
}

/// A source of records.
#[derive(Debug)]
pub(super) enum Recording {
    Tracefs(Tracefs),
    Perf(Perf),
    /// Only the sampler of interrupts, which every source has running.
    Counters,
}

impl Recording {
    /// Sets one up.
    pub(super) fn open(
        source: Source,
        wanted: Wanted<'_>,
        vocabulary: &mut Vocabulary,
        counts: &mut Counts,
    ) -> Result<Self, TraceError> {
        match source {
            Source::Tracefs => Tracefs::open(wanted, vocabulary, counts).map(Self::Tracefs),
            Source::Perf => Perf::open(wanted, vocabulary).map(Self::Perf),
            Source::Counters => Ok(Self::Counters),
        }
    }

    pub(super) fn source(&self) -> Source {
        match self {
            Self::Tracefs(_) => Source::Tracefs,
            Self::Perf(_) => Source::Perf,
            Self::Counters => Source::Counters,
        }
    }

    /// Clock of its records' stamps.
    pub(super) fn counter(&self) -> Counter {
        match self {
            Self::Tracefs(_) => Counter::Tsc,
            // perf has no clock that reads the counter itself.
            Self::Perf(_) | Self::Counters => Counter::MonotonicRaw,
        }
    }

    pub(super) fn start(&mut self) -> Result<(), TraceError> {
        match self {
            Self::Tracefs(tracefs) => tracefs.start(),
            Self::Perf(perf) => perf.start(),
            Self::Counters => Ok(()),
        }
    }

    /// Ends recording, and returns the time of that.
    pub(super) fn stop(&mut self) -> Result<u64, TraceError> {
        match self {
            Self::Tracefs(tracefs) => tracefs.stop(),
            Self::Perf(perf) => perf.stop(),
            Self::Counters => Ok(self.counter().now()),
        }
    }

    /// The records until `disarmed`.
    pub(super) fn recorded(
        &self,
        decoder: &Decoder,
        disarmed: u64,
    ) -> Result<RecordedBuffers, TraceError> {
        match self {
            Self::Tracefs(tracefs) => tracefs.recorded(decoder),
            Self::Perf(perf) => perf.recorded(decoder, disarmed),
            Self::Counters => Ok(RecordedBuffers::default()),
        }
    }
}
