//! Two sides in, the tail out: drives reading, signing, matching and statistics in one pass.

mod burst;
mod copies;
mod counting;
mod decoding;
mod departures;
mod era;
mod findings;
mod gaps;
mod latencies;
mod ledger;
mod lost_at_start;
mod merging;
mod numbering;
mod ongoing;
mod order;
mod outcomes;
mod remote;
mod report;
mod running_counts;
mod sample;
mod seconds;
mod source;
mod stretch;
mod tap;
mod terms;
mod warnings;

pub use burst::{Bursts, POSITIONS};
pub use copies::{Copies, copies_within_ns};
pub(crate) use copies::{FEWEST as FEWEST_COPIES, MOST as MOST_COPIES, SHARE, may_be_copies};
pub use counting::{Begin, Counted, Counts, Order};
pub use decoding::{Checkpoint, Decoding, Facts, First, Packet};
pub use departures::Departures;
pub use ledger::{DecidedPair, Ledger, LedgerError, Place, TangledPacket};
pub use ongoing::Ongoing;
pub use order::OrderError;
pub use outcomes::{Ends, Outcome, Tally};
pub use remote::Outline;
pub use sample::{Passed, Sample, Sink};
pub use seconds::{Load, Second};
pub use source::{Numbered, Numbers, Opened, Source};
pub use stretch::Stretch;
pub use terms::Terms;
pub(crate) use terms::signer;

use crate::capture::CaptureError;
use crate::clock::ClockFit;
use crate::directions::Direction;
use crate::lost::LostFrame;
use crate::matching::Window;
use crate::signature::{Rewrites, Selection, Signature};
use crate::summary::{self, Summary};
use crate::unmatched::Leftovers;
use std::ops::ControlFlow;
use tailtrim_stats::{Histogram, Probability, Ranked};

/// Options of an analysis.
#[derive(Debug, Clone)]
pub struct Options {
    /// The largest distance between the two stamps of a packet.
    pub window: Window,
    /// Samples that leave within this of the first matched egress stamp do not count.
    pub trim_ns: i64,
    /// Fields that the device under test rewrites.
    pub rewrites: Rewrites,
    /// Bytes that make the signature, instead of the default ones.
    pub selection: Option<Selection>,
    /// Quantiles asked for beside those that are always given.
    pub quantiles: Vec<Probability>,
    /// Confidence of the intervals.
    pub confidence: Probability,
    /// Number of the worst packets to keep.
    pub worst: usize,
    /// Number of lost packets to keep, the first ones.
    pub lost: usize,
    /// Somebody watched behind the device for the whole window after the last ingress packet: what did not
    /// leave is lost, however early the egress capture ends.
    pub watched_to_the_end: bool,
    /// When the generator was not up to its schedule, as far as that is known.
    pub departures: Departures,
    /// Analyse only packets that go this way, of captures that have both.
    pub direction: Option<Direction>,
    /// Match the n-th frame of a signature with the n-th that leaves: frames that nothing tells apart.
    pub in_order: bool,
    /// Leave out ingress frames of the same signature within this time, copies of a mirror port, also where the first packets
    /// do not tell that there are some.
    pub copies_within_ns: Option<i64>,
    /// Taken off each egress stamp, and so off each latency: what the cables between the taps and the device take,
    /// in ns. Negative where the way to the ingress tap is the longer one.
    pub correction_ns: i64,
    /// Find how to correct the clocks of the taps before, of captures that can be read twice.
    pub fit_clocks: bool,
    /// Corrects the clocks of the taps. Captures are then analysed in one piece.
    pub clock_fit: ClockFit,
    /// The captures may have no end: only the sink is told what is found, each packet within a second of its decision, and
    /// memory does not grow with time. The result is empty.
    pub endless: bool,
}

impl Default for Options {
    /// The options of the papers: 5 s window, 1 s trim, the 5,000 worst packets; 95 % intervals.
    fn default() -> Self {
        Self {
            window: Window::default(),
            trim_ns: 1_000_000_000,
            rewrites: Rewrites::default(),
            selection: None,
            quantiles: Vec::new(),
            confidence: Probability::P95,
            worst: 5_000,
            lost: 0,
            watched_to_the_end: false,
            departures: Departures::default(),
            direction: None,
            in_order: false,
            copies_within_ns: None,
            correction_ns: 0,
            fit_clocks: false,
            clock_fit: ClockFit::default(),
            endless: false,
        }
    }
}

/// Why an analysis did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// One of the captures cannot be read.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The sink could not take a sample.
    #[error("samples cannot be kept: {0}")]
    Sink(#[source] std::io::Error),
    /// Options take reading the captures more than once.
    #[error(
        "a pipe cannot be read twice, as a direction, a correction of clocks, groups and lost packets take: expected two \
         files"
    )]
    Pipe,
    /// A direction was asked for, but packets go one way only.
    #[error("all packets of these captures go one way, expected captures with both directions")]
    OneDirection,
    /// The progress callback asked to stop.
    #[error("stopped on request")]
    Stopped,
}

/// One of the worst packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstPacket {
    /// The packet.
    pub sample: Sample,
    /// Its place among the samples in the order in which they left, from 0.
    pub index: u64,
}

/// A packet that entered after the trim and never left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LostPacket {
    /// When it entered, in ns of the ingress capture's clock.
    pub ingress_ns: i64,
    /// Its signature.
    pub signature: Signature,
}

/// The result of an analysis.
pub struct Analysis {
    /// The result in numbers, as it is printed and stored.
    pub summary: Summary,
    /// Every latency and how often it occurred.
    pub latencies: Ranked,
    /// Quantiles with their intervals along the whole curve, nine to a decade of 1 − p, for pictures.
    pub curve: Vec<summary::Quantile>,
    /// Inter-packet gaps at the ingress tap.
    pub ingress_gaps: Histogram,
    /// Inter-packet gaps at the egress tap.
    pub egress_gaps: Histogram,
    /// RFC 3393 delay variation of successive delivered packets.
    pub delay_variation: Histogram,
    /// The worst packets, worst first.
    pub worst: Vec<WorstPacket>,
    /// The first lost packets, in the order in which they entered; as many as [`Options::lost`].
    pub lost: Vec<LostPacket>,
    /// Their frames, once they were [found](crate::lost::find) in the ingress capture.
    pub lost_frames: Option<Vec<LostFrame>>,
    /// Load and losses at the taps, by second.
    pub seconds: Vec<Second>,
    /// Latencies by position in the burst, where the traffic came in bursts.
    pub bursts: Option<Bursts>,
    /// The packets in no pair, where they were matched here.
    pub leftovers: Leftovers,
}

/// Analyses two captures, or two other sources. Samples go to `sink` as they are matched; `progress` is told
/// now and then how much of each is done with ([`Source::offset`]) and may ask to stop.
///
/// # Errors
/// [`AnalysisError::Capture`] at the first damage of a capture that is not salvaged, otherwise what
/// `sink` or `progress` caused.
pub fn analyze<P: Source + ?Sized, S: Sink>(
    ingress: &mut P,
    egress: &mut P,
    options: &Options,
    sink: &mut S,
    progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, AnalysisError> {
    let terms = Terms::of(ingress, egress, options)?;
    let mut ongoing: Ongoing<'_, &mut P> = Ongoing::new(ingress, egress, &terms, options);
    ongoing.run(None, sink, progress)?;
    Ok(ongoing.finish_telling(sink))
}
