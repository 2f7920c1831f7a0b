//! `tailtrim-agent generate`.

use crate::dpdk::{self, Interface};
use crate::events;
use crate::exit::{Exit, Failure, OrFail, Outcome};
use crate::files;
use crate::forward::create;
use crate::options::{Sending, one_of, parse_mac};
use crate::stop::Ending;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use tailtrim_ports::generate::{
    GenerateError, Generated, Load, Stalls, generate, generate_together,
};
use tailtrim_ports::port::{Capabilities, Port, PortName, mac};
use tailtrim_probes::departures::{Class, Declined, Departures, Means};
use tailtrim_reading::source::{self, Reading};
use tailtrim_sys::placement::{self, Placement};
use tailtrim_tail::signature::{Rewrites, Signer};
use tailtrim_wire::traffic::{Addressing, Builder, FCS_LEN, Ip, Pattern, Rate, Schedule, Sizes};

/// Send probes on a schedule: an open loop, in which a late probe is sent at once and its lateness is recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent generate --interface eth1 --rate 100kpps --duration 5s\n  \
    tailtrim-agent generate --interface eth1 --rate 1Gbit/s --frame-bytes imix --flows 256 --count 1000000\n  \
    tailtrim-agent generate --interface eth1 --schedule replay:recorded.pcap:2.0 --frame-bytes 128\n  \
    tailtrim-agent generate --interface dpdk:0000:03:00.0 --rate 10Mpps --duration 5s --cpu 2,3")]
pub(crate) struct Generate {
    /// Interface to send from; xdp:INTERFACE[:QUEUE] for AF_XDP, dpdk:DEVICE for DPDK (with tailtrim-dpdk)
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Interface,
    /// Packets per second such as 120kpps, or bits on the wire such as 1Gbit/s
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// cbr, golden (meets all phases of what repeats), poisson, burst:N, jitter:SHARE or replay:CAPTURE[:SCALE]
    #[arg(long, default_value = "cbr", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) schedule: String,
    /// Frame size in bytes with FCS, a list that repeats such as 64,1518, or imix
    #[arg(long, default_value = "64", value_name = "BYTES")]
    pub(crate) frame_bytes: Sizes,
    #[command(flatten)]
    pub(crate) sending: Sending,
    /// Keeps departures to their time: what an interface lacks for it is told before anything is sent
    #[arg(long, value_name = "CLASS", value_parser = one_of(CLASSES), default_value = "software")]
    pub(crate) departures: Class,
    /// Number of flows, each with its own source port
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) flows: u16,
    /// Seed of the schedule
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Source MAC address [default: that of the interface]
    #[arg(long, value_parser = parse_mac, value_name = "MAC")]
    pub(crate) src_mac: Option<[u8; 6]>,
    /// Destination MAC address
    #[arg(long, value_parser = parse_mac, value_name = "MAC", default_value = "02:00:00:00:00:02")]
    pub(crate) dst_mac: [u8; 6],
    /// Source address, IPv4 or IPv6
    #[arg(long, value_name = "IP", default_value = "198.18.0.1")]
    pub(crate) src_ip: IpAddr,
    /// Destination address, of the same IP version
    #[arg(long, value_name = "IP", default_value = "198.19.0.1")]
    pub(crate) dst_ip: IpAddr,
    /// UDP source port of the first flow
    #[arg(long, value_name = "PORT", default_value = "10000")]
    pub(crate) src_port: u16,
    /// UDP destination port
    #[arg(long, value_name = "PORT", default_value = "20000")]
    pub(crate) dst_port: u16,
    /// 802.1Q VLAN
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..4096))]
    pub(crate) vlan: Option<u16>,
    /// DSCP of the packets
    #[arg(long, default_value = "0", value_parser = clap::value_parser!(u8).range(0..64))]
    pub(crate) dscp: u8,
    /// CPU to run on; several: one sender on each, which send in turn
    #[arg(long, value_name = "CPU,…", value_delimiter = ',')]
    pub(crate) cpu: Vec<usize>,
    /// Run with real-time priority (SCHED_FIFO)
    #[arg(long)]
    pub(crate) fifo: bool,
    /// Write sequence number, intended and actual departure of each probe (ns, little-endian i64);
    /// one sender only
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Log of when the sender's CPU stood still while it sent (kind stalled), and of when it sent late probes (late):
    /// lines of kind,from,to,late in ns, from and to of CLOCK_REALTIME; late is the largest lateness
    #[arg(long, value_name = "FILE")]
    pub(crate) stall_log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

/// Values of `--departures`.
pub(crate) const CLASSES: &[(&str, &str, Class)] = &[
    ("software", "the generator waits for each departure", Class::Software),
    ("kernel", "queueing discipline etf", Class::Kernel),
    (
        "hardware",
        "NIC, by the offload of etf, or with xdp:INTERFACE by launch time",
        Class::Hardware,
    ),
];

/// The load of a request, as each result repeats it.
#[derive(Serialize)]
pub(crate) struct Asked {
    schedule: String,
    rate: Option<String>,
    frame_bytes: String,
    flows: u16,
    seed: u64,
}

impl From<&Generate> for Asked {
    fn from(request: &Generate) -> Self {
        Self {
            schedule: request.schedule.clone(),
            rate: request.rate.map(|rate| rate.to_string()),
            frame_bytes: request.frame_bytes.to_string(),
            flows: request.flows,
            seed: request.seed,
        }
    }
}

#[derive(Serialize)]
struct GenerateReport<'a> {
    #[serde(flatten)]
    asked: Asked,
    #[serde(flatten)]
    generated: &'a Generated,
    departures: Class,
    departures_by: Means,
    /// Packets that the queueing discipline dropped, whoever sent them.
    #[serde(skip_serializing_if = "Option::is_none")]
    etf_dropped: Option<u64>,
    /// Better means of that class.
    declined: &'a [Declined],
    /// Placement of each sender: CPU and priority.
    senders: &'a [Placement],
    capabilities: Capabilities,
}

/// Runs the verb and prints its events.
pub(crate) fn run(request: &Generate) -> Outcome {
    if request.cpu.len() > 1 && request.log.is_some() {
        return Err(Failure::usage("--log: only one sender can write it, not several CPUs"));
    }
    let interface = match &request.interface {
        Interface::Dpdk(device) => return dpdk::run(request, device),
        Interface::Port(interface) => interface,
    };
    placement::gain_nothing();
    files::check(&request.stall_log)?;
    let source_mac = request.src_mac.map_or_else(|| mac(interface), Ok)?;
    let (schedule, builder) = (schedule(request)?, builder(request, source_mac)?);
    let departures = Departures::negotiate(interface, request.departures).or_fail(Exit::Usage)?;
    let mut ports = senders_ports(request, interface, &departures)?;
    let mut log = request.log.as_deref().map(create).transpose()?;
    let stopped = request.ending.watch()?;
    let load = Load {
        schedule,
        sizes: request.frame_bytes.clone(),
        builder,
        stop: request.sending.stop(),
    };
    // Each CPU is tried here, where an error can still be reported. Its permissions do not change later.
    let placed = |cpu| Placement::take(cpu, request.fifo);
    let senders = cpus(request).into_iter().map(placed).collect::<Result<Vec<_>, _>>();
    let senders = senders.or_fail(Exit::Usage)?;
    let generated = if let [port] = ports.as_mut_slice() {
        let log: Option<&mut dyn Write> = log.as_mut().map(|log| log as &mut dyn Write);
        generate(port.as_mut(), load, log, &stopped, events::ready)
    } else {
        let place = |number: usize| {
            // It worked above; a CPU that has gone since shows in the lateness.
            let _ = Placement::take(request.cpu.get(number).copied(), request.fifo);
        };
        generate_together(&mut ports, &load, &stopped, &place, events::ready)
    };
    let generated = generated.map_err(|error| match error {
        GenerateError::Port(error) => error.into(),
        error => Failure::disturbed(error),
    })?;
    if let Some(path) = &request.stall_log {
        write_stalls(path, &generated.stalls)?;
    }
    let report = GenerateReport {
        asked: request.into(),
        generated: &generated,
        departures: departures.class,
        departures_by: departures.by,
        etf_dropped: departures.dropped(),
        declined: &departures.declined,
        senders: &senders,
        capabilities: ports[0].capabilities(),
    };
    events::result("tailtrim.generator/1", &report)
}

/// The CPU of each sender: one that is not pinned, unless some were named.
fn cpus(request: &Generate) -> Vec<Option<usize>> {
    if request.cpu.is_empty() {
        vec![None]
    } else {
        request.cpu.iter().copied().map(Some).collect()
    }
}

/// A port for each sender.
fn senders_ports(
    request: &Generate,
    interface: &PortName,
    departures: &Departures,
) -> Result<Vec<Box<dyn Port>>, Failure> {
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    for _ in cpus(request) {
        let port = departures.sender()?;
        check_length(request, port.capabilities().most_bytes).map_err(|error| {
            Failure::usage(format!("{interface}: {}: raise its MTU", error.error))
        })?;
        ports.push(port);
    }
    Ok(ports)
}

/// Refuses frames that a port does not carry, which carries so many bytes without FCS.
pub(crate) fn check_length(request: &Generate, most: usize) -> Result<(), Failure> {
    let largest = request.frame_bytes.distinct().into_iter().max().unwrap_or(0);
    if largest <= most {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "carries frames of up to {} bytes (with FCS), not {}",
        most + FCS_LEN,
        largest + FCS_LEN
    )))
}

fn write_stalls(path: &Path, stalls: &Stalls) -> Result<(), Failure> {
    let mut text = "kind,from_ns,to_ns,late_ns\n".to_owned();
    for (from_ns, to_ns) in &stalls.stalled {
        text.push_str(&format!("stalled,{from_ns},{to_ns},\n"));
    }
    for ((from_ns, to_ns), late_ns) in &stalls.late {
        text.push_str(&format!("late,{from_ns},{to_ns},{late_ns}\n"));
    }
    fs::write(path, text).or_unwritable(path, Exit::Disturbed)
}

pub(crate) fn schedule(request: &Generate) -> Result<Schedule, Failure> {
    if let Some(replay) = request.schedule.strip_prefix("replay:") {
        let (path, scale) = match replay.rsplit_once(':') {
            Some((path, scale)) if scale.parse::<f64>().is_ok() => (path, scale),
            _ => (replay, "1"),
        };
        let thousandths = (scale.parse::<f64>().unwrap_or(1.0) * 1e3).round();
        if !(1.0..=1e9).contains(&thousandths) {
            let wrong = format!("schedule {:?}: a scale from 0.001 to 1000000", request.schedule);
            return Err(Failure::usage(wrong));
        }
        return Ok(Schedule::replay(stamps(Path::new(path))?, thousandths as u64));
    }
    let pattern: Pattern = request.schedule.parse().or_fail(Exit::Usage)?;
    let missing = "--rate is missing: packets such as 120kpps, or bits such as 1Gbit/s";
    let rate = request.rate.ok_or(missing).or_fail(Exit::Usage)?;
    Ok(Schedule::new(&pattern, rate.interval_ns(request.frame_bytes.mean()), request.seed))
}

/// The stamps of a capture.
fn stamps(path: &Path) -> Result<Vec<i64>, Failure> {
    let mut source = source::open(path, Reading::default()).or_fail(Exit::Usage)?;
    let signer = Signer::new(Rewrites::default());
    let (mut batch, mut stamps) = (Vec::new(), Vec::new());
    while source.capture.read(&signer, &mut batch).or_fail(Exit::Usage)? {
        stamps.extend(batch.iter().filter(|record| record.stamped).map(|record| record.stamp_ns));
    }
    Ok(stamps)
}

pub(crate) fn builder(request: &Generate, source_mac: [u8; 6]) -> Result<Builder, Failure> {
    let ip = match (request.src_ip, request.dst_ip) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Ip::V4(source, destination),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Ip::V6(source, destination),
        _ => return Err(Failure::usage("--src-ip and --dst-ip: one is IPv4, the other IPv6")),
    };
    let addressing = Addressing {
        source_mac,
        destination_mac: request.dst_mac,
        vlan: request.vlan,
        ip,
        dscp: request.dscp,
        source_port: request.src_port,
        destination_port: request.dst_port,
        flows: request.flows,
    };
    let least = request.frame_bytes.distinct().into_iter().min().unwrap_or(0);
    Builder::new(addressing, least).or_fail(Exit::Usage)
}
