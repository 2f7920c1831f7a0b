//! Recording what takes CPUs, by tracefs.
//!
//! Everything is set up before recording begins and taken down after it ended: to enable an event, the kernel
//! patches code and interrupts every CPU. Between [`Recorder::arm`] and [`Recorder::finish`] one word is
//! switched, and nothing is read from the measured CPUs' buffers.

mod file;
mod instance;
mod read;
mod sampler;
mod wanted;

pub use file::{FileError, read, write};

use crate::clock::{self, Clock, CounterError};
use crate::sys::{affinity, tsc};
use instance::Instance;
use sampler::{Sampler, Samples};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tailtrim_model::host::Cpus;
use tailtrim_model::trace::Event;
use tailtrim_model::trace::axis::{Axis, AxisError, Reading};
use tailtrim_model::trace::format::Format;
use tailtrim_model::trace::lines::Header;
use tailtrim_model::trace::page::Layout;
use tailtrim_model::trace::record::Decoder;

/// Memory of a CPU that only sends: its records are few and filtered.
const SENDER_KILOBYTES: u32 = 4_096;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// This host or user cannot.
    #[error("{0}")]
    Impossible(String),
    /// The counter is no clock.
    #[error(transparent)]
    Counter(#[from] CounterError),
    /// The clock was set, or the counter stood.
    #[error(transparent)]
    Axis(#[from] AxisError),
    /// A setting of the instance.
    #[error(
        "{path}: cannot be set to {value:?}: {source}; expected it of tracefs, look into dmesg and error_log"
    )]
    Set {
        /// The file.
        path: PathBuf,
        /// What was to be written.
        value: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file of the instance.
    #[error("{path}: cannot be read: {source}; expected it of tracefs")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The kernel's buffer has a shape that nobody expected.
    #[error("CPU {cpu}: {problem}")]
    Damaged {
        /// Whose buffer.
        cpu: u32,
        /// What is wrong.
        problem: String,
    },
}

impl TraceError {
    /// Whether it was clear before anything was recorded.
    #[must_use]
    pub fn is_impossible(&self) -> bool {
        matches!(self, Self::Impossible(_) | Self::Counter(_) | Self::Set { .. })
    }
}

/// What to record.
#[derive(Debug, Clone)]
pub struct Request {
    /// The CPUs to watch.
    pub cpus: Cpus,
    /// Kernel memory for the events of each; the oldest are lost when it is full.
    pub buffer_mb: u32,
}

/// What was recorded.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The first line of the file.
    pub header: Header,
    /// In order of their starts.
    pub events: Vec<Event>,
    /// From ticks to the packets' clock.
    pub axis: Axis,
    /// How much there was.
    pub counts: Counts,
    /// `interrupts.csv` of the measured CPUs.
    pub interrupts_csv: String,
}

/// How much there was, and what could not be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Records read, those of senders included.
    pub records: u64,
    /// Events, by kind.
    pub events: BTreeMap<String, u64>,
    /// Interrupts of other CPUs whose sender is known.
    pub with_sender: u64,
    /// Events that the kernel overwrote or dropped.
    pub lost: u64,
    /// The same on the senders' side: their receivers know no sender.
    pub senders_lost: u64,
    /// Entries without exits, and the other way round.
    pub unpaired: u64,
    /// Times when another thread had the CPU than the one that the scheduler's records say.
    pub hidden_switches: u64,
    /// Records of a kind that nobody asked for.
    pub unknown: u64,
    /// Functions that ran for another CPU without an interrupt, or for the CPU itself.
    pub functions_without_interrupt: u64,
    /// Flushes of translations by the kernel's reason.
    pub flushes: BTreeMap<String, u64>,
    /// Instances that processes left which were killed; removed now.
    pub leftovers_removed: Vec<String>,
    /// Settings that this kernel refused and that only cost time or memory.
    pub refused: Vec<String>,
    /// Interrupts that appeared while recording and have no column in `interrupts.csv`.
    pub interrupts_without_column: Vec<String>,
}

/// Has the calling thread, and those that it starts from now on, run beside these CPUs, if there are others.
///
/// # Errors
/// There are no others that this process may use.
pub fn stay_off(cpus: &Cpus) -> io::Result<()> {
    let others: Vec<u32> = online().minus(cpus).iter().collect();
    if others.is_empty() {
        return Err(io::Error::other("all CPUs are measured; this process disturbs them"));
    }
    affinity::set(0, &others)
}

fn online() -> Cpus {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    text.trim().parse().unwrap_or_else(|_| Cpus::none())
}

/// Set up, and recording between [`arm`](Self::arm) and [`finish`](Self::finish). When it is dropped, nothing
/// is left in tracefs.
#[derive(Debug)]
pub struct Recorder {
    cpus: Cpus,
    sending: Cpus,
    events: Instance,
    senders: Instance,
    decoder: Decoder,
    layout: Layout,
    missing: Vec<String>,
    counts: Counts,
    begin: Option<(Reading, u64, Sampler)>,
}

impl Recorder {
    /// Sets everything up. CPUs are interrupted by this, not afterwards.
    ///
    /// # Errors
    /// What is missing on this host.
    pub fn prepare(request: &Request) -> Result<Self, TraceError> {
        clock::check_counter()?;
        let online = online();
        let cpus = request.cpus.clone();
        if cpus.is_empty() || !cpus.is_subset(&online) {
            return Err(TraceError::Impossible(format!(
                "CPUs {cpus}: not online here; expected some of {online}"
            )));
        }
        let tracefs = instance::tracefs()?;
        let leftovers_removed = instance::remove_leftovers(&tracefs);
        // Those of measured CPUs count as senders only where they can send to another one.
        let sending = if cpus.len() > 1 { online.clone() } else { online.minus(&cpus) };
        let mut recorder = Self {
            events: Instance::create(&tracefs, "")?,
            senders: Instance::create(&tracefs, "-senders")?,
            decoder: Decoder::default(),
            layout: layout(&tracefs)?,
            missing: Vec::new(),
            counts: Counts { leftovers_removed, ..Counts::default() },
            begin: None,
            cpus,
            sending,
        };
        recorder.set_up(request.buffer_mb.saturating_mul(1_024))?;
        Ok(recorder)
    }

    fn set_up(&mut self, kilobytes: u32) -> Result<(), TraceError> {
        let clocks = self.events.get("trace_clock")?;
        if !clocks.contains("x86-tsc") {
            return Err(TraceError::Impossible(format!(
                "trace_clock: this kernel has {}; expected x86-tsc among them, which every x86 kernel since 3.8 has",
                clocks.trim()
            )));
        }
        for (instance, cpus, size) in [
            (&self.events, &self.cpus, kilobytes),
            (&self.senders, &self.sending, SENDER_KILOBYTES),
        ] {
            instance.set("trace_clock", "x86-tsc")?;
            instance.set("tracing_cpumask", &cpus.to_mask())?;
            instance.size(cpus, size)?;
        }
        for event in wanted::measured() {
            self.enable(&event, None)?;
        }
        let measured: Vec<u32> = self.cpus.iter().collect();
        for event in wanted::SENDERS {
            self.enable(event, Some(wanted::filter(event, &measured)))?;
        }
        if self.missing.iter().any(|event| event == "sched:sched_switch") {
            return Err(TraceError::Impossible(
                "this kernel has no event sched:sched_switch; expected one with CONFIG_EVENT_TRACING".into(),
            ));
        }
        Ok(())
    }

    /// Enables an event, of senders where there is a filter, or notes that this kernel lacks it.
    fn enable(&mut self, event: &str, filter: Option<String>) -> Result<(), TraceError> {
        let instance = if filter.is_some() { &self.senders } else { &self.events };
        if !instance.has(event) {
            self.missing.push(event.replace('/', ":"));
            return Ok(());
        }
        let text = instance.get(&format!("events/{event}/format"))?;
        let decodes = Format::parse(&text)
            .map_err(|error| error.to_string())
            .and_then(|format| self.decoder.add(&format).map_err(|error| error.to_string()));
        if let Err(problem) = decodes {
            self.missing.push(event.replace('/', ":"));
            self.counts.refused.push(problem);
            return Ok(());
        }
        // Without it all that is sent is recorded, and what concerns others passed over.
        if let Some(filter) = filter
            && let Err(error) = instance.set(&format!("events/{event}/filter"), &filter)
        {
            self.counts.refused.push(error.to_string());
        }
        instance.set(&format!("events/{event}/enable"), "1")
    }

    /// Begins to record.
    ///
    /// # Errors
    /// tracefs refuses.
    pub fn arm(&mut self) -> Result<(), TraceError> {
        let sampler = Sampler::start(self.cpus.iter().collect());
        let before = clock::read(Clock::Realtime);
        self.senders.start()?;
        self.events.start()?;
        self.begin = Some((before, tsc::ticks(), sampler));
        Ok(())
    }

    /// Ends recording, reads everything and removes what was set up.
    ///
    /// # Errors
    /// The clock was set meanwhile, or the buffers are damaged.
    ///
    /// # Panics
    /// The sampling thread panicked.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        let Some((before, armed, sampler)) = self.begin.take() else {
            return Err(TraceError::Impossible("the trace was not begun; arm it first".into()));
        };
        self.events.stop()?;
        let disarmed = tsc::ticks();
        self.senders.stop()?;
        let after = clock::read(Clock::Realtime);
        let Samples { readings, csv, unlisted } = sampler.finish();
        self.counts.interrupts_without_column = unlisted;
        let axis = Axis::fit(before, after, &readings)?;
        let events = read::events(&mut self, &axis, armed, disarmed)?;
        let header = Header {
            schema: tailtrim_model::trace::lines::SCHEMA.to_owned(),
            error_ns: axis.error_ns,
            holes: self.counts.events.get("hole").copied().unwrap_or(0),
            cpus: self.cpus.to_string(),
            missing: std::mem::take(&mut self.missing),
            armed_ns: Some(axis.ns(armed)),
            disarmed_ns: Some(axis.ns(disarmed)),
        };
        let counts = std::mem::take(&mut self.counts);
        Ok(Trace { header, events, axis, counts, interrupts_csv: csv })
    }
}

fn layout(tracefs: &Path) -> Result<Layout, TraceError> {
    let path = tracefs.join("events/header_page");
    let failed = |source| TraceError::Read { path: path.clone(), source };
    // In one read: this file ends after the first one, however little that asked for (seen on 6.18).
    let mut bytes = vec![0; 1 << 14];
    let length = File::open(&path).and_then(|mut file| file.read(&mut bytes)).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    Layout::parse(&text)
        .map_err(|error| TraceError::Impossible(format!("{}: {error}", path.display())))
}
