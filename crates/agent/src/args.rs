//! The command line: clap structures, nothing else.

use clap::{Parser, Subcommand, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tailtrim_stats::Probability;
use tailtrim_tail::analysis::{Options, OrderError};
use tailtrim_tail::matching::Window;
use tailtrim_tail::signature::{Rewrites, Selection};
use tailtrim_tail::summary::Summary;
use tailtrim_wire::duration::time_or_number_ns;

/// Measure, explain and trim the tail latency of packet processing: the part that runs on the hosts.
#[derive(Debug, Parser)]
#[command(name = "tailtrim-agent", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 success, 1 nothing matched, 2 invalid arguments or input, 3 not possible \
    on this host, 4 failed while running.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Match an ingress and an egress capture, and print the summary as JSON.
    Analyze(Analyze),
    /// Check this host's settings for low latency.
    Audit(Box<crate::audit::Audit>),
    /// Send probe packets on a schedule.
    Generate(crate::generate::Generate),
    /// Capture at the taps of a device under test.
    Capture(crate::capture::Capture),
    /// Forward frames between two ports, optionally with a known delay.
    Forward(crate::forward::Forward),
    /// Disturb a device under test at random, logged times.
    Disturb(crate::disturb::Disturb),
    /// Measure round trips to reflectors.
    Ping(Box<crate::ping::Ping>),
    /// Reflect probes of round-trip measurements: UDP echo, STAMP, TWAMP-Light.
    Reflect(crate::reflect::Reflect),
    /// Record what uses the CPUs: interrupts, softirqs, threads, and their senders.
    Trace(crate::trace::Trace),
    /// Count what slows CPUs down, each minute: SMIs, thermal throttling, steal, interrupts, context switches.
    Counters(crate::counters::Counters),
    /// Measure OS noise and attribute it to its causes.
    Noise(crate::noise::Noise),
    /// Serve a controller that uses this node by SSH: hold programs, pass frames, read clocks.
    Node(crate::node::Node),
    /// Plan, apply, verify and revert host tuning.
    Tune(crate::tune::Tune),
}

/// Match an ingress and an egress capture, and print the summary as JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent analyze ingress.pcap.zst egress.pcap.zst\n  \
    tailtrim-agent analyze pre.pcap post.pcap --mask nat --quantile 0.9999999\n  \
    zcat pre.pcap.gz | tailtrim-agent analyze - post.pcap.gz --signature 42:4 | jq .latency_ns")]
pub(crate) struct Analyze {
    /// Capture of the packets that enter the device under test (pcap, pcapng, mscap; .zst, .gz; - for stdin)
    pub(crate) ingress: PathBuf,
    /// Capture of the packets that leave it
    pub(crate) egress: PathBuf,
    #[command(flatten)]
    pub(crate) matching: Matching,
    /// Source of the time stamps
    #[arg(long, value_enum, default_value_t)]
    pub(crate) stamps: Stamps,
    /// Analyse a damaged capture up to the damage
    #[arg(long)]
    pub(crate) salvage: bool,
    /// When the generator was not up to its schedule: JSON with stalled and late, lists of [from, to] in ns
    #[arg(long, value_name = "FILE")]
    pub(crate) departures: Option<PathBuf>,
    /// Cores to use at most [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Directory for the tables as Parquet files, and the summary; created if missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// With --out, for captures of hours: results by minute as each minute ends (minute.jsonl, minute.hlog), and no
    /// sample.parquet
    #[arg(long, requires = "out")]
    pub(crate) by_minute: bool,
}

/// Options for matching packets and analysing their latencies.
#[derive(Debug, clap::Args)]
pub(crate) struct Matching {
    /// Bytes that identify a packet, counted from the start of the frame
    #[arg(long, value_name = "OFFSET:LENGTH,…")]
    pub(crate) signature: Option<Selection>,
    /// Fields that the device under test rewrites, beside MAC addresses, VLAN tags, TTL and checksums
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "signature")]
    pub(crate) mask: Vec<Mask>,
    /// Leave out samples within this time of the first match, such as 1s or 500ms
    #[arg(long, alias = "trim", value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(crate) skip: i64,
    /// Longest latency: later packets are not matched, such as 5s or 500ms
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub(crate) window: i64,
    /// A quantile in addition to 0.5, 0.9, 0.99 …; repeatable
    #[arg(long = "quantile", value_name = "P")]
    pub(crate) quantiles: Vec<Probability>,
    /// Confidence level of the intervals
    #[arg(long, value_name = "P", default_value = "0.95")]
    pub(crate) confidence: Probability,
    /// Take this off each latency, in ns: what cables between the taps and the device take
    #[arg(long, value_name = "NS", default_value = "0", allow_negative_numbers = true)]
    pub(crate) correction: i64,
    /// Accept captures in which most packets leave before they enter
    #[arg(long)]
    pub(crate) allow_negative: bool,
}

impl Matching {
    pub(crate) fn options(&self) -> Options {
        let masked = |mask| self.mask.contains(&mask);
        Options {
            window: Window { window_ns: self.window, ..Window::default() },
            trim_ns: self.skip,
            rewrites: Rewrites {
                nat: masked(Mask::Nat),
                tos: masked(Mask::Tos),
                tunnel: masked(Mask::Tunnel),
            },
            selection: self.signature.clone(),
            quantiles: self.quantiles.clone(),
            confidence: self.confidence,
            correction_ns: self.correction,
            ..Options::default()
        }
    }

    /// Refuses a result whose captures seem to be swapped or the same, unless that is accepted.
    pub(crate) fn check_order(&self, summary: &Summary) -> Result<(), OrderError> {
        if self.allow_negative { Ok(()) } else { summary.check_order() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mask {
    /// IP addresses and TCP or UDP ports
    Nat,
    /// DSCP and ECN
    Tos,
    /// A VXLAN or GRE tunnel: the innermost packet counts
    Tunnel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Stamps {
    /// The record headers of the capture
    #[default]
    Header,
    /// The last eight bytes of each frame, appended by an X552 NIC
    X552,
}

/// A time such as `10s` or `500ms`, or decimal seconds, as nanoseconds.
pub(crate) fn time(text: &str) -> Result<i64, String> {
    time_or_number_ns(text, 1_000_000_000)
        .map(u64::cast_signed)
        // The matcher needs twice the window.
        .filter(|ns| *ns < i64::MAX / 4)
        .ok_or_else(|| format!("invalid time {text:?}, expected one such as 10s or 500ms"))
}

/// A time such as `50us`, or decimal microseconds, as whole microseconds.
pub(crate) fn microseconds(text: &str) -> Result<u32, String> {
    time_or_number_ns(text, 1_000)
        .filter(|ns| ns % 1_000 == 0)
        .and_then(|ns| u32::try_from(ns / 1_000).ok())
        .ok_or_else(|| format!("invalid time {text:?}, expected whole microseconds such as 50us"))
}
