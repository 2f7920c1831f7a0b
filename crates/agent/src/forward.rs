//! `tailtrim-agent forward`.

use crate::disturb;
use crate::events::{self, EachSecond};
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::files;
use crate::options::{Placing, parse_mac};
use crate::stop::Ending;
use clap::ValueEnum;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tailtrim_ports::disturb::Disturber;
use tailtrim_ports::forward::{ForwardError, ForwardResult, Forwarded, Forwarding, Ways, forward};
use tailtrim_ports::port::{Capabilities, Port, PortError, PortName, Receiving, longest, open};
use tailtrim_sys::placement::{self, Placement};
use tailtrim_wire::duration::time_or_number_ns;
use tailtrim_wire::traffic::{Delay, Disturbance};

/// Memory for frames that wait for this process: 8,192 of them at the usual MTU, 1,024 large ones.
const BUFFER_BYTES: usize = 16 << 20;
/// Bytes without FCS of the longest frame that it forwards: an MTU of 9,000 with two VLAN tags. Longer
/// ones, as loopback or segmentation offloads make them, are counted as such.
const LONGEST: usize = 9_022;

/// Forward frames between two ports: a reference device, or, with a known delay, a device to check a measurement with.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent forward --ingress eth1 --egress eth2\n  \
    tailtrim-agent forward --ingress eth1 --egress eth2 --mode wait --batch 1\n  \
    tailtrim-agent forward --ingress xdp:eth1 --egress xdp:eth2 --both-ways\n  \
    tailtrim-agent forward --ingress eth1 --egress eth2 --delay bimodal:20us,100us,0.01 --delay-log truth.bin\n  \
    tailtrim-agent forward --ingress eth1 --egress eth2 --disturb munmap:20ms --disturb-log disturbed.csv")]
pub(crate) struct Forward {
    /// Interface that receives; xdp:INTERFACE[:QUEUE] for AF_XDP
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) ingress: PortName,
    /// Interface that sends
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) egress: PortName,
    /// Forward in both directions
    #[arg(long, conflicts_with = "delay")]
    pub(crate) both_ways: bool,
    /// Waiting for frames
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mode: Mode,
    /// Most frames handled in one batch
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) batch: u16,
    /// Busy work for each frame, such as 500ns
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = work)]
    pub(crate) work: u64,
    /// New source MAC address
    #[arg(long, value_parser = parse_mac, value_name = "MAC")]
    pub(crate) rewrite_src_mac: Option<[u8; 6]>,
    /// New destination MAC address
    #[arg(long, value_parser = parse_mac, value_name = "MAC")]
    pub(crate) rewrite_dst_mac: Option<[u8; 6]>,
    /// Delay each packet: constant:T, bimodal:USUAL,RARE,SHARE (that of the rare delay), heavy:LEAST,EXPONENT (the smaller,
    /// the heavier the tail) or stall:USUAL,STALL,PERIOD
    #[arg(long, value_name = "MODEL")]
    pub(crate) delay: Option<Delay>,
    /// Seed of the delay and of the times of disturbances
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Write sequence number, arrival and delay in ns of each probe (little-endian i64)
    #[arg(long, value_name = "FILE", requires = "delay")]
    pub(crate) delay_log: Option<PathBuf>,
    /// Disturb the forwarder at random times: munmap:EVERY, mprotect:EVERY, membarrier:EVERY or pause:TIME,EVERY
    #[arg(long, value_name = "WHAT")]
    pub(crate) disturb: Option<Disturbance>,
    /// Log of these disturbances: lines of from,to in ns of CLOCK_REALTIME
    #[arg(long, value_name = "FILE", requires = "disturb")]
    pub(crate) disturb_log: Option<PathBuf>,
    /// Log of stalls (the work by more than 1 us, the loop by more than 20 us): lines of from,to in ns of
    /// CLOCK_REALTIME
    #[arg(long, value_name = "FILE", requires = "work")]
    pub(crate) stall_log: Option<PathBuf>,
    #[command(flatten)]
    placing: Placing,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Mode {
    /// Busy-poll
    #[default]
    Poll,
    /// Sleep until a frame arrives
    Wait,
}

#[derive(Serialize)]
struct ForwardReport<'a> {
    #[serde(flatten)]
    forwarded: &'a Forwarded,
    /// The other direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<&'a Forwarded>,
    delay: Option<String>,
    seed: u64,
    /// Time in which the loop was busy with frames, in ns: the number of frames divided by it is the forwarder's
    /// capacity.
    busy_ns: u64,
    /// Number of times at which it disturbed itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    disturbed: Option<usize>,
    ports: [Capabilities; 2],
    host: &'a Placement,
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Forward) -> Outcome {
    placement::gain_nothing();
    files::check([&request.disturb_log, &request.stall_log].into_iter().flatten())?;
    let (mut from, mut to) = ports(request)?;
    let mut log = request.delay_log.as_deref().map(create).transpose()?;
    let stopped = request.ending.watch()?;
    let seen = Arc::new(AtomicU64::new(0));
    // Before this thread is pinned: threads that a pinned thread starts take the same CPU.
    let progress = EachSecond::progress(Arc::clone(&seen));
    let cpu = request.placing.cpu;
    let disturber = request.disturb.map(|what| {
        Disturber::start(what, request.seed, cpu).map_err(|error| {
            let hint = (!what.from_within()).then(|| format!("tailtrim-agent disturb {what}"));
            Failure::impossible(format!("--disturb: {error}")).hint(hint)
        })
    });
    let disturber = disturber.transpose()?;
    let host = request.placing.take().or_fail(Exit::Usage)?;
    let how = Forwarding {
        wait: request.mode == Mode::Wait,
        batch: usize::from(request.batch),
        work_ns: request.work,
        source_mac: request.rewrite_src_mac,
        destination_mac: request.rewrite_dst_mac,
        ways: match request.both_ways {
            true => Ways::Both,
            false => Ways::One { delay: request.delay.map(|delay| (delay, request.seed)) },
        },
        pause: disturber.as_ref().map(Disturber::pause),
        watch: request.stall_log.is_some(),
    };
    events::ready();
    let log: Option<&mut dyn Write> = log.as_mut().map(|log| log as &mut dyn Write);
    let (from, to) = (from.as_mut(), to.as_mut());
    let forwarded = forward(from, to, &how, log, &stopped, &seen);
    drop(progress);
    let disturbed = disturber.map(|disturber| finish(disturber, request)).transpose()?;
    let ForwardResult { there, back, stalls, busy_ns } =
        forwarded.map_err(|error| match error {
            ForwardError::Port(error) => error.into(),
            error => Failure::disturbed(error),
        })?;
    if let Some(path) = &request.stall_log {
        disturb::log(path, &stalls)?;
    }
    let report = ForwardReport {
        forwarded: &there,
        back: back.as_ref(),
        delay: request.delay.map(|delay| delay.to_string()),
        seed: request.seed,
        busy_ns,
        disturbed,
        ports: [from.capabilities(), to.capabilities()],
        host: &host,
    };
    events::result("tailtrim.forwarder/1", &report)
}

/// Begins a log of a fast loop.
pub(crate) fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    Ok(BufWriter::with_capacity(1 << 20, files::create(path)?))
}

/// Writes the times at which it disturbed itself, and returns their number.
fn finish(disturber: Disturber, request: &Forward) -> Result<usize, Failure> {
    let told = |error| Failure::disturbed(format!("--disturb: {error}"));
    let spans = disturber.finish().map_err(told)?;
    if let Some(path) = &request.disturb_log {
        disturb::log(path, &spans)?;
    }
    Ok(spans.len())
}

/// `500ns`, `2us` or nanoseconds without a unit.
fn work(text: &str) -> Result<u64, String> {
    time_or_number_ns(text, 1)
        .ok_or_else(|| format!("invalid time {text:?}, expected one such as 500ns or 2us"))
}

type Ports = (Box<dyn Port>, Box<dyn Port>);

fn ports(request: &Forward) -> Result<Ports, PortError> {
    let receiving = |name: &PortName| -> Result<Receiving, PortError> {
        let snap = longest(name)?.min(LONGEST);
        Ok(Receiving { snap, memory_bytes: BUFFER_BYTES, promptly: true, hardware: false })
    };
    let back = if request.both_ways { Some(receiving(&request.egress)?) } else { None };
    let ingress = open(&request.ingress, Some(receiving(&request.ingress)?))?;
    Ok((ingress, open(&request.egress, back)?))
}

#[cfg(test)]
mod tests {
    use crate::args::Args;
    use clap::Parser;

    fn parse(options: &str) -> Result<Args, clap::Error> {
        let words = "tailtrim-agent forward --ingress eth1 --egress eth2 --both-ways";
        Args::try_parse_from(words.split(' ').chain(options.split_whitespace()))
    }

    #[test]
    fn both_ways_are_disturbed_and_watched_but_have_no_known_delay() {
        assert!(parse("").is_ok());
        assert!(parse("--disturb pause:1ms,20ms --work 500ns --stall-log stalls.csv").is_ok());
        let error = parse("--delay constant:20us").unwrap_err().to_string();
        assert!(error.contains("'--both-ways' cannot be used with '--delay <MODEL>'"), "{error}");
    }
}
