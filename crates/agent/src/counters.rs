//! `tailtrim-agent counters`.

use crate::events;
use crate::exit::{Exit, OrFail, Outcome};
use crate::files;
use crate::options::time;
use crate::stop::{self, Ending};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tailtrim_host::Cpus;
use tailtrim_sys::placement;
use tailtrim_tracer::clock;
use tailtrim_tracer::noise::{Delta, Snapshot, Watch};
use tailtrim_tracer::trace::check_online;

/// Interval at which the clock is read.
const LOOK: Duration = Duration::from_millis(200);

/// Count what slows CPUs down, each minute: SMIs, thermal throttling, steal, interrupts, context switches.
///
/// A line of JSON for each interval, written when it is over, with the counts of each CPU. What cannot be read on this host is in
/// `unread`, with the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent counters --cpus 2,3 --out counter.jsonl --duration 48h\n  \
    tailtrim-agent counters --cpus 1 --interval 10s --out counter.jsonl   # until Ctrl-C")]
pub(crate) struct Counters {
    /// CPUs to watch, such as 1,3-5
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Cpus,
    /// Output file: JSON lines
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Interval, such as 10s; whole multiples of it since 1970
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = interval)]
    pub(crate) interval: i64,
    /// Stop after this time, such as 10s or 500ms [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<i64>,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

#[derive(Serialize)]
struct Line {
    /// Realtime clock.
    begin_ns: i64,
    end_ns: i64,
    cpus: BTreeMap<u32, Delta>,
}

#[derive(Serialize)]
struct CountersReport {
    file: PathBuf,
    intervals: u64,
}

fn interval(text: &str) -> Result<i64, String> {
    time(text)
        .ok()
        .filter(|ns| *ns >= 1_000_000_000)
        .ok_or_else(|| format!("invalid interval {text:?}, expected 1s or more"))
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Counters) -> Outcome {
    placement::gain_nothing();
    check_online(&request.cpus)?;
    let stopped = request.ending.watch()?;
    let mut file = files::create(&request.out)?;
    stop::after(request.duration, &stopped);
    let watch = Watch::open(&request.cpus);
    let (mut begin_ns, mut before) = (clock::of_the_kernel().0, Snapshot::take(&watch));
    let mut intervals = 0;
    events::ready();
    loop {
        let stops = stopped.load(Ordering::Acquire);
        let now_ns = clock::of_the_kernel().0;
        if !stops && now_ns.div_euclid(request.interval) == begin_ns.div_euclid(request.interval) {
            thread::sleep(LOOK);
            continue;
        }
        let after = Snapshot::take(&watch);
        let cpus = request.cpus.iter().map(|cpu| (cpu, after.since(&before, cpu))).collect();
        let line = Line { begin_ns, end_ns: now_ns, cpus };
        events::append(&mut file, &line).or_unwritable(&request.out, Exit::Disturbed)?;
        intervals += 1;
        if stops {
            let report = CountersReport { file: request.out.clone(), intervals };
            return events::result("tailtrim.counters/1", &report);
        }
        (begin_ns, before) = (now_ns, after);
    }
}
