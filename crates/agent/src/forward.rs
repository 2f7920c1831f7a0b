//! `tailtrim-agent forward`.

use crate::events::{self, Progress, exit_of, failed};
use crate::exit::Exit;
use crate::generate::parse_mac;
use crate::stop::Ending;
use clap::ValueEnum;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tailtrim_linux::forward::{ForwardError, Forwarded, Forwarding, forward};
use tailtrim_linux::host::Placement;
use tailtrim_linux::port::{PacketPort, PortName, Receiving};
use tailtrim_model::traffic::Delay;

/// Frames that may wait for this process: 16 MB of 2 KB each.
const MEMORY_BYTES: usize = 16 << 20;
/// Bytes of the longest frame that it forwards: an MTU of 1,500 with two VLAN tags.
const LONGEST: usize = 1_522;

/// Forward frames between two ports: the reference to compare a device under test with, or, with a known
/// delay, the device that a measurement is checked against.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent forward --from eth1 --to eth2\n  \
    tailtrim-agent forward --from eth1 --to eth2 --mode wait --batch 1\n  \
    tailtrim-agent forward --from eth1 --to eth2 --delay bimodal:20us,100us,0.01 --delay-log truth.bin")]
pub(crate) struct Forward {
    /// Where frames come in
    #[arg(long, value_name = "IFACE")]
    pub(crate) from: PortName,
    /// Where they go out
    #[arg(long, value_name = "IFACE")]
    pub(crate) to: PortName,
    /// Ask for frames all the time, or sleep until one comes
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mode: Mode,
    /// Most frames handled in one go
    #[arg(long, default_value = "32", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) batch: u16,
    /// Busy work for each frame, in ns
    #[arg(long, value_name = "NS", default_value = "0")]
    pub(crate) work: u64,
    /// New source MAC address
    #[arg(long, value_parser = parse_mac, value_name = "MAC")]
    pub(crate) rewrite_src_mac: Option<[u8; 6]>,
    /// New destination MAC address
    #[arg(long, value_parser = parse_mac, value_name = "MAC")]
    pub(crate) rewrite_dst_mac: Option<[u8; 6]>,
    /// Keep each packet: constant:T, bimodal:T,T,SHARE, heavy:T,EXPONENT or stall:T,T,PERIOD
    #[arg(long, value_name = "MODEL")]
    pub(crate) delay: Option<Delay>,
    /// Seed of the delay
    #[arg(long, default_value = "1", requires = "delay")]
    pub(crate) seed: u64,
    /// Write sequence number and delay in ns of each probe (little-endian i64)
    #[arg(long, value_name = "FILE", requires = "delay")]
    pub(crate) delay_log: Option<PathBuf>,
    /// CPU to run on
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
    /// Run under SCHED_FIFO
    #[arg(long)]
    pub(crate) fifo: bool,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Mode {
    /// Ask all the time
    #[default]
    Poll,
    /// Sleep until a frame comes
    Wait,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    forwarded: &'a Forwarded,
    delay: Option<String>,
    seed: u64,
    host: &'a Placement,
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Forward) -> Exit {
    let receiving =
        Receiving { snap: LONGEST, memory_bytes: MEMORY_BYTES, promptly: true, hardware: false };
    let ports = PacketPort::receiver(&request.from, receiving)
        .and_then(|from| Ok((from, PacketPort::sender(&request.to)?)));
    let (mut from, mut to) = match ports {
        Ok(ports) => ports,
        Err(error) => return failed(&error.to_string(), exit_of(&error)),
    };
    let mut log = None;
    if let Some(path) = &request.delay_log {
        match File::create(path) {
            Ok(file) => log = Some(BufWriter::with_capacity(1 << 20, file)),
            Err(error) => {
                let message = format!("{}: cannot be written: {error}", path.display());
                return failed(&message, Exit::Usage);
            }
        }
    }
    let stopped = match request.ending.watch() {
        Ok(stopped) => stopped,
        Err(error) => return failed(&error.to_string(), Exit::Impossible),
    };
    let host = match Placement::take(request.cpu, request.fifo) {
        Ok(host) => host,
        Err(error) => return failed(&error.to_string(), Exit::Usage),
    };
    let how = Forwarding {
        wait: request.mode == Mode::Wait,
        batch: usize::from(request.batch),
        work_ns: request.work,
        source_mac: request.rewrite_src_mac,
        destination_mac: request.rewrite_dst_mac,
        delay: request.delay.map(|delay| (delay, request.seed)),
    };
    let seen = Arc::new(AtomicU64::new(0));
    events::ready();
    let progress = Progress::start(Arc::clone(&seen));
    let log: Option<&mut dyn Write> = log.as_mut().map(|log| log as &mut dyn Write);
    let forwarded = forward(&mut from, &mut to, &how, log, &stopped, &seen);
    drop(progress);
    match forwarded {
        Ok(forwarded) => {
            let delay = request.delay.map(|delay| delay.to_string());
            let report = Report { forwarded: &forwarded, delay, seed: request.seed, host: &host };
            events::result("tailtrim.forwarder/1", &report)
        }
        Err(ForwardError::Port(error)) => failed(&error.to_string(), exit_of(&error)),
        Err(error) => failed(&error.to_string(), Exit::Disturbed),
    }
}
