//! `tailtrim-agent capture`.

use crate::args::time;
use crate::events::{self, Progress, exit_of};
use crate::exit::Exit;
use crate::output::failed;
use crate::stop::{self, Ending};
use clap::ValueEnum;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_linux::capture::{Sink, TapError, Tapped, tap};
use tailtrim_linux::host;
use tailtrim_linux::port::{HardwareStamps, PortName, Receiving, open};

/// Capture at the taps of a device under test, each into a nanosecond pcap.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent capture --tap ingress=eth1 --tap egress=eth2 --out captures --stop-after 5s\n  \
    tailtrim-agent capture --tap ingress=eth1 --out captures --snap 96 --zstd   # until Ctrl-C")]
pub(crate) struct Capture {
    /// Name of the capture, and its interface or xdp:IFACE[:QUEUE]; once for each tap
    #[arg(long = "tap", required = true, value_name = "NAME=PORT", value_parser = parse_tap)]
    pub(crate) taps: Vec<(String, PortName)>,
    /// Directory for NAME.pcap; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Bytes to keep of each frame
    #[arg(long, value_name = "BYTES", default_value = "96", value_parser = clap::value_parser!(u32).range(14..=9_018))]
    pub(crate) snap: u32,
    /// Kernel buffer of each tap, in megabytes
    #[arg(long, value_name = "MB", default_value = "128", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) buffer: u32,
    /// Compress with zstd
    #[arg(long)]
    pub(crate) zstd: bool,
    /// Source of the time stamps; best: the NICs if all taps have one clock, otherwise the kernel
    #[arg(long, value_enum, default_value_t)]
    pub(crate) stamps: Stamps,
    /// Stop after this time, such as 10s or 500ms [default: Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) stop_after: Option<i64>,
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
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Capture) -> Exit {
    host::gain_nothing();
    let snap = request.snap as usize;
    if let Err(error) = std::fs::create_dir_all(&request.out) {
        let message = format!("{}: cannot be created: {error}", request.out.display());
        return failed(&message, Exit::Usage);
    }
    // They stay on until the captures are complete.
    let (hardware, not_by_hardware) = match hardware_stamps(request) {
        Ok(hardware) => (hardware, None),
        Err(why) if request.stamps == Stamps::Best => (None, Some(why)),
        Err(why) => return failed(&format!("no stamps by the NIC: {why}"), Exit::Impossible),
    };
    let mut opened = Vec::new();
    for (name, interface) in &request.taps {
        let path =
            request.out.join(format!("{name}.pcap{}", if request.zstd { ".zst" } else { "" }));
        let sink = match Sink::create(&path, request.zstd) {
            Ok(sink) => sink,
            Err(error) => {
                let message = format!("{}: cannot be written: {error}", path.display());
                return failed(&message, Exit::Usage);
            }
        };
        let memory_bytes = (request.buffer as usize) << 20;
        let hardware = hardware.is_some();
        let receiving = Receiving { snap, memory_bytes, promptly: false, hardware };
        match open(interface, Some(receiving)) {
            Ok(port) => opened.push((name.clone(), path, sink, port)),
            Err(error) => return failed(&error.to_string(), exit_of(&error)),
        }
    }
    let stopped = match request.ending.watch() {
        Ok(stopped) => stopped,
        Err(error) => return failed(&error.to_string(), Exit::Impossible),
    };
    if let Some(ns) = request.stop_after {
        stop::after(Duration::from_nanos(ns.cast_unsigned()), Arc::clone(&stopped));
    }
    let seen = Arc::new(AtomicU64::new(0));
    events::ready();
    let progress = Progress::start(Arc::clone(&seen));
    let threads: Vec<_> = opened
        .into_iter()
        .enumerate()
        .map(|(number, (name, path, sink, mut port))| {
            // The first tap stands for all of them in the progress.
            let seen = if number == 0 { Arc::clone(&seen) } else { Arc::default() };
            let ended = OnEnd(Arc::clone(&stopped));
            thread::spawn(move || (name, tap(port.as_mut(), sink, &path, snap, &ended.0, &seen)))
        })
        .collect();
    let mut taps = BTreeMap::new();
    let mut problem = None;
    for thread in threads {
        match thread.join() {
            Ok((name, Ok(tapped))) => {
                taps.insert(name, tapped);
            }
            Ok((name, Err(error))) => problem = Some((name, error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    drop(progress);
    match problem {
        None => events::result("tailtrim.capture/1", &CaptureReport { taps, not_by_hardware }),
        Some((name, TapError::Port(error))) => {
            failed(&format!("tap {name}: {error}"), exit_of(&error))
        }
        Some((name, error)) => failed(&format!("tap {name}: {error}"), Exit::Disturbed),
    }
}

fn hardware_stamps(request: &Capture) -> Result<Option<HardwareStamps>, String> {
    if request.stamps == Stamps::Kernel {
        return Ok(None);
    }
    let ports: Vec<PortName> = request.taps.iter().map(|(_, port)| port.clone()).collect();
    HardwareStamps::enable(&ports).map(Some)
}

/// One tap that ends, ends all.
struct OnEnd(Arc<AtomicBool>);

impl Drop for OnEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// `ingress=eth1`
fn parse_tap(text: &str) -> Result<(String, PortName), String> {
    let (name, port) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?}: expected NAME=PORT such as ingress=eth1"))?;
    let plain = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !plain {
        return Err(format!("{name:?}: expected a name of letters, digits, - and _"));
    }
    Ok((name.to_owned(), port.parse().map_err(|error| format!("{error}"))?))
}
