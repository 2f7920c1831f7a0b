//! `tailtrim-agent capture`.

mod around;
mod clocks;
mod online;

use crate::events::{self, EachSecond};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::options::{Matching, time};
use crate::output;
use crate::stop::{self, Ending, OnEnd};
use around::One;
use clap::ValueEnum;
use clocks::{Clocks, ClocksTold};
use online::{Analysed, Analysing};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use tailtrim_ports::capture::{CaptureFile, Feed, InterfaceLosses, TapError, TapSink, Tapped, tap};
use tailtrim_ports::port::{Attached, Port, PortName, Receiving, Stamping, XdpMode, open};
use tailtrim_reading::converted::Converted;
use tailtrim_sys::placement;
use tailtrim_tail::summary::Summary;
use tailtrim_tracer::clock::{self, ClockStep, ClockSteps};

/// Capture at the taps of a device under test, each into a nanosecond pcap, or match the packets while they come.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent capture --tap ingress=eth1 --tap egress=eth2 --out captures --duration 5s\n  \
    tailtrim-agent capture --tap ingress=eth1 --out captures --snap 96 --zstd   # until Ctrl-C\n  \
    tailtrim-agent capture --tap ingress=eth1 --tap egress=eth2 --live          # percentiles each second, no files\n  \
    tailtrim-agent capture --tap ingress=eth1 --tap egress=eth2 --analyze run --mask nat --duration 10min\n  \
    tailtrim-agent capture --tap ingress=eth1 --tap egress=eth2 --analyze run --by-minute --duration 48h")]
pub(crate) struct Capture {
    /// Name of the capture, and its interface or xdp:INTERFACE (all queues; or xdp:INTERFACE:QUEUE); once for each tap
    #[arg(long = "tap", required = true, value_name = "NAME=INTERFACE", value_parser = parse_tap)]
    pub(crate) taps: Vec<(String, PortName)>,
    /// Directory for NAME.pcap; created if missing
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["analyze", "live"])]
    pub(crate) out: Option<PathBuf>,
    /// Match the packets of the taps ingress and egress while they come; directory for the tables and the summary
    #[arg(long, value_name = "DIR")]
    pub(crate) analyze: Option<PathBuf>,
    /// With --analyze, for runs of hours: results by minute on disk as each minute ends (minute.jsonl, minute.hlog) and the
    /// captures around the ten worst packets, and no sample.parquet
    #[arg(long, requires = "analyze")]
    pub(crate) by_minute: bool,
    /// Match them, and tell percentiles, loss and the worst packet each second
    #[arg(long)]
    pub(crate) live: bool,
    /// Bytes to keep of each frame
    #[arg(long, value_name = "BYTES", default_value = "96", value_parser = clap::value_parser!(u32).range(14..=9_018))]
    pub(crate) snap: u32,
    /// Kernel buffer of each tap, in megabytes
    #[arg(long, value_name = "MB", default_value = "128", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) buffer: u32,
    /// Compress with zstd
    #[arg(long)]
    pub(crate) zstd: bool,
    /// Source of the time stamps; best: the NICs if all taps have one clock, otherwise the kernel; hardware: the NICs, whose
    /// clocks are compared all along if they have several
    #[arg(long, value_enum, value_name = "SOURCE", default_value_t)]
    pub(crate) stamps: Stamps,
    /// Stop after this time, such as 10s or 500ms [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<i64>,
    #[command(flatten, next_help_heading = "With --analyze or --live")]
    pub(crate) matching: Matching,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Stamps {
    #[default]
    Best,
    Kernel,
    Hardware,
}

#[derive(Serialize)]
struct CaptureReport {
    taps: BTreeMap<String, Tapped>,
    /// Why the NICs did not stamp; nothing where they did, or were not asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_by_hardware: Option<String>,
    /// Clocks of the NICs that stamped.
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<ClocksTold>,
    /// When `CLOCK_REALTIME`, the clock of the kernel's stamps, was set: latencies across that are wrong by as much.
    clock_steps: Vec<ClockStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    analysis: Option<Summary>,
    /// The worst packets, the worst first; the folder `around` has the captures around each.
    #[serde(skip_serializing_if = "Option::is_none")]
    around: Option<Vec<One>>,
    /// CPU time of the taps and the analysis, which the device under test does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_s: Option<f64>,
}

/// A tap that is open.
struct Opened {
    name: String,
    sink: TapSink,
    port: Box<dyn Port>,
    losses: InterfaceLosses,
}

/// Reports that all taps are open, and how those of AF_XDP are.
fn ready(taps: &[Opened]) {
    let modes: BTreeMap<&str, XdpMode> =
        taps.iter().filter_map(|tap| Some((&*tap.name, tap.port.capabilities().xdp?))).collect();
    for (name, mode) in modes.iter().filter(|(_, mode)| !mode.zero_copy) {
        let told = match (mode.attached, mode.zero_copy_refused) {
            (Attached::Generic, _) => {
                "the driver runs no XDP programs: the kernel copies each frame twice".to_owned()
            }
            (_, Some(code)) => {
                format!("no zero copy, frames are copied: {}", io::Error::from_raw_os_error(code))
            }
            _ => continue,
        };
        output::note("note", &format!("tap {name}: {told}"));
    }
    if modes.is_empty() { events::ready() } else { events::ready_by_xdp(&modes) }
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Capture) -> Outcome {
    placement::gain_nothing();
    let names: BTreeSet<_> = request.taps.iter().map(|(name, _)| name).collect();
    if names.len() < request.taps.len() {
        return Err(Failure::usage("two taps have one name, expected one for each capture"));
    }
    let captures = request.taps.iter().filter_map(|(name, _)| place(request, name));
    for path in captures.flat_map(|path| [Converted::path(&path), path]) {
        if path.exists() {
            let told = "exists: choose another --out, or remove it";
            return Err(Failure::usage(format!("{}: {told}", path.display())));
        }
    }
    // They stay on until the captures are complete.
    let (clocks, not_by_hardware) = match Clocks::begin(request) {
        Ok(clocks) => (clocks, None),
        Err(why) if request.stamps == Stamps::Best => (None, Some(why)),
        Err(why) => return Err(Failure::impossible(format!("no stamps by the NIC: {why}"))),
    };
    let (mut feeds, analysing) = Analysing::of(request)?.unzip();
    let taps = opened(request, clocks.as_ref(), feeds.get_or_insert_default())?;
    clocks.as_ref().map_or(Ok(()), |clocks| clocks.begin_files(request))?;
    let stopped = request.ending.watch()?;
    stop::after(request.duration, &stopped);
    let seen: Vec<Arc<AtomicU64>> = taps.iter().map(|_| Arc::default()).collect();
    if analysing.is_none() || !Analysing::tells_people(request) {
        ready(&taps);
    }
    let analysing = analysing.map(|analysing| analysing.start(request, &stopped));
    let steps = Arc::new(Mutex::new(Steps::watch(!Analysing::tells_people(request))));
    let telling = {
        let (steps, first) = (Arc::clone(&steps), Arc::clone(&seen[0]));
        let live = analysing.as_ref().filter(|_| request.live);
        let lines = live.map(|analysing| analysing.lines(request, &seen));
        EachSecond::start(move |seconds| {
            match &lines {
                Some(lines) => lines(seconds),
                None => events::progress(seconds, &first),
            }
            locked(&steps).look();
        })
    };
    let ended = captured(taps, seen, request.snap as usize, &stopped);
    let matched = analysing.map(online::Running::end);
    drop(telling);
    let clock_steps = locked(&steps).end();
    let clocks = clocks.map(Clocks::end);
    clocks.as_ref().map_or(Ok(()), |clocks| clocks.end_files(request))?;
    let taps = match ended {
        Ok(taps) => taps,
        Err((name, error)) => {
            let mut text = format!("tap {name}: {error}");
            if let Some(Ok(matched)) = matched
                && let Err(error) = matched.broken_off()
            {
                let _ = write!(text, "; the last minute cannot be written: {error}");
            }
            let exit = match error {
                TapError::Port(error) => Failure::from(error).exit,
                TapError::Write { .. } => Exit::Disturbed,
            };
            return Err(Failure::new(text, exit));
        }
    };
    let analysed = matched.map(|matched| matched?.written(request, clocks.as_ref())).transpose()?;
    let (analysis, around, cpu_s) = (None, None, None);
    let told =
        CaptureReport { taps, not_by_hardware, clocks, clock_steps, analysis, around, cpu_s };
    report(request, told, analysed)
}

/// Opens the taps and their files.
fn opened(
    request: &Capture,
    clocks: Option<&Clocks>,
    feeds: &mut BTreeMap<String, Feed>,
) -> Result<Vec<Opened>, Failure> {
    let mut ports = Vec::new();
    for (name, port) in &request.taps {
        let receiving = Receiving {
            snap: request.snap as usize,
            memory_bytes: (request.buffer as usize) << 20,
            promptly: false,
            hardware: clocks.is_some(),
        };
        let opened = open(port, Some(receiving))?;
        // From here on: opening a port may reset its NIC.
        ports.push((name, opened, InterfaceLosses::since_now(port)));
    }
    // Where a port cannot be opened, no file is left.
    let opened = ports.into_iter().map(|(name, port, losses)| {
        let conversion = clocks.and_then(|clocks| clocks.conversion(name));
        let (file, feed) = (file(request, name)?, feeds.remove(name));
        let sink = TapSink { file, feed, conversion, ..TapSink::default() };
        Ok(Opened { name: name.clone(), sink, port, losses })
    });
    opened.collect()
}

/// Reports the results of the taps and of the analysis.
fn report(request: &Capture, mut report: CaptureReport, analysed: Option<Analysed>) -> Outcome {
    for (name, tap) in &report.taps {
        if tap.stamps == Stamping::Hardware && tap.packets > 0 && tap.unstamped == tap.packets {
            let told = "the NIC claims stamps and has stamped no frame: `ports --prove` tells what it can, and \
                        --stamps kernel works with any";
            output::note("warning", &format!("tap {name}: {told}"));
        }
    }
    if let Some(clocks) = &report.clocks {
        clocks.warn();
    }
    if let Some(Analysed { summary, around }) = analysed {
        report.cpu_s = Some(clock::process_cpu_ns() as f64 / 1e9);
        (report.analysis, report.around) = (Some(summary), around);
    }
    if Analysing::tells_people(request) {
        return output::write(online::ended(&report), Exit::Success);
    }
    events::result("tailtrim.capture/1", &report)
}

/// Path of the capture of a tap; `None` without `--out`.
fn place(request: &Capture, name: &str) -> Option<PathBuf> {
    let folder = request.out.as_ref()?;
    Some(folder.join(format!("{name}.pcap{}", if request.zstd { ".zst" } else { "" })))
}

/// The capture file of a tap, if there is to be one.
fn file(request: &Capture, name: &str) -> Result<Option<CaptureFile>, Failure> {
    let Some((path, folder)) = place(request, name).zip(request.out.as_deref()) else {
        return Ok(None);
    };
    made(folder)?;
    CaptureFile::create(&path, request.zstd).map(Some).or_unwritable(&path, Exit::Usage)
}

/// Makes a folder for results.
fn made(folder: &Path) -> Result<(), Failure> {
    let told = |error| format!("{}: cannot be created: {error}", folder.display());
    fs::create_dir_all(folder).map_err(told).or_fail(Exit::Usage)
}

/// Captures at all taps until `stopped`, or until one of them fails: then the error has its name.
fn captured(
    taps: Vec<Opened>,
    seen: Vec<Arc<AtomicU64>>,
    snap: usize,
    stopped: &Arc<AtomicBool>,
) -> Result<BTreeMap<String, Tapped>, (String, TapError)> {
    let tapping = |(Opened { name, sink, mut port, losses }, seen): (Opened, Arc<AtomicU64>)| {
        let ended = OnEnd(Arc::clone(stopped));
        thread::spawn(move || {
            let tapped = tap(port.as_mut(), sink, snap, &ended.0, &seen);
            let tapped = tapped.map(|tapped| Tapped { interface: losses.so_far(), ..tapped });
            (name, tapped)
        })
    };
    let threads: Vec<_> = taps.into_iter().zip(seen).map(tapping).collect();
    let mut tapped = BTreeMap::new();
    let mut problem = None;
    for thread in threads {
        match thread.join() {
            Ok((name, Ok(one))) => {
                tapped.insert(name, one);
            }
            Ok((name, Err(error))) => problem = Some((name, error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    problem.map_or(Ok(tapped), Err)
}

/// Steps of the clock of the kernel's stamps so far.
struct Steps {
    watch: ClockSteps,
    seen: Vec<ClockStep>,
    /// Whether programs read the output.
    tells: bool,
}

impl Steps {
    fn watch(tells: bool) -> Self {
        Self { watch: ClockSteps::watch(), seen: Vec::new(), tells }
    }

    fn look(&mut self) {
        if let Some(step) = self.watch.look() {
            if self.tells {
                events::clock_step(&step);
            }
            self.seen.push(step);
        }
    }

    fn end(&mut self) -> Vec<ClockStep> {
        self.look();
        std::mem::take(&mut self.seen)
    }
}

/// A thread that panicked left it whole.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `ingress=eth1`
fn parse_tap(text: &str) -> Result<(String, PortName), String> {
    let (name, port) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?}: expected NAME=INTERFACE such as ingress=eth1"))?;
    let plain = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !plain {
        return Err(format!("{name:?}: expected a name of letters, digits, - and _"));
    }
    Ok((name.to_owned(), port.parse().map_err(|error| format!("{error}"))?))
}
