//! Two captures in, the tail out: drives reading, signing, matching and statistics in one pass.

mod burst;
mod decoding;
mod findings;
mod gaps;
mod latencies;
mod ledger;
mod report;
mod tap;

pub use burst::{Bursts, POSITIONS};
pub use decoding::{Checkpoint, Decoding, Facts, Packet};
pub use latencies::{Sample, Sink};
pub use ledger::{DecidedPair, Ledger, LedgerError, Outcomes, Place, TangledPacket};

use crate::capture::{Capture, CaptureError, Format, Record, WRAP_NS};
use crate::matching::{Fate, Matcher, Pair, Window};
use crate::signature::{Rewrites, SIGNED_BYTES, Selection, Signer};
use crate::summary::{self, Summary};
use findings::Findings;
use latencies::Latencies;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tailtrim_stats::{Histogram, Probability, Ranked};
use tap::{Tap, second};

/// How to analyse.
#[derive(Debug, Clone)]
pub struct Options {
    /// How far apart the stamps of a packet may be.
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
    /// How many of the worst packets to keep.
    pub worst: usize,
    /// Somebody watched behind the device for the whole window after the last ingress packet: what did not
    /// leave is lost, however early the egress capture ends.
    pub watched_to_the_end: bool,
}

impl Default for Options {
    /// What the papers do: 5 s window, 1 s trim, the 5,000 worst packets; 95 % intervals.
    fn default() -> Self {
        Self {
            window: Window::default(),
            trim_ns: 1_000_000_000,
            rewrites: Rewrites::default(),
            selection: None,
            quantiles: Vec::new(),
            confidence: Probability::P95,
            worst: 5_000,
            watched_to_the_end: false,
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
    /// The progress callback asked to stop.
    #[error("stopped on request")]
    Stopped,
}

/// What happened at the taps in one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Second {
    /// Seconds since the first ingress stamp.
    pub second: i64,
    /// Frames and L2 bytes that entered.
    pub ingress_packets: u64,
    /// Bytes on the wire, without FCS, that entered.
    pub ingress_bytes: u64,
    /// Frames that left.
    pub egress_packets: u64,
    /// Bytes on the wire, without FCS, that left.
    pub egress_bytes: u64,
    /// Packets that entered and were lost, trimmed ones included.
    pub lost: u64,
    /// Samples that entered.
    pub samples: u64,
    /// The largest latency of those samples, in ns.
    pub max_latency_ns: Option<i64>,
}

/// One of the worst packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstPacket {
    /// The packet.
    pub sample: Sample,
    /// Its place among the samples in the order in which they left, from 0.
    pub index: u64,
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
    /// What happened when, by second.
    pub seconds: Vec<Second>,
    /// Latencies by position in the burst, where the traffic came in bursts.
    pub bursts: Option<Bursts>,
}

/// Batches between two calls of the progress callback: about a million frames.
const PROGRESS_BATCHES: u32 = 4_096;

/// Analyses two captures. Samples go to `sink` as they are matched; `progress` is told now and then how
/// many bytes of each capture are done with and may ask to stop.
///
/// # Errors
/// [`AnalysisError::Capture`] at the first damage of a capture that is not salvaged, otherwise what
/// `sink` or `progress` caused.
pub fn analyze<S: Sink>(
    ingress: &mut Capture,
    egress: &mut Capture,
    options: &Options,
    sink: &mut S,
    mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, AnalysisError> {
    let mut run = Run::start(ingress, egress, options)?;
    let mut batches = 0_u32;
    loop {
        let after_ns = run.latencies.trimmed_until_ns;
        let tap = if run.ingress.ahead().is_empty() && !run.ingress.is_ended() {
            &mut run.ingress
        } else if run.egress.ahead().is_empty() && !run.egress.is_ended() {
            &mut run.egress
        } else {
            if run.ingress.ahead().is_empty() && run.egress.ahead().is_empty() {
                break;
            }
            run.merge();
            run.record(sink).map_err(AnalysisError::Sink)?;
            run.settle();
            continue;
        };
        tap.refill(&run.signer, after_ns)?;
        batches += 1;
        if batches.is_multiple_of(PROGRESS_BATCHES)
            && progress(run.ingress.capture.offset(), run.egress.capture.offset()).is_break()
        {
            return Err(AnalysisError::Stopped);
        }
    }
    Ok(run.finish(options))
}

/// An analysis under way.
struct Run<'a> {
    signer: Signer,
    ingress: Tap<&'a mut Capture>,
    egress: Tap<&'a mut Capture>,
    matcher: Matcher,
    pairs: Vec<Pair>,
    position: Option<burst::Position>,
    latencies: Latencies,
    ingress_outcomes: summary::Ingress,
    egress_outcomes: summary::Egress,
    /// Fates decided before the first match told where the trim ends.
    before_first: BTreeMap<Fate, u64>,
    lost_by_second: BTreeMap<i64, u64>,
    /// Unmatched egress packets of the first moments: how long after the first ingress stamp they left.
    /// Whether their ingress packet may have come before the capture shows only at the end.
    early_unmatched: Histogram,
    trimmed_lost: u64,
    window_ns: i64,
    watched_to_the_end: bool,
    origin_ns: i64,
}

impl<'a> Run<'a> {
    fn start(
        ingress: &'a mut Capture,
        egress: &'a mut Capture,
        options: &Options,
    ) -> Result<Self, AnalysisError> {
        let signer = signer(options);
        let first = ingress.peek(&signer)?;
        let second = egress.peek(&signer)?;
        let signer = signer.limited_to(common_bytes(&first).min(common_bytes(&second)));
        let stamps: Vec<i64> =
            first.iter().filter(|record| record.stamped).map(|record| record.stamp_ns).collect();
        let first_egress = second.iter().find(|record| record.stamped).map(|r| r.stamp_ns);
        let origin_ns = stamps.first().copied().or(first_egress).unwrap_or(0);
        let shift_ns = if ingress.wraps() && egress.wraps() && ingress.format() == Format::Mscap {
            unwrap_shift(origin_ns, first_egress.unwrap_or(origin_ns))
        } else {
            0
        };
        let burst_gap_ns = burst::threshold_ns(&stamps);
        let bursts = burst_gap_ns.map(|gap_ns| Bursts { gap_ns, positions: Vec::new() });
        Ok(Self {
            signer,
            ingress: Tap::new(ingress, 0, origin_ns),
            egress: Tap::new(egress, shift_ns, origin_ns),
            matcher: Matcher::new(options.window),
            pairs: Vec::new(),
            position: burst_gap_ns.map(burst::Position::new),
            latencies: Latencies::new(options, origin_ns, bursts),
            ingress_outcomes: summary::Ingress::default(),
            egress_outcomes: summary::Egress::default(),
            before_first: BTreeMap::new(),
            lost_by_second: BTreeMap::new(),
            early_unmatched: Histogram::new(),
            trimmed_lost: 0,
            window_ns: options.window.window_ns,
            watched_to_the_end: options.watched_to_the_end,
            origin_ns,
        })
    }

    /// Feeds the matcher in the order of the stamps until a batch is used up that may have a successor.
    fn merge(&mut self) {
        let (entering, leaving) = (self.ingress.ahead(), self.egress.ahead());
        let (mut entered, mut left) = (0, 0);
        let is_ordered = self.ingress.is_ordered() && self.egress.is_ordered();
        let mut tag =
            |stamp_ns| self.position.as_mut().map_or(0, |position| position.next(stamp_ns));
        // Which capture is next cannot be predicted, and a wrong guess of the CPU costs as much as
        // matching a packet. So the ingress packets go first as far as the order makes no difference.
        if let (Some(last_in), Some(last_out)) = (entering.last(), leaving.last()) {
            let until_ns = last_in.stamp_ns.min(last_out.stamp_ns);
            if is_ordered {
                let ahead = entering.partition_point(|record| record.stamp_ns <= until_ns);
                entered = self.matcher.ingress_ahead(
                    entering[..ahead].iter().map(|record| (record.signature, record.stamp_ns)),
                    leaving[0].stamp_ns,
                    &mut tag,
                );
                if entered == ahead {
                    let before_ns =
                        if entered == entering.len() { last_in.stamp_ns } else { i64::MAX };
                    left = leaving.partition_point(|record| record.stamp_ns < before_ns);
                    let leaving = leaving[..left].iter();
                    self.matcher.egress_all(
                        leaving.map(|record| (record.signature, record.stamp_ns)),
                        &mut self.pairs,
                    );
                }
            }
        }
        loop {
            let from_ingress = match (entering.get(entered), leaving.get(left)) {
                (Some(next), Some(other)) => next.stamp_ns <= other.stamp_ns,
                (Some(_), None) if self.egress.is_ended() => true,
                (None, Some(_)) if self.ingress.is_ended() => false,
                _ => break,
            };
            let pair = if from_ingress {
                let record = &entering[entered];
                entered += 1;
                self.matcher.ingress(record.signature, record.stamp_ns, tag(record.stamp_ns))
            } else {
                let record = &leaving[left];
                left += 1;
                self.matcher.egress(record.signature, record.stamp_ns)
            };
            self.pairs.extend(pair);
        }
        // What was entered ahead and had left before is matched when it left instead of when it entered.
        if is_ordered && self.pairs.iter().any(|pair| pair.egress_ns < pair.ingress_ns) {
            sort_as_decided(&mut self.pairs, entering);
        }
        self.ingress.next += entered;
        self.egress.next += left;
    }

    /// Counts the pairs that the last merge found.
    fn record<S: Sink>(&mut self, sink: &mut S) -> std::io::Result<()> {
        self.latencies.record(&self.pairs, sink)?;
        self.pairs.clear();
        Ok(())
    }

    /// Counts the packets whose fate is decided.
    fn settle(&mut self) {
        let now_ns = self.ingress.merged_until_ns().min(self.egress.merged_until_ns());
        let mut decided: Vec<(Fate, i64)> = Vec::new();
        decided.extend(self.matcher.decided(now_ns));
        for (fate, stamp_ns) in decided {
            // Nothing leaves behind the end of the egress capture: the time to wait has not passed.
            if fate == Fate::Lost && self.egress.is_ended() {
                self.judge_open(stamp_ns);
            } else {
                self.count(fate, stamp_ns);
            }
        }
    }

    fn count(&mut self, fate: Fate, stamp_ns: i64) {
        if fate == Fate::Lost {
            *self.lost_by_second.entry(second(stamp_ns, self.origin_ns)).or_default() += 1;
        }
        if self.latencies.trimmed_until_ns == i64::MAX {
            *self.before_first.entry(fate).or_default() += 1;
            return;
        }
        let trimmed = stamp_ns <= self.latencies.trimmed_until_ns;
        self.add(fate, stamp_ns, trimmed, 1);
    }

    fn add(&mut self, fate: Fate, stamp_ns: i64, trimmed: bool, count: u64) {
        let (ingress, egress) = (&mut self.ingress_outcomes, &mut self.egress_outcomes);
        let outcome = match fate {
            Fate::Lost | Fate::Duplicate | Fate::BeyondWindow if trimmed => {
                if fate != Fate::Duplicate {
                    self.trimmed_lost += count;
                }
                &mut ingress.trimmed
            }
            Fate::Copy | Fate::Unmatched if trimmed => &mut egress.trimmed,
            Fate::Lost => &mut ingress.lost,
            Fate::Duplicate => &mut ingress.duplicate,
            Fate::BeyondWindow => &mut ingress.beyond_window,
            Fate::Copy => &mut egress.copy,
            Fate::Unmatched => {
                self.early_unmatched
                    .record_n(stamp_ns.saturating_sub(self.ingress.first_ns), count);
                &mut egress.unmatched
            }
        };
        *outcome += count;
    }
}

impl Run<'_> {
    /// Decides what the end of the captures leaves open.
    fn finish(mut self, options: &Options) -> Analysis {
        self.settle();
        self.latencies.flush_second();
        let (open, fates) =
            std::mem::replace(&mut self.matcher, Matcher::new(options.window)).finish();
        for (fate, stamp_ns) in fates {
            self.count(fate, stamp_ns);
        }
        for stamp_ns in open {
            self.judge_open(stamp_ns);
        }
        // With a match, all of these were decided before its trim ended; without one there is no trim.
        let matched = self.latencies.trimmed_until_ns != i64::MAX;
        for (fate, count) in std::mem::take(&mut self.before_first) {
            self.add(fate, i64::MAX, matched, count);
        }
        // An unmatched egress packet that left no later after the first ingress stamp than the slowest
        // packet took may have entered before the ingress capture began.
        let longest_ns = self.latencies.longest_ns;
        let cut = self.early_unmatched.sorted().into_iter();
        let cut: u64 = cut.filter(|(after_ns, _)| *after_ns <= longest_ns).map(|(_, n)| n).sum();
        self.egress_outcomes.unmatched -= cut;
        self.egress_outcomes.cut = cut;

        self.ingress_outcomes.packets = self.ingress.packets;
        self.ingress_outcomes.unstamped = self.ingress.unstamped;
        self.egress_outcomes.packets = self.egress.packets;
        self.egress_outcomes.unstamped = self.egress.unstamped;
        let seconds = self.seconds();
        Findings {
            signature: findings::signature(
                options.selection.as_ref(),
                options.rewrites,
                self.signer.limit(),
            ),
            taps: summary::Taps { ingress: self.ingress.facts(), egress: self.egress.facts() },
            ingress: self.ingress_outcomes,
            egress: self.egress_outcomes,
            trimmed_lost: self.trimmed_lost,
            latencies: self.latencies,
            ingress_gaps: self.ingress.gaps.into_histogram(),
            egress_gaps: self.egress.gaps.into_histogram(),
            seconds,
        }
        .analysis(options)
    }

    /// A packet still in flight at the end is lost, unless the egress capture ended before it could have
    /// left: then nobody can tell.
    fn judge_open(&mut self, stamp_ns: i64) {
        let left_ns = self.egress.last_ns.saturating_sub(stamp_ns);
        let trimmed_until_ns = self.latencies.trimmed_until_ns;
        let waited = left_ns >= self.window_ns || left_ns > self.latencies.longest_ns;
        if self.watched_to_the_end || waited {
            self.count(Fate::Lost, stamp_ns);
        } else if stamp_ns <= trimmed_until_ns && trimmed_until_ns != i64::MAX {
            self.ingress_outcomes.trimmed += 1;
        } else {
            self.ingress_outcomes.cut += 1;
        }
    }

    fn seconds(&mut self) -> Vec<Second> {
        let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
        for (&second, load) in self.ingress.loads() {
            let row = seconds.entry(second).or_default();
            (row.ingress_packets, row.ingress_bytes) = (load.packets, load.bytes);
        }
        for (&second, load) in self.egress.loads() {
            let row = seconds.entry(second).or_default();
            (row.egress_packets, row.egress_bytes) = (load.packets, load.bytes);
        }
        for (&second, &lost) in &self.lost_by_second {
            seconds.entry(second).or_default().lost = lost;
        }
        for (&second, &(samples, max_latency_ns)) in &self.latencies.maxima {
            let row = seconds.entry(second).or_default();
            (row.samples, row.max_latency_ns) = (samples, Some(max_latency_ns));
        }
        seconds.into_iter().map(|(second, row)| Second { second, ..row }).collect()
    }
}

/// What takes the signatures, as far as no capture was looked at.
fn signer(options: &Options) -> Signer {
    match &options.selection {
        Some(selection) => Signer::of_selection(selection.clone()),
        None => Signer::new(options.rewrites),
    }
}

/// Puts pairs into the order in which the later one of their packets comes, ingress first: that of
/// [`Place`], whatever was entered ahead. Both captures ascend.
#[cold]
fn sort_as_decided(pairs: &mut [Pair], entering: &[Record]) {
    pairs.sort_by_cached_key(|pair| {
        if pair.ingress_ns <= pair.egress_ns {
            return (pair.egress_ns, true, 0);
        }
        let from = entering.partition_point(|record| record.stamp_ns < pair.ingress_ns);
        let place = entering[from..].iter().position(|record| record.signature == pair.signature);
        (pair.ingress_ns, false, place.unwrap_or(0))
    });
}

/// Bytes after the L2 header that every one of these frames has, as far as the snap length cut any.
fn common_bytes(records: &[Record]) -> usize {
    records
        .iter()
        .filter(|record| record.cut)
        .map(|record| usize::from(record.signable))
        .min()
        .unwrap_or(SIGNED_BYTES)
}

/// Multiples of [`WRAP_NS`] that bring the first egress stamp next to the first ingress stamp.
fn unwrap_shift(ingress_ns: i64, egress_ns: i64) -> i64 {
    let apart = ingress_ns.saturating_sub(egress_ns);
    apart.saturating_add(WRAP_NS / 2).div_euclid(WRAP_NS).saturating_mul(WRAP_NS)
}
