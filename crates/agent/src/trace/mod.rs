//! `tailtrim-agent trace`.

mod around;
mod table;

use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::files;
use crate::options::{one_of, time};
use crate::output::{self, Document};
use crate::stop::{self, Ending};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tailtrim_audit::advice::{Advice, advice};
use tailtrim_cause::occupation::{Occupation, occupation};
use tailtrim_host::Cpus;
use tailtrim_sys::placement;
use tailtrim_trace::lines::{Header, Source};
use tailtrim_tracer::trace::{self as recording, Counts, Recorder};

/// Interval at which the end, and clocks, are looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Name and version of the result.
const SCHEMA: &str = "tailtrim.trace/1";
/// Begin of an earlier trace, which another one may replace.
const SCHEMA_FIRST: &[u8] = b"{\"schema\":\"tailtrim.events/";

/// Record what uses the CPUs: interrupts, softirqs, threads, and their senders.
///
/// It ends with a table: who had each CPU, how often and how long, and what to change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent trace --cpus 3 --duration 10s         # who had CPU 3, and what to change\n  \
    tailtrim-agent trace --cpus 2,3 --out run/events.jsonl.zst --duration 10s\n  \
    tailtrim-agent trace --cpus 1 --out events.jsonl.zst   # until Ctrl-C\n  \
    tailtrim-agent trace --cpus 1 --last 30s --out around  # writes what standard input asks for")]
pub(crate) struct Trace {
    /// CPUs to watch, such as 1,3-5
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Cpus,
    /// Output file for explain --trace: JSON lines, compressed with zstd, such as events.jsonl.zst. Counters of interrupts,
    /// for explain --interrupts, go to events.interrupts.csv beside it, ten readings a second. With --last the folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Keep only the last TIME, in memory. A line of standard input, such as [{"ingress_ns":5000000000,
    /// "from_ns":4500000000,"until_ns":5500000000}], lists the times of which events are wanted in INGRESS_NS-events.jsonl.zst;
    /// files that it does not list any more are removed. Needs tracefs
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["source", "json"], requires = "out")]
    pub(crate) last: Option<i64>,
    /// Process of the device under test, or of the application: its threads are told apart from others; records when the
    /// CPU quota of its control group is used up
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Source of the records (default: the first one that works)
    #[arg(long, value_parser = one_of(SOURCES))]
    pub(crate) source: Option<Source>,
    /// Kernel buffer for the events of each CPU, in megabytes; a full buffer loses the oldest events (perf: the newest)
    #[arg(long, value_name = "MB", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) buffer: u32,
    /// Stop after this time, such as 10s or 500ms [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<i64>,
    /// Print the result as JSON: what the table has, without the single events
    #[arg(long, conflicts_with = "events")]
    pub(crate) json: bool,
    /// Print JSON lines: ready, then result
    #[arg(long)]
    pub(crate) events: bool,
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
        "No events, only counters of interrupts; causes are inferred by statistics",
        Source::Counters,
    ),
];

#[derive(Serialize)]
struct TraceReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupts: Option<&'a Path>,
    /// The first line of the file.
    trace: &'a Header,
    /// Clock of the events' stamps.
    counter: &'static str,
    counter_hz: u64,
    drift_ns: i64,
    #[serde(flatten)]
    counts: &'a Counts,
    /// Use of each CPU; empty if there are only counters, or if it was not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpus: Vec<Occupation>,
    /// Changes against all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<Advice>,
}

/// Runs the verb and prints its table or events.
pub(crate) fn run(request: &Trace) -> Outcome {
    placement::gain_nothing();
    if let Some(pid) = request.pid.filter(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
        return Err(Failure::impossible(format!("--pid {pid}: no such process here")));
    }
    let wanted = recording::Request {
        cpus: request.cpus.clone(),
        buffer_mb: request.buffer,
        source: request.source,
        device: request.pid,
    };
    if let (Some(last_ns), Some(folder)) = (request.last, &request.out) {
        return around::run(request, folder, &wanted, last_ns);
    }
    let out = request.out.as_deref();
    let interrupts = out.map(interrupts_beside);
    for path in [out, interrupts.as_deref()].into_iter().flatten() {
        files::refuse_capture(path, |begin| begin.starts_with(SCHEMA_FIRST))?;
    }
    let stopped = request.ending.watch()?;
    let away = recording::stay_off(&request.cpus);
    let mut recorder = Recorder::prepare(&wanted)?;
    // Opened now, so that an error does not come after an hour of recording. An earlier file is kept where nothing can
    // be recorded.
    for path in [out, interrupts.as_deref()].into_iter().flatten() {
        File::create(path).or_unwritable(path, Exit::Usage)?;
    }
    let mut own = threads(request.pid);
    recorder.arm()?;
    stop::after(request.duration, &stopped);
    if request.events {
        events::ready();
    } else if request.duration.is_none() {
        output::note("note", "recording until Ctrl-C");
    }
    // On a CPU that is not measured.
    while !stopped.load(Ordering::Acquire) {
        thread::sleep(LOOK);
    }
    own.append(&mut threads(request.pid));
    let mut trace = recorder.finish().map_err(Failure::disturbed)?;
    if let Err(error) = away {
        trace.counts.refused.push(error.to_string());
    }
    if let (Some(out), Some(interrupts)) = (out, &interrupts) {
        recording::write(out, &trace.header, &trace.events).or_unwritable(out, Exit::Disturbed)?;
        fs::write(interrupts, &trace.interrupts_csv).or_unwritable(interrupts, Exit::Disturbed)?;
    }
    // A laboratory has the file explained, and wants the end of the trace soon.
    let summed_up = !request.events || out.is_none();
    let cpus = if summed_up { occupations(&request.cpus, &trace, &own) } else { Vec::new() };
    let known = cpus.iter().flat_map(|cpu| &cpu.occupants).filter_map(|one| one.known.as_ref());
    let mut told = BTreeSet::new();
    let checks = known.flat_map(|known| known.checks).copied().filter(|id| told.insert(*id));
    let report = TraceReport {
        file: out,
        interrupts: interrupts.as_deref(),
        trace: &trace.header,
        counter: trace.counter.name(),
        counter_hz: trace.axis.frequency_hz(),
        drift_ns: trace.axis.drift_ns,
        counts: &trace.counts,
        advice: advice(checks, request.cpus.iter()),
        cpus,
    };
    if request.events {
        events::result(SCHEMA, &report)
    } else if request.json {
        output::json(&Document { schema: SCHEMA, content: &report }, Exit::Success)
    } else {
        output::write(table::text(&report, &request.cpus), Exit::Success)
    }
}

/// The file of counters beside one of events: events.jsonl.zst has events.interrupts.csv.
fn interrupts_beside(out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".zst").unwrap_or(&name);
    let stem = [".jsonl", ".json"].iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem);
    out.with_file_name(format!("{stem}.interrupts.csv"))
}

/// Use of each of the CPUs; empty if there are only counters.
fn occupations(cpus: &Cpus, trace: &recording::Trace, own: &BTreeSet<u32>) -> Vec<Occupation> {
    match (trace.header.source, trace.header.armed_ns, trace.header.disarmed_ns) {
        (Source::Tracefs | Source::Perf, Some(from_ns), Some(until_ns)) => {
            let of = |cpu| occupation(&trace.events, cpu, (from_ns, until_ns), own);
            cpus.iter().map(of).collect()
        }
        _ => Vec::new(),
    }
}

/// The threads that a process has now.
fn threads(process: Option<u32>) -> BTreeSet<u32> {
    let listed = process.and_then(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok());
    let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    listed.into_iter().flatten().filter_map(name).collect()
}
