//! Faults of clocks: what the lower envelope of latency does that a device does not.

use super::envelope::{Bin, Envelope};
use super::fit::{Fit, Piece, Point, STEEPEST, fit, line};
use std::ops::Range;
use tailtrim_stats::Histogram;

/// Points that the envelope is reduced to: enough to find a step within a hundredth of the run, few enough that each is
/// the smallest latency of many packets.
const POINTS: usize = 128;

/// With fewer, lines fit by chance.
const FEWEST: usize = 16;

/// Lines explain what the smallest latencies do if the excess above them is so many times smaller, times the root of the
/// number of pieces: pieces follow a random walk, such as the queue of a device whose load is all that it can take, to
/// about twice their root. For one line below `n` independent exponential excesses, the chance is `5^−n`.
const EXPLAINED: f64 = 5.0;

/// Part of the median latency that matters.
const MATTERS: f64 = 0.05;

/// A device that works differently from one moment on, with other interrupts, frequencies or caches, takes longer or
/// shorter by less than this: interrupts are held back for 250 µs at most where nobody says otherwise (the 4,000
/// interrupts/s of adaptive moderation), and cores wake within 200 µs.
const DEVICE_NS: f64 = 500_000.0;

/// Clocks that nobody steers run apart by more than this part of a second each second; a device that warms up changes more
/// slowly.
const SLOWEST: f64 = 5e-7;

/// Points that a line needs to tell a slope, twice as many as it has parameters with its begin. A line through fewer may be
/// a change from one level to the next.
const SLOPING: usize = 6;

/// Part of a run that each side of a step takes at least: what begins or ends closer to the end of a run may be an
/// episode of the device.
const SIDE: usize = 16;

/// Times the median excess above the line below all points that the excess of a busy device is.
const FAR: f64 = 10.0;

/// No episode at an end of a run takes packets longer than this.
const LONGEST_NS: f64 = 1e9;

/// Part of a step by which two packets, one after the other, differ: the rest is for what else delays them.
const SHARP: f64 = 0.8;

/// A shift of the smallest latency from one moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// When the first packet after it entered.
    pub(crate) at_ns: i64,
    /// Samples before it.
    pub(crate) behind: u64,
    /// Time by which latencies are longer after it.
    pub(crate) by_ns: i64,
    /// Whether no device does this.
    pub(crate) certain: bool,
}

/// A slope of the smallest latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drift {
    /// Least and greatest slopes, in parts of one: equal if it is straight.
    pub(crate) slopes: [f64; 2],
    /// From the lowest to the highest point.
    pub(crate) range_ns: i64,
}

/// Faults of the clocks that an envelope shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Faults {
    pub(crate) steps: Vec<Step>,
    pub(crate) drift: Option<Drift>,
}

/// Finds faults that matter for latencies of this median. `variation` is the difference of the latencies of successive
/// packets.
pub(crate) fn faults(envelope: &Envelope, median_ns: i64, variation: &Histogram) -> Faults {
    let bins: Vec<Bin> = envelope.bins().copied().collect();
    let matters = MATTERS * median_ns.unsigned_abs() as f64;
    let least = bins.iter().map(|bin| bin.least_ns);
    // Mostly nothing that matters happens.
    if let Some((lowest, highest)) = least.clone().min().zip(least.max())
        && (highest.saturating_sub(lowest) as f64) < matters
    {
        return Faults::default();
    }
    let found = examine(&bins, matters, |shape, explained| {
        if explained { shape.faults(variation) } else { Faults::default() }
    });
    found.unwrap_or_default()
}

/// A line below the latencies of packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    /// The first of its packets.
    pub(crate) from: usize,
    /// A time, and the latency on it then.
    at_ns: i64,
    ns: f64,
    pub(crate) slope: f64,
}

impl Line {
    /// Latency on it at a time.
    pub(crate) fn at(&self, at_ns: i64) -> i64 {
        (self.ns + self.slope * at_ns.saturating_sub(self.at_ns) as f64) as i64
    }
}

/// Lines below the latencies of packets, a bin each: one that is level unless several explain much more. They may be wrong
/// by the most that the smallest latencies lie above them. None without packets.
pub(crate) fn lines(bins: &[Bin]) -> (Vec<Line>, i64) {
    examine(bins, 0.0, |shape, _| shape.lines(bins)).unwrap_or_default()
}

/// Draws the lines below bins, and leaves out those of a busy device. `told` is given whether they explain what the smallest
/// latencies do; otherwise there is one, which is level.
fn examine<R>(bins: &[Bin], matters: f64, told: impl FnOnce(&Shape<'_>, bool) -> R) -> Option<R> {
    let origin_ns = bins.first()?.at_ns;
    let mut groups: Vec<&[Bin]> = bins.chunks(bins.len().div_ceil(POINTS)).collect();
    loop {
        let points: Vec<Point> = groups.iter().filter_map(|bins| point(bins, origin_ns)).collect();
        if let Some(busy) = busy(&points, &groups) {
            groups.drain(busy);
            continue;
        }
        let found = if points.len() < FEWEST { Fit::level(&points) } else { fit(&points) };
        let excess = found.excess.max(1.0) * (found.pieces.len() as f64).sqrt();
        let threshold = (EXPLAINED * excess).max(matters);
        let explained = points.len() >= FEWEST && found.spread >= EXPLAINED * excess;
        let fit = if explained { found } else { Fit::level(&points) };
        let shape = Shape { fit: &fit, points: &points, groups: &groups, threshold, origin_ns };
        if explained && let Some(episode) = shape.episode() {
            groups.drain(episode);
            continue;
        }
        return Some(told(&shape, explained));
    }
}

/// The smallest latency of some bins.
fn point(bins: &[Bin], origin_ns: i64) -> Option<Point> {
    let least = bins.iter().min_by_key(|bin| (bin.least_ns, bin.at_ns))?;
    let at = least.at_ns.saturating_sub(origin_ns) as f64;
    Some(Point { at, ns: least.least_ns as f64 })
}

/// Groups far above the line below all, between others that are not: the device was busy, if what came behind them did not
/// overtake them.
fn busy(points: &[Point], groups: &[&[Bin]]) -> Option<Range<usize>> {
    let line = line(points)?;
    let excess: Vec<f64> = points.iter().map(|point| point.ns - line.at(point.at)).collect();
    let mut sorted = excess.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let far = FAR * sorted[sorted.len() / 2].max(1.0);
    let mut from = 0;
    for run in excess.chunk_by(|one, other| (*one > far) == (*other > far)) {
        let to = from + run.len();
        if run[0] > far && from > 0 && to < groups.len() {
            // They may end within the next group.
            let behind = || groups[to - 1].last().into_iter().chain(groups[to]);
            let falls = behind().zip(behind().skip(1)).map(|(before, after)| {
                (before.least_ns - after.least_ns, after.at_ns - before.at_ns)
            });
            let (fall, time) = falls.max()?;
            if time >= fall / 2 {
                return Some(from..to);
            }
        }
        from = to;
    }
    None
}

/// Whether a line has enough points to tell a slope.
fn slopes(piece: &Piece) -> bool {
    piece.to - piece.from >= SLOPING
}

/// From the lowest to the highest of these latencies.
fn range(ns: &[f64]) -> f64 {
    let lowest = ns.iter().copied().fold(f64::INFINITY, f64::min);
    ns.iter().copied().fold(f64::NEG_INFINITY, f64::max) - lowest
}

/// Lines, and what they go along.
struct Shape<'a> {
    fit: &'a Fit,
    points: &'a [Point],
    groups: &'a [&'a [Bin]],
    /// Differences below this are none.
    threshold: f64,
    origin_ns: i64,
}

impl Shape<'_> {
    /// The latencies of two lines where one ends and the next begins.
    fn ends(&self, piece: usize) -> [f64; 2] {
        let (before, after) = (&self.fit.pieces[piece], &self.fit.pieces[piece + 1]);
        let time = f64::midpoint(self.points[before.to - 1].at, self.points[after.from].at);
        [before.at(time), after.at(time)]
    }

    /// Time by which latencies are longer behind each piece but the last; 0 where that is less than matters.
    fn jumps(&self) -> Vec<f64> {
        let jump = |piece| {
            let [before, after] = self.ends(piece);
            if (after - before).abs() < self.threshold { 0.0 } else { after - before }
        };
        (0..self.fit.pieces.len() - 1).map(jump).collect()
    }

    /// Groups in which the device was busier for a while: latencies are longer and then what they were. Also those at an
    /// end of the run, which are too few to be the other side of a step.
    fn episode(&self) -> Option<Range<usize>> {
        let (pieces, jumps) = (&self.fit.pieces, self.jumps());
        let count = self.points.len();
        let short = |groups: usize| groups * SIDE < count;
        for (piece, jump) in jumps.iter().enumerate().filter(|(_, jump)| **jump != 0.0) {
            let split = pieces[piece].to;
            if jump.abs() < LONGEST_NS && *jump < 0.0 && short(split) {
                return Some(0..split);
            }
            if jump.abs() < LONGEST_NS && *jump > 0.0 && short(count - split) {
                return Some(split..count);
            }
            if *jump < 0.0 {
                continue;
            }
            let level = self.ends(piece)[0];
            for (down, fall) in jumps.iter().enumerate().skip(piece + 1) {
                let after = self.ends(down)[1];
                // Latencies that fall faster than time goes by would have packets overtake one another: a clock was set back.
                if *fall < 0.0 && after < level + jump / 2.0 {
                    if after > level - self.threshold.max(jump / 2.0)
                        && self.overtaken(down).is_none()
                    {
                        return Some(split..pieces[down].to);
                    }
                    break;
                }
            }
        }
        None
    }

    /// The bins around the end of a piece between which packets were overtaken by those that entered later.
    fn overtaken(&self, piece: usize) -> Option<[&Bin; 2]> {
        let [before, after] = self.edge(piece)?;
        let fall = before.least_ns - after.least_ns;
        (after.at_ns - before.at_ns < fall / 2).then_some([before, after])
    }

    /// The bins between which the smallest latency changes, if it does from one bin to the next.
    fn edge(&self, piece: usize) -> Option<[&Bin; 2]> {
        let split = self.fit.pieces[piece].to;
        let around = split.saturating_sub(2)..(split + 2).min(self.groups.len());
        let bins: Vec<&Bin> = self.groups[around].iter().copied().flatten().collect();
        let [before, after] = self.ends(piece);
        let (low, high) = (before.min(after), before.max(after));
        // All bins on the high side lie near the high line, and the one beside them near the low one.
        let is_high = |bin: &&Bin| bin.least_ns as f64 >= low + SHARP * (high - low);
        let low_at = |bin: &Bin| (bin.least_ns as f64) <= high - SHARP * (high - low);
        if after > before {
            let last = bins.iter().rposition(|bin| !is_high(bin))?;
            let edge = [bins[last], *bins.get(last + 1)?];
            low_at(edge[0]).then_some(edge)
        } else {
            let first = bins.iter().position(|bin| !is_high(bin))?;
            let edge = [bins[first.checked_sub(1)?], bins[first]];
            low_at(edge[1]).then_some(edge)
        }
    }

    fn faults(&self, variation: &Histogram) -> Faults {
        let jumps = self.jumps();
        let found = jumps.iter().enumerate().filter(|(_, jump)| **jump != 0.0);
        let found: Vec<Option<Step>> =
            found.map(|(piece, jump)| self.step(piece, *jump, variation)).collect();
        let all = found.iter().all(Option::is_some);
        let steps = found.into_iter().flatten().collect();
        let drift = if all { self.drift(&jumps) } else { None };
        Faults { steps, drift }
    }

    /// The lines without the steps: a clock that runs differently, or one that is steered.
    fn drift(&self, jumps: &[f64]) -> Option<Drift> {
        let slope = |piece: &Piece| if slopes(piece) { piece.slope } else { 0.0 };
        let told = || self.fit.pieces.iter().map(slope);
        let (least, greatest) =
            (told().fold(f64::INFINITY, f64::min), told().fold(f64::NEG_INFINITY, f64::max));
        let steepest = least.abs().max(greatest.abs());
        if !(SLOWEST..STEEPEST).contains(&steepest) {
            return None;
        }
        // The clock that is steered does not jump, so its range is the same without the small jumps between lines; the
        // range of a device with several speeds consists of them.
        let small: Vec<f64> =
            (0..jumps.len()).map(|piece| self.ends(piece)).map(|[from, to]| to - from).collect();
        if range(&self.sloping(&small)) < self.threshold {
            return None;
        }
        let ends = self.sloping(jumps);
        let range = range(&ends);
        if range < self.threshold {
            return None;
        }
        let length = self.points.last().map_or(1.0, |last| last.at).max(1.0);
        let rise = ends.last()? - ends.first()?;
        let straight = rise.abs() >= 0.9 * range;
        if straight && rise.abs() < SLOWEST * length {
            return None;
        }
        let slopes = if straight { [rise / length; 2] } else { [least, greatest] };
        Some(Drift { slopes, range_ns: range as i64 })
    }

    /// The latencies where lines begin and end, less these jumps between them, and level where no slope is told.
    fn sloping(&self, jumps: &[f64]) -> Vec<f64> {
        let mut moved = 0.0;
        let mut found = Vec::new();
        for (index, piece) in self.fit.pieces.iter().enumerate() {
            moved += index.checked_sub(1).map_or(0.0, |before| jumps[before]);
            let [from, to] =
                [piece.from, piece.to - 1].map(|point| piece.at(self.points[point].at));
            found.push(from - moved);
            if !slopes(piece) {
                moved += to - from;
            }
            found.push(to - moved);
        }
        found
    }

    fn lines(&self, bins: &[Bin]) -> (Vec<Line>, i64) {
        let at_bin = |at_ns: i64| bins.partition_point(|bin| bin.at_ns < at_ns);
        let lines = self.fit.pieces.iter().enumerate().map(|(index, piece)| {
            let edge = index.checked_sub(1).and_then(|before| self.edge(before));
            let begin = edge.map(|[_, after]| after.at_ns);
            let begin = begin.or_else(|| self.groups[piece.from].first().map(|bin| bin.at_ns));
            let from = if index == 0 { 0 } else { begin.map_or(0, at_bin) };
            let at_ns = self.origin_ns.saturating_add(self.points[piece.from].at as i64);
            Line { from, at_ns, ns: piece.at(self.points[piece.from].at), slope: piece.slope }
        });
        let above = self.fit.pieces.iter().flat_map(|piece| {
            self.points[piece.from..piece.to].iter().map(|point| point.ns - piece.at(point.at))
        });
        (lines.collect(), above.fold(0.0, f64::max).ceil() as i64)
    }

    /// A step, if one packet differs from the next by as much.
    fn step(&self, piece: usize, jump: f64, variation: &Histogram) -> Option<Step> {
        let [before, after] = self.edge(piece)?;
        let bins = self.groups.iter().copied().flatten();
        let behind = bins.take_while(|bin| bin.at_ns <= before.at_ns).map(|bin| bin.count).sum();
        let alike = |ns: i64| ns as f64 * jump.signum() >= SHARP * jump.abs();
        let differ = |found: &dyn Fn(i64) -> bool| -> u64 {
            let varied = variation.sorted().into_iter();
            varied.filter(|(ns, _)| found(*ns)).map(|(_, count)| count).sum()
        };
        if differ(&alike) == 0 {
            return None;
        }
        // A device that does this now and then may do it once more.
        let habit = differ(&|ns| ns.abs() as f64 >= SHARP * jump.abs());
        let once = habit <= self.jumps().iter().filter(|jump| **jump != 0.0).count() as u64;
        let impossible = self.ends(piece).iter().any(|ns| *ns <= 0.0);
        let certain = impossible || (once && jump.abs() >= DEVICE_NS);
        Some(Step { at_ns: after.at_ns, behind, by_ns: jump as i64, certain })
    }
}
