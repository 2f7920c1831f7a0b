//! The command line: clap structures, nothing else.

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use tailtrim_stats::Probability;
use tailtrim_tail::signature::Selection;
use tailtrim_wire::duration::seconds_ns;

/// Measure, explain and trim the tail latency of packet processing: the part that runs on the hosts.
#[derive(Debug, Parser)]
#[command(name = "tailtrim-agent", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 done but nothing matched, 2 wrong request or input, 3 not possible on this host, \
     4 broke while running.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Match an ingress and an egress capture; prints the summary as JSON.
    Analyze(Analyze),
    /// Ask whether this host is fit for low latency, and what to change.
    Audit(Box<crate::audit::Audit>),
    /// Send probes on a schedule.
    Generate(crate::generate::Generate),
    /// Capture at the taps of a device under test.
    Capture(crate::capture::Capture),
    /// Forward frames between two ports, with a known delay if asked to.
    Forward(crate::forward::Forward),
    /// Disturb a device under test at known times.
    Disturb(crate::disturb::Disturb),
    /// Measure round trips to reflectors.
    Ping(Box<crate::ping::Ping>),
    /// Send back what others measure round trips with: UDP echo, STAMP, TWAMP-Light.
    Reflect(crate::reflect::Reflect),
    /// Record what takes CPUs: interrupts, softirqs, threads, and who sent them.
    Trace(crate::trace::Trace),
    /// Measure how quiet CPUs are, and name who disturbs them.
    Noise(crate::noise::Noise),
    /// Plan, apply, verify and take back what low latency needs of a host.
    Tune(crate::tune::Tune),
}

/// Match an ingress and an egress capture; prints the summary as JSON.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailtrim-agent analyze ingress.pcap.zst egress.pcap.zst\n  \
    tailtrim-agent analyze pre.pcap post.pcap --mask nat --quantile 0.9999999\n  \
    zcat pre.pcap.gz | tailtrim-agent analyze - post.pcap.gz --signature 42:4 | jq .latency_ns")]
pub(crate) struct Analyze {
    /// Capture of what enters the device under test (pcap, pcapng, mscap; .zst, .gz; - for stdin)
    pub(crate) ingress: PathBuf,
    /// Capture of what leaves it
    pub(crate) egress: PathBuf,
    /// Bytes that identify a packet, from the start of the frame, instead of the default ones
    #[arg(long, value_name = "OFFSET:LENGTH,…")]
    pub(crate) signature: Option<Selection>,
    /// Fields that the device under test rewrites, beside MAC addresses, VLAN tags, TTL and checksums
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "signature")]
    pub(crate) mask: Vec<Mask>,
    /// Do not count samples that leave within this of the first match
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = nanoseconds)]
    pub(crate) trim: i64,
    /// A packet that leaves later than this is not matched
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = nanoseconds)]
    pub(crate) window: i64,
    /// A quantile to give beside 0.5, 0.9, 0.99 …
    #[arg(long = "quantile", value_name = "P")]
    pub(crate) quantiles: Vec<Probability>,
    /// Confidence of the intervals
    #[arg(long, value_name = "P", default_value = "0.95")]
    pub(crate) confidence: Probability,
    /// Where stamps are taken from
    #[arg(long, value_enum, default_value_t)]
    pub(crate) stamps: Stamps,
    /// Use what precedes damage instead of failing
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Analyse captures although most packets left before they entered
    #[arg(long)]
    pub(crate) allow_negative: bool,
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
    /// The last eight bytes of each frame, as an X552 NIC appends them
    X552,
}

/// Decimal seconds as nanoseconds, exactly.
pub(crate) fn nanoseconds(text: &str) -> Result<i64, String> {
    seconds_ns(text)
        .map(u64::cast_signed)
        // The matcher looks at twice the window.
        .filter(|ns| *ns < i64::MAX / 4)
        .ok_or_else(|| format!("{text:?} is no time, expected seconds such as 5 or 0.25"))
}
