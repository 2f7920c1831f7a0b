//! Options that several verbs have, and how their values are read.

use crate::exit::{Exit, Failure, OrFail};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::fs;
use std::path::Path;
use tailtrim_ports::generate::Stop;
use tailtrim_stats::Probability;
use tailtrim_sys::placement::{Placement, PlacementError};
use tailtrim_tail::analysis::{Analysis, Options, OrderError};
use tailtrim_tail::matching::Window;
use tailtrim_tail::signature::{Rewrites, Selection};
use tailtrim_wire::Key;
use tailtrim_wire::duration::{time_ns, time_or_number_ns};

/// Options for matching packets and analysing their latencies.
#[derive(Debug, clap::Args)]
pub(crate) struct Matching {
    /// Bytes that identify a packet, counted from the start of the frame
    #[arg(long, value_name = "OFFSET:LENGTH,…")]
    pub(crate) signature: Option<Selection>,
    /// Fields that the device under test rewrites, beside MAC addresses, VLAN tags, TTL and checksums
    #[arg(
        long,
        value_enum,
        value_name = "FIELDS",
        value_delimiter = ',',
        conflicts_with = "signature"
    )]
    pub(crate) mask: Vec<Mask>,
    /// Leave out samples within this time of the first match, such as 1s or 500ms
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub(crate) skip: i64,
    /// Match a packet that leaves up to this time after it entered; later ones count as not delivered
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
    /// Match frames that nothing tells apart in their order: the n-th that leaves with the n-th that entered
    #[arg(long)]
    pub(crate) in_order: bool,
    /// Accept captures in which many packets leave before they enter
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
            in_order: self.in_order,
            ..Options::default()
        }
    }

    /// Refuses a result whose captures seem to be swapped or the same, unless that is accepted.
    pub(crate) fn check_order(&self, analysis: &Analysis) -> Result<(), OrderError> {
        if self.allow_negative { Ok(()) } else { analysis.check_order() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mask {
    /// IP addresses and TCP or UDP ports
    Nat,
    /// DSCP and ECN
    Tos,
    /// MPLS, PPPoE, GRE, ERSPAN, IP in IP, SRv6, VXLAN, GENEVE, GTP-U, L2TP and others: the innermost packet counts
    Tunnel,
}

/// Parser of an option that has one of these values, each with its name and help.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    values: &[(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> + use<T> {
    let values = values.to_vec();
    let named = values.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(named.collect::<Vec<_>>()).try_map(move |chosen| {
        let value =
            values.iter().find(|(name, ..)| *name == chosen).map(|(.., value)| value.clone());
        value.ok_or("no such value")
    })
}

/// Place of a verb with one busy thread.
#[derive(Debug, clap::Args)]
pub(crate) struct Placing {
    /// CPU to run on
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
    /// Run with real-time priority (SCHED_FIFO)
    #[arg(long)]
    fifo: bool,
}

impl Placing {
    /// Places this thread.
    pub(crate) fn take(&self) -> Result<Placement, PlacementError> {
        Placement::take(self.cpu, self.fifo)
    }
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

/// End of a verb that sends.
#[derive(Debug, clap::Args)]
pub(crate) struct Sending {
    /// Stop after this time, such as 5s or 500ms [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time_with_unit)]
    duration: Option<u64>,
    /// Stop after this many packets; ping: to each target
    #[arg(long, short = 'c', value_name = "N", conflicts_with = "duration")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

impl Sending {
    pub(crate) fn stop(&self) -> Stop {
        self.duration.map_or(Stop::Packets(self.count.unwrap_or(u64::MAX)), Stop::After)
    }
}

/// A time with its unit: a number alone may have been meant as one of packets.
fn time_with_unit(text: &str) -> Result<u64, String> {
    let told = || format!("invalid time {text:?}, expected one such as 5s (--count: packets)");
    time_ns(text).ok_or_else(told)
}

/// `02:00:00:00:00:01`
pub(crate) fn parse_mac(text: &str) -> Result<[u8; 6], String> {
    let bytes: Vec<u8> = text
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok().filter(|_| byte.len() == 2))
        .collect::<Option<_>>()
        .unwrap_or_default();
    bytes
        .try_into()
        .map_err(|_| format!("{text:?}: expected a MAC address such as 02:00:00:00:00:01"))
}

/// The key of authenticated STAMP in a file.
pub(crate) fn key(path: &Path) -> Result<Key, Failure> {
    let told = |error: &dyn std::fmt::Display| format!("--key-file {}: {error}", path.display());
    let text = fs::read(path).map_err(|error| told(&error)).or_fail(Exit::Usage)?;
    Key::of_text(&text).map_err(|error| told(&error)).or_fail(Exit::Usage)
}
