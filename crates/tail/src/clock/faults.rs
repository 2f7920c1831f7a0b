//! Faults of clocks: what the lower envelope of latency does that a device does not.

use super::envelope::{Bin, Envelope};
use super::fit::{Fit, Piece, Point, fit};

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

/// Part of a run that each side of a step takes at least: what begins or ends closer to the end of a run may be an
/// episode of the device.
const SIDE: usize = 16;

/// A shift of the smallest latency from one moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// When the first packet after it entered.
    pub(crate) at_ns: i64,
    /// Packets that entered before, of those that the envelope has.
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

/// Finds faults that matter for latencies of this median.
pub(crate) fn faults(envelope: &Envelope, median_ns: i64) -> Faults {
    let bins: Vec<Bin> = envelope.bins().copied().collect();
    let Some(origin_ns) = bins.first().map(|bin| bin.at_ns) else { return Faults::default() };
    let matters = MATTERS * median_ns.unsigned_abs() as f64;
    let mut groups: Vec<&[Bin]> = bins.chunks(bins.len().div_ceil(POINTS)).collect();
    loop {
        let points: Vec<Point> = groups.iter().filter_map(|bins| point(bins, origin_ns)).collect();
        if points.len() < FEWEST {
            return Faults::default();
        }
        let found = fit(&points);
        let excess = found.excess.max(1.0) * (found.pieces.len() as f64).sqrt();
        if found.spread < EXPLAINED * excess {
            return Faults::default();
        }
        let threshold = (EXPLAINED * excess).max(matters);
        let looked = Looked { fit: &found, points: &points, groups: &groups, threshold };
        if let Some(episode) = looked.episode() {
            groups.drain(episode);
            continue;
        }
        return looked.faults();
    }
}

/// The smallest latency of some bins.
fn point(bins: &[Bin], origin_ns: i64) -> Option<Point> {
    let least = bins.iter().min_by_key(|bin| (bin.least_ns, bin.at_ns))?;
    let at = least.at_ns.saturating_sub(origin_ns) as f64;
    Some(Point { at, ns: least.least_ns as f64 })
}

struct Looked<'a> {
    fit: &'a Fit,
    points: &'a [Point],
    groups: &'a [&'a [Bin]],
    /// Differences below this are none.
    threshold: f64,
}

impl Looked<'_> {
    /// Time by which latencies are longer after the end of a piece than before it.
    fn jump(&self, pieces: &[Piece]) -> f64 {
        let [before, after] = pieces else { return 0.0 };
        let time = f64::midpoint(self.points[before.to - 1].at, self.points[after.from].at);
        after.at(time) - before.at(time)
    }

    fn jumps(&self) -> Vec<f64> {
        let jumps = self.fit.pieces.windows(2).map(|pieces| self.jump(pieces));
        jumps.map(|jump| if jump.abs() < self.threshold { 0.0 } else { jump }).collect()
    }

    /// Groups in which the device was busier for a while: latencies are longer and then what they were.
    fn episode(&self) -> Option<std::ops::Range<usize>> {
        let (pieces, jumps) = (&self.fit.pieces, self.jumps());
        for (up, rise) in jumps.iter().enumerate().filter(|(_, jump)| **jump > 0.0) {
            let mut level = *rise;
            for (down, jump) in jumps.iter().enumerate().skip(up + 1) {
                level += jump;
                if level < rise / 2.0 {
                    // What falls faster than time goes by was overtaken by what entered later: a clock was set back.
                    if level > -self.threshold && !self.overtakes(down, -jump) {
                        return Some(pieces[up + 1].from..pieces[down].to);
                    }
                    break;
                }
            }
        }
        None
    }

    /// Whether packets behind the end of a piece would have overtaken those before it, by most of `ns`.
    fn overtakes(&self, piece: usize, ns: f64) -> bool {
        self.edge(piece, -ns).is_some_and(|(before, after)| {
            ((after.at_ns - before.at_ns) as f64) < ns / 2.0
        })
    }

    /// The bins around the end of a piece between which latencies change by `by_ns`.
    fn edge(&self, piece: usize, by_ns: f64) -> Option<(&Bin, &Bin)> {
        let split = self.fit.pieces[piece].to;
        let around = split.saturating_sub(2)..(split + 2).min(self.groups.len());
        let bins: Vec<&Bin> = self.groups[around].iter().copied().flatten().collect();
        let change = |pair: &[&Bin]| (pair[1].least_ns - pair[0].least_ns) as f64 * by_ns.signum();
        let pairs = bins.windows(2);
        let edge = pairs.max_by(|one, other| change(one).total_cmp(&change(other)))?;
        Some((edge[0], edge[1]))
    }

    fn faults(&self) -> Faults {
        let Self { fit, points, .. } = self;
        let (pieces, jumps) = (&fit.pieces, self.jumps());
        let mut steps = Vec::new();
        for (piece, &jump) in jumps.iter().enumerate().filter(|(_, jump)| **jump != 0.0) {
            let split = pieces[piece].to;
            let whole = split * SIDE >= points.len() && (points.len() - split) * SIDE >= points.len();
            if whole || (jump < 0.0 && self.overtakes(piece, -jump)) {
                steps.extend(self.step(piece, jump));
            }
        }
        // The lines without the steps: a clock that runs differently, or one that is steered.
        let mut moved = 0.0;
        let mut ends = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            moved += index.checked_sub(1).map_or(0.0, |before| jumps[before]);
            let times = [points[piece.from].at, points[piece.to - 1].at];
            ends.extend(times.map(|time| piece.at(time) - moved));
        }
        let lowest = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let slopes = || pieces.iter().map(|piece| piece.slope);
        let (least, greatest) =
            (slopes().fold(f64::INFINITY, f64::min), slopes().fold(f64::NEG_INFINITY, f64::max));
        let fast = least.abs().max(greatest.abs()) >= SLOWEST;
        let drift = (fast && highest - lowest >= self.threshold).then(|| {
            let length = points.last().map_or(1.0, |last| last.at).max(1.0);
            let mean = (ends[ends.len() - 1] - ends[0]) / length;
            // One line is as good where it rises or falls by all of the range.
            let straight = (mean * length).abs() >= 0.9 * (highest - lowest);
            let slopes = if straight { [mean; 2] } else { [least, greatest] };
            Drift { slopes, range_ns: (highest - lowest) as i64 }
        });
        Faults { steps, drift }
    }

    /// The longest that a packet takes beyond the line below it, away from a step: what the device is capable of.
    fn longest(&self, step: usize) -> f64 {
        let split = self.fit.pieces[step].to;
        let beyond = |piece: &Piece| {
            let groups = (piece.from..piece.to).filter(|group| group.abs_diff(split) > 1);
            let beyond = groups.flat_map(|group| self.groups[group]).map(|bin| {
                bin.most_ns as f64 - bin.least_ns as f64
            });
            beyond.fold(0.0, f64::max)
        };
        self.fit.pieces.iter().map(beyond).fold(0.0, f64::max)
    }

    fn step(&self, piece: usize, jump: f64) -> Option<Step> {
        let (before, after) = self.edge(piece, jump)?;
        let bins = self.groups.iter().copied().flatten();
        let behind = bins.take_while(|bin| bin.at_ns <= before.at_ns).map(|bin| bin.count).sum();
        let lines = &self.fit.pieces;
        let split = self.points[lines[piece].to - 1].at;
        let impossible = lines[piece].at(split).min(lines[piece + 1].at(split)) <= 0.0;
        let certain = impossible || jump.abs() >= DEVICE_NS.max(self.longest(piece));
        Some(Step { at_ns: after.at_ns, behind, by_ns: jump as i64, certain })
    }
}
