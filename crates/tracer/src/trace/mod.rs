//! Recording the occupation of CPUs: by tracefs, else by perf, else only by counters of interrupts.
//!
//! Everything is set up before recording begins and taken down after it ended: to enable an event, the kernel
//! patches code and interrupts every CPU. Between [`Recorder::arm`] and [`Recorder::finish`] one word is
//! switched, and nothing is read from the measured CPUs' buffers.

mod drained;
mod file;
mod instance;
mod perf;
mod place;
mod read;
mod ring;
mod sampler;
mod source;
mod throttled;
mod tracefs;
mod wanted;

pub use file::{FileError, read, write};
pub use instance::Leftovers;
pub use ring::{Around, RING_BYTES, Ring};

use crate::clock::{self, Clock, Counter, CounterError, Phc};
use sampler::{Sampler, Samples};
use serde::Serialize;
use source::{Recording, Vocabulary};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use tailtrim_host::Cpus;
use tailtrim_sys::affinity;
use tailtrim_trace::Event;
use tailtrim_trace::axis::{Axis, AxisError, Reading};
use tailtrim_trace::lines::{Header, Source};

/// Memory of a CPU that only sends: its records are few and filtered.
const SENDER_KILOBYTES: u32 = 4_096;
/// From the most informative one to the one that works everywhere.
const SOURCES: [Source; 3] = [Source::Tracefs, Source::Perf, Source::Counters];

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// This host or user cannot.
    #[error("{0}")]
    Impossible(String),
    /// The counter is not a clock.
    #[error(transparent)]
    Counter(#[from] CounterError),
    /// The clock was set, or the counter stood.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// A setting of the instance.
    #[error(
        "{path}: cannot be set to {value:?}: {source}; expected tracefs to accept it; see dmesg and error_log"
    )]
    Set {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
        /// The system's error.
        source: io::Error,
    },
    /// A file of the instance.
    #[error("{path}: cannot be read: {source}; expected a readable file of tracefs")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel's buffer has an unexpected shape.
    #[error("CPU {cpu}: {problem}")]
    Damaged {
        /// CPU of the buffer.
        cpu: u32,
        /// The error.
        problem: String,
    },
}

impl TraceError {
    /// Whether this was known before anything was recorded.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        matches!(self, Self::Impossible(_) | Self::Counter(_) | Self::Set { .. })
    }
}

/// Parameters of a recording.
#[derive(Debug, Clone)]
pub struct Request {
    /// The CPUs to watch.
    pub cpus: Cpus,
    /// Kernel memory for the events of each. When it is full, tracefs loses the oldest ones and perf the newest.
    pub buffer_mb: u32,
    /// Source of the records; `None`: the first of tracefs, perf and counters that works.
    pub source: Option<Source>,
    /// The process of the device under test, whose quota of CPU time is looked at.
    pub device: Option<u32>,
}

/// Makes sure that there are CPUs, and that all of them are online.
///
/// # Errors
/// [`TraceError::Impossible`]: some are not.
pub fn check_online(cpus: &Cpus) -> Result<(), TraceError> {
    let online = online();
    if !cpus.is_empty() && cpus.is_subset(&online) {
        return Ok(());
    }
    let absent = cpus.minus(&online).named();
    Err(TraceError::Impossible(format!("{absent}: not online here; expected some of {online}")))
}

impl Request {
    /// CPUs that may send to the watched ones.
    fn sending(&self) -> Result<Cpus, TraceError> {
        check_online(&self.cpus)?;
        let (online, cpus) = (online(), &self.cpus);
        // Measured ones count as senders only where they can send to another one.
        Ok(if cpus.len() > 1 { online } else { online.minus(cpus) })
    }

    fn kilobytes(&self) -> u32 {
        self.buffer_mb.saturating_mul(1_024)
    }
}

/// Result of a recording.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The first line of the file.
    pub header: Header,
    /// In order of their starts.
    pub events: Vec<Event>,
    /// Clock of the events' stamps.
    pub counter: Counter,
    /// From its ticks to the packets' clock.
    pub axis: Axis,
    /// Counts of records and events.
    pub counts: Counts,
    /// Counters of interrupts of the measured CPUs, as a file.
    pub interrupts_csv: String,
}

/// Counts of records and events, and of those that could not be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Records read, those of senders included.
    pub records: u64,
    /// Events, by kind.
    pub events: BTreeMap<String, u64>,
    /// Interrupts of other CPUs whose sender is known.
    pub with_sender: u64,
    /// Those of them that were sent by this process or its parent: 0 where watching causes no disturbance.
    pub from_recorder: u64,
    /// Events that the kernel overwrote or dropped.
    pub lost: u64,
    /// The same on the senders' side: their receivers know no sender.
    pub senders_lost: u64,
    /// Entries without exits, and the other way round.
    pub unpaired: u64,
    /// Number of times at which another thread had the CPU than the one in the scheduler's records.
    pub hidden_switches: u64,
    /// Records of an unrequested kind.
    pub unknown: u64,
    /// Functions that ran for another CPU without an interrupt, or for the CPU itself.
    pub functions_without_interrupt: u64,
    /// Flushes of translations by the kernel's reason.
    pub flushes: BTreeMap<String, u64>,
    /// Instances of killed processes, which were removed now.
    pub leftovers_removed: Vec<String>,
    /// Sources that are more informative and cannot be used, with the reason.
    pub sources_refused: Vec<String>,
    /// Settings that this kernel refused, which only cost time or memory.
    pub refused: Vec<String>,
    /// Interrupts that appeared while recording and have no column in the file.
    pub interrupts_without_column: Vec<String>,
}

/// Has the calling thread, and those that it starts from now on, run on other CPUs than these, if there are any.
///
/// # Errors
/// There are no others that this process may use.
pub fn stay_off(cpus: &Cpus) -> io::Result<()> {
    let others: Vec<u32> = online().minus(cpus).iter().collect();
    if others.is_empty() {
        return Err(io::Error::other(
            "all CPUs are measured, so this process itself is part of the noise",
        ));
    }
    affinity::set(0, &others)
}

/// The CPUs of this host that are online.
#[must_use]
pub fn online() -> Cpus {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    text.trim().parse().unwrap_or_else(|_| Cpus::none())
}

/// Set up, and recording between [`arm`](Self::arm) and [`finish`](Self::finish). When it is dropped, nothing
/// is left in the kernel.
#[derive(Debug)]
pub struct Recorder {
    cpus: Cpus,
    device: Option<u32>,
    recording: Recording,
    vocabulary: Vocabulary,
    counts: Counts,
    begin: Option<Begin>,
}

/// Clocks and counters when recording began.
#[derive(Debug)]
struct Begin {
    reading: Reading,
    armed: u64,
    sampler: Sampler,
    clocks: Vec<Phc>,
    end: Option<End>,
}

/// Clocks and counters when recording ended.
#[derive(Debug)]
struct End {
    reading: Reading,
    disarmed: u64,
    /// Threads of this process, and of its parent.
    ours: HashSet<u32>,
}

impl Recorder {
    /// Sets everything up. CPUs are interrupted by this, not afterwards.
    ///
    /// # Errors
    /// What is missing on this host.
    pub fn prepare(request: &Request) -> Result<Self, TraceError> {
        let (cpus, sending) = (request.cpus.clone(), request.sending()?);
        let mut counts = Counts::default();
        let sources = match &request.source {
            Some(source) => std::slice::from_ref(source),
            None => &SOURCES[..],
        };
        let mut problem = None;
        for source in sources {
            let mut vocabulary = Vocabulary::default();
            let kilobytes = request.kilobytes();
            let wanted = source::Wanted { cpus: &cpus, sending: &sending, kilobytes };
            match Recording::open(*source, wanted, &mut vocabulary, &mut counts) {
                Ok(recording) => {
                    counts.refused.append(&mut vocabulary.refused);
                    let device = request.device;
                    return Ok(Self { cpus, device, recording, vocabulary, counts, begin: None });
                }
                Err(error) => {
                    counts.sources_refused.push(format!("{}: {error}", source.name()));
                    problem = Some(error);
                }
            }
        }
        Err(problem.unwrap_or_else(|| {
            TraceError::Impossible("no source of trace events is available".into())
        }))
    }

    /// Source of the records.
    #[must_use]
    pub fn source(&self) -> Source {
        self.recording.source()
    }

    /// Begins to record.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn arm(&mut self) -> Result<(), TraceError> {
        let counter = self.recording.counter();
        let (clocks, mut refused) = Phc::begin();
        self.counts.refused.append(&mut refused);
        let sampler = Sampler::start(counter, self.cpus.iter().collect(), self.device);
        let reading = clock::read_by(counter, Clock::Realtime);
        self.recording.start()?;
        self.begin = Some(Begin { reading, armed: counter.now(), sampler, clocks, end: None });
        Ok(())
    }

    /// Ends recording, and nothing else: later events are not part of the trace. Does nothing if recording was not
    /// begun.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn disarm(&mut self) -> Result<(), TraceError> {
        if self.begin.as_ref().is_some_and(|begin| begin.end.is_none()) {
            let end = self.stop()?;
            self.begin.as_mut().map(|begin| begin.end.replace(end));
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<End, TraceError> {
        let disarmed = self.recording.stop()?;
        let reading = clock::read_by(self.recording.counter(), Clock::Realtime);
        // Some of the threads end soon.
        Ok(End { reading, disarmed, ours: read::ours() })
    }

    /// Ends recording, reads everything and removes its setup from the kernel.
    ///
    /// # Errors
    /// It was not begun, the clock was set meanwhile, or the buffers are damaged.
    ///
    /// # Panics
    /// The sampling thread panicked.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        let Some(Begin { reading, armed, sampler, clocks, end }) = self.begin.take() else {
            return Err(TraceError::Impossible("the trace was not begun; arm it first".into()));
        };
        let counter = self.recording.counter();
        let End { reading: after, disarmed, ours } = match end {
            Some(end) => end,
            None => self.stop()?,
        };
        let Samples { readings, csv, unlisted, throttled } = sampler.finish();
        self.counts.interrupts_without_column = unlisted;
        let axis = Axis::fit(reading, after, &readings)?;
        let recorded = self.recording.recorded(&self.vocabulary.decoder, disarmed)?;
        let span = read::Span { axis: &axis, armed, disarmed, ours: &ours };
        let events = read::events(recorded, span, self.recording.source(), &mut self.counts);
        let mut chains = Vec::new();
        for clock in clocks {
            match clock.again() {
                Ok(chain) => chains.push(chain),
                Err(problem) => self.counts.refused.push(problem),
            }
        }
        let header = Header {
            schema: tailtrim_trace::lines::SCHEMA.to_owned(),
            error_ns: axis.error_ns,
            holes: self.counts.events.get("hole").copied().unwrap_or(0),
            cpus: self.cpus.to_string(),
            missing: std::mem::take(&mut self.vocabulary.missing),
            source: self.recording.source(),
            clocks: chains,
            armed_ns: Some(axis.ns(armed)),
            disarmed_ns: Some(axis.ns(disarmed)),
            throttled,
        };
        let counts = std::mem::take(&mut self.counts);
        Ok(Trace { header, events, counter, axis, counts, interrupts_csv: csv })
    }
}
