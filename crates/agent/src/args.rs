//! The command line: clap structures, nothing else.

use clap::{Parser, Subcommand};

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
    Analyze(crate::analyze::Analyze),
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
    /// List what the drivers of interfaces claim, or measure it over a cable.
    Ports(crate::ports::Ports),
    /// Measure round trips to many targets without end: minutes on disk, metrics.
    Watch(crate::watch::Watch),
    /// Plan, apply, verify and revert host tuning.
    Tune(crate::tune::Tune),
}
