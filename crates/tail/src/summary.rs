//! The result of an analysis in numbers: what `--json` prints, what a run directory keeps and what the
//! other engines must reproduce byte for byte. Integers and decimal text only, no binary fractions.

use crate::capture::Unread;
use crate::clock::{ClockFit, told};
use serde::{Deserialize, Serialize};
use tailtrim_stats::{Mean, Probability, Spread};

/// Name and version of the form below.
pub const SCHEMA: &str = "tailtrim.summary/1";

/// A summary.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Outcomes of all ingress packets.
    pub ingress: Ingress,
    /// Outcomes of all egress packets.
    pub egress: Egress,
    /// Packets whose latency counts below.
    pub samples: u64,
    /// Samples that left within this of the first matched egress stamp do not count.
    pub trim_ns: i64,
    /// A packet that leaves later than this after it entered is not matched.
    pub window_ns: i64,
    /// Taken off each egress stamp, and so off each latency, for the cables between the taps and the device.
    #[serde(skip_serializing_if = "is_zero")]
    pub correction_ns: i64,
    /// The coarser of the steps of the stamps at both taps, in ps: finer differences of latency say nothing.
    pub resolution_ps: u64,
    /// Correction of the clocks of the taps, where one was asked for and needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_fit: Option<ClockFit>,
    /// Error bound of each latency, either way, if two clocks stamped: proven by their comparison during the run.
    #[serde(skip_serializing_if = "is_zero")]
    pub clock_error_ns: i64,
    /// Settings of the signature that identified the packets.
    pub signature: SignatureSettings,
    /// Facts of the captures apart from any matching.
    pub taps: Taps,
    /// Latency of the delivered packets.
    pub latency_ns: Latency,
    /// The same quantiles when a lost packet counts as infinitely late: a value of `null` lies among the
    /// lost packets, and so does an upper bound of `null` where `supported` is true.
    pub delivery_adjusted_ns: Vec<Quantile>,
    /// Gaps between successive packets.
    pub gap_ns: Gaps,
    /// RFC 3393 delay variation: latency of a packet minus that of the one that left before it.
    pub delay_variation_ns: Spread,
    /// The worst packets.
    pub worst: WorstPackets,
    /// Latency by position in the burst, where the traffic came in bursts.
    pub bursts: Option<Bursts>,
    /// Effect of the generator's lateness, where late departures are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departed_late: Option<DepartedLate>,
    /// Warnings that a reader must know before trusting the numbers.
    pub warnings: Vec<Warning>,
}

impl Summary {
    /// Tells how far latencies may be off where two clocks stamped; `None`: that is not known, for these reasons.
    pub fn stamped_by_two_clocks(&mut self, error_ns: Option<i64>, why: &[String]) {
        self.clock_error_ns = error_ns.unwrap_or(0);
        let median =
            self.latency_ns.quantiles.iter().find(|quantile| quantile.p == Probability::P50);
        let median_ns = median.and_then(|quantile| quantile.value);
        self.warnings.push(told::of_two_clocks(error_ns, why, median_ns, self.samples));
    }

    /// Whether it has no latency, or not that of the device.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.samples == 0 || self.warnings.iter().any(|warning| warning.invalidates)
    }
}

const NANOSECOND_PS: u64 = 1_000;

fn nanosecond() -> u64 {
    NANOSECOND_PS
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_nanosecond(unit_ps: &u64) -> bool {
    *unit_ps <= NANOSECOND_PS
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// Outcomes of the ingress packets. All but `packets` add up to `packets`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Ingress {
    /// Packets in the capture.
    pub packets: u64,
    /// Left within the window.
    pub matched: u64,
    /// Never left.
    pub lost: u64,
    /// Not to be told from another packet in flight.
    pub duplicate: u64,
    /// Left, but later than the window.
    pub beyond_window: u64,
    /// In flight when the egress capture began, long after the ingress capture, or ended.
    pub cut: u64,
    /// Passed, but entered while the generator stood still in the middle of sending: whose delay it is, is unknown.
    pub stalled: u64,
    /// Within the trim, whatever else became of them.
    pub trimmed: u64,
    /// Without a stamp, when they entered or when they left.
    pub unstamped: u64,
    /// Copies of a mirror port: the first of each packet counts.
    #[serde(skip_serializing_if = "is_none")]
    pub copy: u64,
}

/// Outcomes of the egress packets. All but `packets` add up to `packets`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Egress {
    /// Packets in the capture.
    pub packets: u64,
    /// The packet of an ingress packet.
    pub matched: u64,
    /// Explained by no ingress packet.
    pub unmatched: u64,
    /// A further packet of a matched ingress packet.
    pub copy: u64,
    /// May have entered before the ingress capture began.
    pub cut: u64,
    /// The packet of a stalled ingress packet.
    pub stalled: u64,
    /// Within the trim, whatever else became of them.
    pub trimmed: u64,
    /// Without a stamp, when they left or when they entered.
    pub unstamped: u64,
}

/// Settings of the signature that identified the packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignatureSettings {
    /// `OFFSET:LENGTH,…` as chosen by the user; `null` for the default.
    pub selection: Option<String>,
    /// Most bytes after the L2 header that took part by default.
    pub bytes: usize,
    /// Fields masked beyond the default: `nat`, `tos`, `tunnel`.
    pub masks: Vec<&'static str>,
    /// The n-th frame that left was matched with the n-th that entered.
    #[serde(skip_serializing_if = "is_false")]
    pub in_order: bool,
}

/// Both taps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taps {
    /// Before the device under test.
    pub ingress: Tap,
    /// Behind it.
    pub egress: Tap,
}

/// Facts of a capture apart from any matching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tap {
    /// The capture as the user named it.
    pub capture: String,
    /// First stamp, ns of the capture's clock.
    pub first_ns: Option<i64>,
    /// Last stamp, ns of the capture's clock.
    pub last_ns: Option<i64>,
    /// Bytes on the wire, without FCS.
    pub bytes: u64,
    /// Frames cut by the snap length.
    pub cut_frames: u64,
    /// Frames of which too little was kept to take the whole signature.
    pub short_signatures: u64,
    /// Stamps before an earlier one.
    pub out_of_order: u64,
    /// Frames so far out of order that their gaps are missing.
    pub misplaced: u64,
    /// Frames that the capturing program says it missed; `null` where the format cannot tell.
    pub tap_drops: Option<u64>,
    /// The unit of the stamps of the capture, in ps.
    #[serde(default = "nanosecond", skip_serializing_if = "is_nanosecond")]
    pub unit_ps: u64,
    /// The damage at which a salvaged capture ends.
    pub damage: Option<String>,
    /// The first packet that is left out because its stamp is far from those of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub odd_stamp: Option<OddStamp>,
    /// Packets of interfaces whose link types are not understood: they are not read, and counted nowhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
}

/// A packet whose stamp is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OddStamp {
    /// Number of the packet in the capture, from 1.
    pub packet: u64,
    /// The stamp, ns of the capture's clock.
    pub stamp_ns: i64,
}

impl OddStamp {
    /// The same behind so many packets.
    pub(crate) fn behind(self, packets: u64) -> Self {
        Self { packet: self.packet + packets, ..self }
    }
}

/// A latency distribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Smallest latency.
    pub min: Option<i64>,
    /// Largest latency.
    pub max: Option<i64>,
    /// Mean latency.
    pub mean: Option<Mean>,
    /// p75 − p25.
    pub iqr: Option<i64>,
    /// Confidence of the intervals.
    pub confidence: Probability,
    /// Quantiles by nearest rank, ascending.
    pub quantiles: Vec<Quantile>,
}

/// A quantile and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Quantile {
    /// Which.
    pub p: Probability,
    /// The sample at rank ⌈p·N⌉.
    pub value: Option<i64>,
    /// The true quantile is at least this.
    pub low: Option<i64>,
    /// The true quantile is at most this.
    pub high: Option<i64>,
    /// Whether the samples bound the quantile from above, with ten independent episodes or more.
    pub supported: bool,
    /// Independent samples needed for that.
    pub samples_needed: u64,
    /// Independent samples that would give bounds like these: fewer than there are where late packets come in clusters.
    pub effective_samples: u64,
    /// Independent episodes from which the bounds are known, undelivered packets included.
    pub episodes: u64,
    /// Runs of successive packets above the value; `null` where more packets are above it than the worst
    /// that are kept.
    pub clusters: Option<u64>,
}

/// Gaps at both taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// Before the device under test.
    pub ingress: Spread,
    /// Behind it.
    pub egress: Spread,
}

/// The worst packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorstPackets {
    /// Number of packets that are kept.
    pub count: u64,
    /// Runs of successive packets that they form: one stall delays many.
    pub clusters: u64,
    /// The smallest latency among them.
    pub from_ns: Option<i64>,
}

/// Samples that departed late, and latency without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DepartedLate {
    /// Samples that the generator sent later than intended: they came closer together than the schedule says.
    pub samples: u64,
    /// Quantiles by nearest rank of the other samples; `null` where there are none.
    pub without_ns: Vec<QuantileValue>,
}

/// A quantile without an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QuantileValue {
    /// Which.
    pub p: Probability,
    /// The sample at rank ⌈p·N⌉.
    pub value: Option<i64>,
}

/// Latency by position in the burst.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bursts {
    /// The largest gap within a burst.
    pub gap_ns: i64,
    /// One row a position, the last one for it and all later ones.
    pub positions: Vec<Position>,
}

/// Latency at a position in the burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// From 1.
    pub position: u64,
    /// Samples at it.
    pub samples: u64,
    /// Their latency.
    pub latency_ns: Spread,
}

/// Warning that a reader must know before trusting the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable name.
    pub code: &'static str,
    /// Number of packets that it is about.
    pub count: u64,
    /// The sentence for people.
    pub text: String,
    /// Whether, until it is dealt with, no percentile is the latency of the device: the clocks lie, or packets that
    /// left count as lost.
    #[serde(skip_serializing_if = "is_false")]
    pub invalidates: bool,
}

/// A count as people read it: 1,234,567.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

/// A count of things with their name: `1 packet`, `1,234 packets`.
#[must_use]
pub fn counted(count: u64, name: &str) -> String {
    format!("{} {name}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// The same with the verb for one and for several: `1 packet is`, `1,234 packets are`.
#[must_use]
pub fn counted_do(count: u64, name: &str, [one, several]: [&str; 2]) -> String {
    format!("{} {}", counted(count, name), if count == 1 { one } else { several })
}

/// A number of bytes.
pub(crate) fn in_bytes(count: usize) -> String {
    counted(count as u64, "byte")
}

/// All of so many: `the only packet has`, `all 1,234 packets have`.
pub(crate) fn all_do(count: u64, name: &str, [one, several]: [&str; 2]) -> String {
    match count {
        1 => format!("the only {name} {one}"),
        _ => format!("all {} {several}", counted(count, name)),
    }
}

/// A time since 1970 as date and time of UTC, to the second; 0 stays so, since it stands for no time.
pub(crate) fn utc(stamp_ns: i64) -> String {
    const DAY_S: i64 = 86_400;
    if stamp_ns == 0 {
        return "0".to_owned();
    }
    let seconds = stamp_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    // Days since 0000-03-01, in eras of 400 years (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02} UTC", second % 60)
}
