//! `tailtrim-agent trace`.

mod around;

use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::options::{one_of, time};
use crate::stop::{self, Ending};
use serde::Serialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tailtrim_host::Cpus;
use tailtrim_sys::placement;
use tailtrim_trace::lines::{Header, Source};
use tailtrim_tracer::trace::{self as recording, Counts, Recorder};

/// Interval at which the end, and clocks, are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Record what uses the CPUs: interrupts, softirqs, threads, and their senders.
///
/// Counters of interrupts are sampled ten times a second into interrupts.csv beside the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent trace --cpus 2,3 --out run/events.jsonl.zst --duration 10s\n  \
    tailtrim-agent trace --cpus 1 --out events.jsonl.zst   # until Ctrl-C\n  \
    tailtrim-agent trace --cpus 1 --last 30s --out around  # writes what standard input asks for")]
pub(crate) struct Trace {
    /// CPUs to watch, such as 1,3-5
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Cpus,
    /// Output file: JSON lines, compressed with zstd; with --last the folder of such files
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Keep only the last TIME, in memory. A line of standard input, such as [{"ingress_ns":5000000000,
    /// "from_ns":4500000000,"until_ns":5500000000}], lists the times of which events are wanted in INGRESS_NS-events.jsonl.zst;
    /// files that it does not list any more are removed. Needs tracefs
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "source")]
    pub(crate) last: Option<i64>,
    /// Process of the device under test; records when the CPU quota of its control group is used up
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Source of the records (default: the first one that works)
    #[arg(long, value_parser = one_of(SOURCES))]
    pub(crate) source: Option<Source>,
    /// Kernel buffer for the events of each CPU, in megabytes; a full buffer loses the oldest events (perf: the newest)
    #[arg(long, value_name = "MB", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) buffer: u32,
    /// Stop after this time, such as 10s or 500ms [default: Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<i64>,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

/// Sources of the records.
pub(crate) const SOURCES: &[(&str, &str, Source)] = &[
    ("tracefs", "An instance of tracefs, with stamps of the time-stamp counter", Source::Tracefs),
    (
        "perf",
        "perf_event_open, the same events; if tracefs is readable but instances cannot be made",
        Source::Perf,
    ),
    (
        "counters",
        "No events, only interrupts.csv; causes are inferred by statistics",
        Source::Counters,
    ),
];

#[derive(Serialize)]
struct TraceReport<'a> {
    file: &'a Path,
    interrupts: &'a Path,
    /// The first line of the file.
    trace: &'a Header,
    /// Clock of the events' stamps.
    counter: &'static str,
    counter_hz: u64,
    drift_ns: i64,
    #[serde(flatten)]
    counts: &'a Counts,
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Trace) -> Outcome {
    placement::gain_nothing();
    let wanted = recording::Request {
        cpus: request.cpus.clone(),
        buffer_mb: request.buffer,
        source: request.source,
        device: request.pid,
    };
    if let Some(last_ns) = request.last {
        return around::run(request, &wanted, last_ns);
    }
    let interrupts = request.out.with_file_name("interrupts.csv");
    let stopped = request.ending.watch()?;
    let away = recording::stay_off(&request.cpus);
    let mut recorder = Recorder::prepare(&wanted)?;
    // Opened now, so that an error does not come after an hour of recording. An earlier file is kept where nothing can
    // be recorded.
    for path in [&request.out, &interrupts] {
        File::create(path).or_unwritable(path, Exit::Usage)?;
    }
    recorder.arm()?;
    stop::after(request.duration, &stopped);
    events::ready();
    // On a CPU that is not measured.
    while !stopped.load(Ordering::Acquire) {
        thread::sleep(LOOK);
    }
    let mut trace = recorder.finish().map_err(Failure::disturbed)?;
    if let Err(error) = away {
        trace.counts.refused.push(error.to_string());
    }
    recording::write(&request.out, &trace.header, &trace.events)
        .or_unwritable(&request.out, Exit::Disturbed)?;
    fs::write(&interrupts, &trace.interrupts_csv).or_unwritable(&interrupts, Exit::Disturbed)?;
    let report = TraceReport {
        file: &request.out,
        interrupts: &interrupts,
        trace: &trace.header,
        counter: trace.counter.name(),
        counter_hz: trace.axis.frequency_hz(),
        drift_ns: trace.axis.drift_ns,
        counts: &trace.counts,
    };
    events::result("tailtrim.trace/1", &report)
}
