//! The command line of `ping`, and its plan.

use crate::exit::Failure;
use crate::options::{Placing, Sending, key, microseconds, one_of, time};
use crate::stop::Ending;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use tailtrim_probes::ping::{Plan, StreamPlan};
use tailtrim_probes::resolve::{ResolveError, resolve};
use tailtrim_probes::target::{Destination, Probing};
use tailtrim_roundtrip::{Protocol, StampLevel};
use tailtrim_stats::Probability;
use tailtrim_tail::analysis::Options;
use tailtrim_tail::matching::Window;
use tailtrim_wire::dscp;
use tailtrim_wire::duration::time_or_number_ns;
use tailtrim_wire::parse_cookie;
use tailtrim_wire::traffic::{Fraction, Pattern, Rate, Schedule};

/// Measure round trips to reflectors, and the part of each layer.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ping {
    /// Reflectors: NAME, ADDRESS, NAME:PORT or [ADDRESS]:PORT
    #[arg(required = true, value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// Protocol of the probes
    #[arg(long, short = 'p', value_enum, default_value_t)]
    pub(crate) protocol: ProbeProtocol,
    /// Port of the targets [default: 7 for udp, 862 for stamp and twamp-light]
    #[arg(long, value_name = "PORT")]
    pub(crate) dst_port: Option<u16>,
    /// Source address; several: from each to each target
    #[arg(long, value_name = "IP", value_delimiter = ',')]
    pub(crate) src_ip: Vec<IpAddr>,
    /// Source port [default: chosen by the kernel]
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true)]
    pub(crate) src_port: u16,
    /// Traffic class: a DSCP (0 to 63) or a name (EF, AF41, CS6, …); several: each to each target
    #[arg(long, value_name = "DSCP,…", value_delimiter = ',', value_parser = dscp::parse)]
    pub(crate) dscp: Vec<u8>,
    /// Average probes per second to each target, such as 10pps or 20kpps
    #[arg(long, value_name = "RATE", default_value = "10pps")]
    pub(crate) rate: Rate,
    /// Average seconds between probes to each target, such as 0.2: instead of --rate
    #[arg(long, short = 'i', value_name = "TIME", value_parser = interval, conflicts_with = "rate")]
    pub(crate) interval: Option<u64>,
    /// cbr, golden (meets all phases of what repeats), poisson, burst:N or jitter:SHARE
    #[arg(long, default_value = "cbr")]
    pub(crate) schedule: Pattern,
    /// Seed of the schedule
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) sending: Sending,
    /// Replies after this time are late
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub(crate) timeout: i64,
    /// Size of a probe's IP packet in bytes [default: the smallest of the protocol]
    #[arg(long, value_name = "BYTES")]
    pub(crate) packet_bytes: Option<usize>,
    /// TTL or hop limit [default: the kernel's, 255 for stamp and twamp-light]
    #[arg(long)]
    pub(crate) ttl: Option<u8>,
    /// Send and receive by this interface only
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Where round trips are stamped. Fewer stamps make round trips shorter
    #[arg(long, value_name = "SOURCE", value_parser = one_of(LEVELS), default_value = "software")]
    pub(crate) stamps: StampLevel,
    /// Both hosts have the same clock (namespaces, containers): report one-way delays
    #[arg(long)]
    pub(crate) same_clock: bool,
    /// File with the key of authenticated STAMP
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// First 8 bytes of each UDP echo (16 hexadecimal digits), for reflect --cookie
    #[arg(long, value_name = "HEX", value_parser = parse_cookie)]
    pub(crate) cookie: Option<[u8; 8]>,
    /// Request follow-up telemetry of STAMP (RFC 8972 section 4.7): a stateful reflector reports the exact send time
    /// of its previous reply
    #[arg(long)]
    pub(crate) follow_up: bool,
    /// Busy-wait between departures (uses a whole CPU)
    #[arg(long)]
    pub(crate) spin: bool,
    /// Time for which the kernel busy-polls the NIC (SO_BUSY_POLL), such as 50us
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    pub(crate) socket_poll: Option<u32>,
    #[command(flatten)]
    pub(crate) placing: Placing,
    /// A quantile in addition to 0.5, 0.9, 0.99 …; repeatable
    #[arg(long = "quantile", value_name = "P")]
    pub(crate) quantiles: Vec<Probability>,
    /// Confidence level of the intervals
    #[arg(long, value_name = "P", default_value = "0.95")]
    pub(crate) confidence: Probability,
    /// Write all round trips to N.roundtrips and the result to ping.json in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) log: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, conflicts_with = "events")]
    pub(crate) json: bool,
    /// Print JSON lines: ready, then result
    #[arg(long)]
    pub(crate) events: bool,
    /// No progress line
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) ending: Ending,
}

const EXAMPLES: &str = "Examples:\n  \
    tailtrim-agent ping 192.0.2.7 -p icmp -c 100 -i 0.2\n  \
    tailtrim-agent ping reflector.example:862 -p stamp --rate 1kpps --duration 60s --dscp EF,0\n  \
    tailtrim-agent ping 192.0.2.7 2001:db8::7 --schedule burst:50 --rate 500pps --duration 10s --json\n\n\
    STAMP and TWAMP-Light report the reflector's residence time, which is subtracted from the round trip and shown \
    separately. Each probe and each received datagram is counted once. `tailtrim ping --out DIR` also writes run \
    directories.";

/// Bytes for replies that wait to be fetched: those of the largest bursts.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Number of decided probes of which late replies and duplicates are recognized: a minute of 1,000 a second.
const REMEMBERED: usize = 1 << 16;

/// Protocol of the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Default)]
pub(crate) enum ProbeProtocol {
    /// UDP echo (RFC 862)
    #[default]
    Udp,
    /// ICMP or ICMPv6 echo
    Icmp,
    /// STAMP (RFC 8762)
    Stamp,
    /// TWAMP-Light (RFC 5357)
    TwampLight,
}

/// Where a round trip begins and ends.
const LEVELS: &[(&str, &str, StampLevel)] = &[
    ("application", "In this process, without stamps of the kernel", StampLevel::Application),
    (
        "arrival",
        "From this process until the kernel takes the reply from the driver, as ping(8)",
        StampLevel::Arrival,
    ),
    ("software", "Between kernel and driver", StampLevel::Software),
    ("hardware", "In the NIC (needs --interface)", StampLevel::Hardware),
];

impl Ping {
    /// The interface whose NIC is to stamp.
    pub(super) fn nic(&self) -> Option<&str> {
        self.interface.as_deref().filter(|_| self.stamps == StampLevel::Hardware)
    }

    /// The rate in the form of the result.
    pub(super) fn rate_text(&self) -> String {
        match self.interval {
            Some(ns) => format!("{}pps", 1e9 / ns as f64),
            None => self.rate.to_string(),
        }
    }

    pub(super) fn plan(&self) -> Result<Plan, Failure> {
        if self.stamps == StampLevel::Hardware && self.interface.is_none() {
            return Err(Failure::usage(
                "--stamps hardware: expected --interface INTERFACE, whose NIC takes the stamps",
            ));
        }
        if self.timeout == 0 {
            return Err(Failure::usage("--timeout 0: expected seconds such as 2 or 0.25"));
        }
        let streams = self.streams()?;
        let payload_bytes = self.payload_bytes(&streams)?;
        let interval = match self.interval {
            Some(ns) => Fraction::whole(ns),
            None => self.rate.interval_ns(Fraction::whole(payload_bytes as u64 + 42)),
        };
        Ok(Plan {
            schedule: Schedule::new(&self.schedule, interval, self.seed),
            streams,
            stop: self.sending.stop(),
            probing: Probing {
                payload_bytes,
                timeout_ns: self.timeout,
                remembered: REMEMBERED,
                level: self.stamps,
                device: self.interface.clone(),
                busy_poll_us: self.socket_poll,
                hops: self.ttl,
                receive_buffer: Some(RECEIVE_BUFFER),
                same_clock: self.same_clock,
            },
            spin: self.spin,
            options: Options {
                window: Window { window_ns: self.timeout, ..Window::default() },
                quantiles: self.quantiles.clone(),
                confidence: self.confidence,
                ..Options::default()
            },
            log: self.log.clone(),
        })
    }

    fn protocol(&self) -> Result<Protocol, Failure> {
        let is = |protocol| self.protocol == protocol;
        let (udp, icmp) = (is(ProbeProtocol::Udp), is(ProbeProtocol::Icmp));
        let stamp = is(ProbeProtocol::Stamp);
        for (wrong, text) in [
            (self.key_file.is_some() && !stamp, "--key-file: only for --protocol stamp"),
            (self.cookie.is_some() && !udp, "--cookie: only for --protocol udp"),
            (self.follow_up && !stamp, "--follow-up: only for --protocol stamp"),
            (self.dst_port.is_some() && icmp, "--dst-port: ICMP has no ports"),
        ] {
            if wrong {
                return Err(Failure::usage(text));
            }
        }
        let key = self.key_file.as_deref().map(key).transpose()?;
        Ok(match self.protocol {
            ProbeProtocol::Udp => Protocol::UdpEcho { cookie: self.cookie },
            ProbeProtocol::Icmp => Protocol::IcmpEcho,
            ProbeProtocol::Stamp => Protocol::Stamp { key, follow_up: self.follow_up },
            ProbeProtocol::TwampLight => Protocol::TwampLight,
        })
    }

    /// Each target from each source in each class.
    fn streams(&self) -> Result<Vec<StreamPlan>, Failure> {
        let protocol = self.protocol()?;
        let port = self.dst_port.or(protocol.port()).unwrap_or(0);
        let or_none = |some: Vec<_>| if some.is_empty() { vec![None] } else { some };
        let sources = or_none(self.src_ip.iter().copied().map(Some).collect());
        let mut streams = Vec::new();
        for text in &self.targets {
            let candidates = resolve(text, port).map_err(refused)?;
            if protocol.port().is_none() && candidates.iter().any(|target| target.port() != 0) {
                return Err(Failure::usage(format!("{text}: ICMP has no ports")));
            }
            for source in &sources {
                let fits =
                    |target: &&SocketAddr| source.is_none_or(|s| s.is_ipv4() == target.is_ipv4());
                let Some(target) = candidates.iter().find(fits) else { continue };
                let classes = self.dscp.iter().map(|dscp| Some(dscp << 2));
                let classes =
                    if self.dscp.is_empty() { vec![None] } else { classes.collect::<Vec<_>>() };
                for traffic_class in classes {
                    let mut name = text.clone();
                    if let Some(source) = source.filter(|_| sources.len() > 1) {
                        name += &format!(" from {source}");
                    }
                    if let Some(class) = traffic_class.filter(|_| self.dscp.len() > 1) {
                        name += &format!(" DSCP {}", class >> 2);
                    }
                    let destination = Destination {
                        address: *target,
                        source: *source,
                        source_port: self.src_port,
                        traffic_class,
                        protocol: protocol.clone(),
                    };
                    streams.push(StreamPlan { name, destination });
                }
            }
        }
        if streams.is_empty() {
            return Err(Failure::usage(
                "no target has an address of the same kind (IPv4, IPv6) as --src-ip",
            ));
        }
        if streams.len() > 1 && self.src_port != 0 {
            return Err(Failure::usage(
                "--src-port: expected one target, one source and one class",
            ));
        }
        Ok(streams)
    }

    /// Bytes above UDP or, with ICMP, above IP; the same for all, so the longer header counts.
    fn payload_bytes(&self, streams: &[StreamPlan]) -> Result<usize, Failure> {
        let Some(stream) = streams.first() else { return Ok(0) };
        let least = stream.destination.protocol.least_bytes();
        let above = if self.protocol == ProbeProtocol::Icmp { 0 } else { 8 };
        let ip =
            if streams.iter().any(|stream| stream.destination.address.is_ipv6()) { 40 } else { 20 };
        let Some(bytes) = self.packet_bytes else { return Ok(least) };
        if !(least + above + ip..=65_535).contains(&bytes) {
            return Err(Failure::usage(format!(
                "--packet-bytes {bytes}: a probe of {} has {} to 65535 bytes with its IP header",
                stream.destination.protocol.name(),
                least + above + ip,
            )));
        }
        Ok(bytes - above - ip)
    }
}

/// Failure of a name: one that is wrong, or one that has no address now.
fn refused(error: ResolveError) -> Failure {
    match error {
        ResolveError::Form { .. } => Failure::usage(error),
        _ => Failure::impossible(error),
    }
}

/// Seconds between probes, as ping(8) has them, or a time such as 200ms; as nanoseconds.
fn interval(text: &str) -> Result<u64, String> {
    time_or_number_ns(text, 1_000_000_000)
        .filter(|ns| *ns > 0)
        .ok_or_else(|| format!("invalid interval {text:?}, expected seconds above 0, such as 0.2"))
}
