//! `tailtrim-agent counters`.

use crate::args::time;
use crate::events;
use crate::exit::Exit;
use crate::output::failed;
use crate::stop::{self, Ending};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tailtrim_host::Cpus;
use tailtrim_sys::placement;
use tailtrim_tracer::clock;
use tailtrim_tracer::noise::{Delta, Snapshot, Watch};

/// Interval at which the clock is read.
const LOOK: Duration = Duration::from_millis(200);

/// Count what slows CPUs down, each minute: SMIs, thermal throttling, steal, interrupts, context switches.
///
/// A line of JSON for each interval, written when it is over, with the counts of each CPU. What cannot be read on this host is in
/// `unread`, with the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent counters --cpus 2,3 --out counter.jsonl --stop-after 48h\n  \
    tailtrim-agent counters --cpus 1 --every 10s --out counter.jsonl   # until Ctrl-C")]
pub(crate) struct Counters {
    /// CPUs to watch, such as 1,3-5
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Cpus,
    /// Output file: JSON lines
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Interval, such as 10s; whole multiples of it since 1970
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = interval)]
    pub(crate) every: i64,
    /// Stop after this time, such as 10s or 500ms [default: Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) stop_after: Option<i64>,
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
struct Counted {
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
pub(crate) fn run(request: &Counters) -> Exit {
    placement::gain_nothing();
    let stopped = match request.ending.watch() {
        Ok(stopped) => stopped,
        Err(error) => return failed(&error.to_string(), Exit::Impossible),
    };
    let unwritable = |error: &io::Error| {
        format!(
            "{}: cannot be written: {error}; expected a place for a new file",
            request.out.display()
        )
    };
    let mut file = match File::create(&request.out) {
        Ok(file) => file,
        Err(error) => return failed(&unwritable(&error), Exit::Usage),
    };
    if let Some(ns) = request.stop_after {
        stop::after(Duration::from_nanos(ns.cast_unsigned()), Arc::clone(&stopped));
    }
    let watch = Watch::open(&request.cpus);
    let (mut begin_ns, mut before) = (clock::of_the_kernel().0, Snapshot::take(&watch));
    let mut intervals = 0;
    events::ready();
    loop {
        let stops = stopped.load(Ordering::Acquire);
        let now_ns = clock::of_the_kernel().0;
        if !stops && now_ns.div_euclid(request.every) == begin_ns.div_euclid(request.every) {
            thread::sleep(LOOK);
            continue;
        }
        let after = Snapshot::take(&watch);
        let cpus = request.cpus.iter().map(|cpu| (cpu, after.since(&before, cpu))).collect();
        let line = Line { begin_ns, end_ns: now_ns, cpus };
        if let Err(error) = append(&mut file, &line) {
            return failed(&unwritable(&error), Exit::Disturbed);
        }
        intervals += 1;
        if stops {
            let counted = Counted { file: request.out.clone(), intervals };
            return events::result("tailtrim.counters/1", &counted);
        }
        (begin_ns, before) = (now_ns, after);
    }
}

fn append(file: &mut File, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    // The line must also survive a crash of the host.
    file.sync_data()
}
