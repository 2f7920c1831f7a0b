//! `tailtrim-agent noise`.

mod others;
mod report;
pub(crate) mod table;

use crate::called;
use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::files;
use crate::options;
use crate::output;
use crate::stop::Ending;
use crate::trace::SOURCES;
use clap::ValueEnum;
use report::NoiseReport;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tailtrim_host::Cpus;
use tailtrim_stats::{Histogram, Ranked, distribution};
use tailtrim_sys::placement;
use tailtrim_trace::axis::Axis;
use tailtrim_trace::lines::Source;
use tailtrim_tracer::clock::{self, Clock, Counter};
use tailtrim_tracer::noise::{self, Awake, Measured, Measuring, NoiseError, Snapshot, Watch};
use tailtrim_tracer::trace::{self as recording, Recorder, Trace};
use tailtrim_wire::duration::time_ns;

/// Measure OS noise and attribute it to its causes.
///
/// As root with a trace of the kernel, which names the cause of each gap; otherwise with counters only. The loop takes
/// all of each CPU that it measures: where an application runs, use trace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent noise --cpus 2,3 --duration 10s\n  \
    tailtrim-agent noise --cpus 1 --mode timer --fifo --duration 60s --hgrm timer.hgrm\n  \
    tailtrim-agent noise --cpus 1 --threshold 500ns --duration 10s --json | jq .cpus\n  \
    oslat --cpu-list 1 --duration 10 --json=oslat.json\n  \
    tailtrim-agent noise --read oslat.json             # the same table from oslat's result")]
pub(crate) struct Noise {
    /// CPUs to measure, one thread on each, such as 1,3-5
    #[arg(long, value_name = "LIST", required_unless_present = "read")]
    pub(crate) cpus: Option<Cpus>,
    /// Read the output of another tool instead of measuring: cyclictest with --histogram or --json, oslat with --json,
    /// rtla osnoise hist or rtla timerlat hist; repeatable
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cpus", "mode", "interval", "fifo", "default_system", "no_trace", "source", "duration"])]
    pub(crate) read: Vec<PathBuf>,
    /// Kind of measurement
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mode: Mode,
    /// Shortest gap of the polling loop that counts
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = time)]
    pub(crate) threshold: i64,
    /// Interval of the timer
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = time)]
    pub(crate) interval: i64,
    /// Run with real-time priority (SCHED_FIFO 50): other threads then cause no noise
    #[arg(long)]
    pub(crate) fifo: bool,
    /// Allow idle states while timers are measured, as cyclictest's option of this name: the lateness then includes
    /// the wake-up
    #[arg(long)]
    pub(crate) default_system: bool,
    /// Do not trace the kernel: no overhead of tracing, and no causes
    #[arg(long, conflicts_with = "source")]
    pub(crate) no_trace: bool,
    /// Source of the trace (default: the first one that works)
    #[arg(long, value_parser = options::one_of(SOURCES))]
    pub(crate) source: Option<Source>,
    /// Print events as JSON lines instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the distribution of all CPUs for HdrHistogram's tools, in µs
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Stop after this time, such as 10s or 500ms [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = options::time)]
    pub(crate) duration: Option<i64>,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Mode {
    /// Gaps of a loop that reads the time-stamp counter, like oslat
    #[default]
    Poll,
    /// Lateness of timers, like cyclictest
    Timer,
}

/// Measurements before their evaluation.
struct Seen {
    measured: Vec<Measured>,
    before: Snapshot,
    after: Snapshot,
    /// The trace, or why there is none.
    trace: Result<Trace, String>,
    /// From ticks to the packets' clock.
    axis: Axis,
    realtime_offset_ns: i64,
    /// Whether CPUs were kept from falling asleep, where that matters; or the reason why not.
    awake: Option<Result<(), String>>,
}

impl From<NoiseError> for Failure {
    fn from(error: NoiseError) -> Self {
        match error {
            NoiseError::Placement(error) => Self::impossible(error),
            NoiseError::Thread(_) => Self::disturbed(error),
        }
    }
}

/// Runs the verb and prints its table or events.
pub(crate) fn run(request: &Noise) -> Outcome {
    placement::gain_nothing();
    files::check(&request.hgrm)?;
    // One or the other, as the arguments were checked.
    let Some(cpus) = &request.cpus else { return others::show(request) };
    clock::check_counter().or_fail(Exit::Impossible)?;
    let stopped = request.ending.watch()?;
    let report = NoiseReport::new(request, &look(request, cpus, &stopped)?);
    if let Some(path) = &request.hgrm {
        let mut all = Histogram::new();
        report.histograms.iter().for_each(|histogram| all.merge(histogram));
        write_hgrm(path, &all)?;
    }
    if request.json {
        events::result("tailtrim.noise/1", &report)
    } else {
        output::lines(&table::text(&report), Exit::Success)
    }
}

fn write_hgrm(path: &Path, histogram: &Histogram) -> Result<(), Failure> {
    let text = distribution(&Ranked::new(histogram));
    std::fs::write(path, text).or_unwritable(path, Exit::Disturbed)
}

fn look(request: &Noise, cpus: &Cpus, stopped: &Arc<AtomicBool>) -> Result<Seen, Failure> {
    // Where all CPUs are measured, this thread is on one of them, asleep.
    let _ = recording::stay_off(cpus);
    let mode = match request.mode {
        Mode::Poll => {
            let axis = clock::calibrate().or_fail(Exit::Disturbed)?;
            noise::Mode::Poll { threshold_ticks: axis.ticks_of(request.threshold) }
        }
        Mode::Timer => noise::Mode::Timer { interval_ns: request.interval },
    };
    let wanted = recording::Request {
        cpus: cpus.clone(),
        buffer_mb: 64,
        source: request.source,
        device: None,
    };
    let mut recorder = if request.no_trace {
        Err("not asked for".to_owned())
    } else {
        Recorder::prepare(&wanted).map_err(|error| error.to_string())
    };
    // A polling loop does not sleep.
    let asleep = request.mode == Mode::Poll || request.default_system;
    let awake = (!asleep).then(Awake::hold);
    let watch = Watch::open(cpus);
    let before = Snapshot::take(&watch);
    let start = clock::read(Clock::Realtime);
    let mut after = None;
    let during = |threads: &Measuring<'_>| {
        if let Ok(recorder) = &mut recorder {
            recorder.arm().or_fail(Exit::Disturbed)?;
        }
        if request.json {
            events::ready();
        }
        let there = |cpu| Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists();
        if request.mode == Mode::Poll && cpus.iter().all(there) {
            let told = format!(
                "a loop takes all of {} until it ends, also from an application there, which would be told as \
                 a cause; `{} trace` only watches",
                cpus.named(),
                called::name()
            );
            output::note("note", &told);
        }
        threads.run(request.duration.map(|ns| Duration::from_nanos(ns.cast_unsigned())));
        if let Ok(recorder) = &mut recorder {
            recorder.disarm().or_fail(Exit::Disturbed)?;
        }
        after = Some(Snapshot::take(&watch));
        Ok(())
    };
    let measured: Result<Vec<Measured>, Failure> =
        noise::measure(cpus, mode, request.fifo, stopped, during);
    let end = clock::read(Clock::Realtime);
    let realtime_offset_ns = clock::realtime_offset_ns();
    // If no recorder was armed, only a problem of the measurement is worth reporting.
    let trace = match recorder {
        Ok(recorder) if measured.is_ok() => Ok(recorder.finish().or_fail(Exit::Disturbed)?),
        Ok(_) => Err("nothing was measured".to_owned()),
        Err(why) => Err(why),
    };
    let after = after.unwrap_or_default();
    let measured = measured?;
    let own = Axis::fit(start, end, &[]).or_fail(Exit::Disturbed)?;
    // Only where events are stamped by the counter that the loop reads.
    let traced = trace.as_ref().ok().filter(|trace| trace.counter == Counter::Tsc);
    let axis = traced.map_or(own, |trace| trace.axis);
    let awake = awake.map(|held| held.map(drop).map_err(|error| error.to_string()));
    Ok(Seen { measured, before, after, trace, axis, realtime_offset_ns, awake })
}

/// `500ns`, `1us`, `2.5ms`, `1s`
fn time(text: &str) -> Result<i64, String> {
    time_ns(text)
        .filter(|ns| *ns > 0)
        .map(u64::cast_signed)
        .ok_or_else(|| format!("invalid time {text:?}, expected one such as 500ns, 1us or 2.5ms"))
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_with_units() {
        assert_eq!(time("1us"), Ok(1_000));
        assert_eq!(time("2.5ms"), Ok(2_500_000));
        assert_eq!(time("500ns"), Ok(500));
        assert_eq!(time("0.25µs"), Ok(250));
        for wrong in ["", "1", "us", "0us", "0.5ns", "-1us", "1d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
