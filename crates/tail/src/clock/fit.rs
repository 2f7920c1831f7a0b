//! Lines below the smallest latencies over time, with as few pieces as they need.
//!
//! A line below all points that lies as high as it can on average is the maximum-likelihood one where the excess above it is
//! exponential (Moon, Skelly and Towsley, *Estimation and removal of clock skew from network delay measurements*, INFOCOM
//! 1999). It goes along the edge of the lower convex hull above or below the mean time (Zhang, Liu and Xia, *Clock
//! synchronization algorithms for network measurements*, INFOCOM 2002). Pieces of it are found by dynamic programming, and
//! their number by the same likelihood: the mean excess `r` of `n` points has −n·ln r.

use std::ops::Range;

/// A smallest latency: when, in ns since the first one, and how long in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) at: f64,
    pub(crate) ns: f64,
}

/// A line below the points of a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    /// Its points.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Latency at a time on it.
    at: f64,
    ns: f64,
    /// Latency by time: the difference of two clocks' rates.
    pub(crate) slope: f64,
}

impl Piece {
    /// Its latency at a time.
    pub(crate) fn at(&self, time: f64) -> f64 {
        self.ns + self.slope * (time - self.at)
    }
}

/// Lines below points.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    pub(crate) pieces: Vec<Piece>,
    /// Mean excess above them.
    pub(crate) excess: f64,
    /// Mean excess above the smallest of all.
    pub(crate) spread: f64,
}

impl Fit {
    /// One line without a slope.
    pub(crate) fn level(points: &[Point]) -> Self {
        let least = points.iter().map(|point| point.ns).fold(f64::INFINITY, f64::min);
        let spread = points.iter().map(|point| point.ns - least).sum::<f64>() / points.len() as f64;
        let at = points.first().map_or(0.0, |point| point.at);
        let piece = Piece { from: 0, to: points.len(), at, ns: least, slope: 0.0 };
        Self { pieces: vec![piece], excess: spread, spread }
    }
}

/// Clocks do not run faster or slower than this against each other: crystals of up to 100 ppm each, and the 500 ppm by
/// which the kernel slews a clock at most, with as much to spare. A queue that grows as slowly would be fed within a
/// thousandth of what it drains.
pub(crate) const STEEPEST: f64 = 1e-3;

/// Pieces that are tried: a clock is set again every few seconds at most.
const MOST: usize = 24;

/// Parameters of a piece: its line and where it begins.
const PARAMETERS: f64 = 3.0;

/// Excess that is not told from none, in ns: stamps have no finer unit.
const UNIT: f64 = 1.0;

/// The one line below all of these points.
pub(crate) fn line(points: &[Point]) -> Option<Piece> {
    Segments::rows(points, 0..points.len().min(1)).lines.last().map(|(_, line)| *line)
}

/// The lines below these points, which ascend in time.
pub(crate) fn fit(points: &[Point]) -> Fit {
    let count = points.len();
    let shortest = (count / 32).max(2);
    let segments = Segments::of(points);
    let most = (count / shortest).clamp(1, MOST);
    // `best[pieces - 1][end]`: the smallest excess of the points before `end`, and where the last piece begins.
    let mut best: Vec<Vec<(f64, usize)>> = Vec::with_capacity(most);
    best.push((0..=count).map(|end| (segments.excess(0, end), 0)).collect());
    for pieces in 1..most {
        let row = (0..=count).map(|end| {
            let starts = (pieces * shortest)..=end.saturating_sub(shortest);
            let split =
                starts.map(|from| (best[pieces - 1][from].0 + segments.excess(from, end), from));
            split.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((f64::INFINITY, 0))
        });
        let row = row.collect();
        best.push(row);
    }
    let n = count as f64;
    let cost = |pieces: usize| {
        let excess = best[pieces - 1][count].0 / n;
        n * (excess + UNIT).ln() + PARAMETERS * pieces as f64 * n.ln()
    };
    let chosen = (1..=most).min_by(|one, other| cost(*one).total_cmp(&cost(*other))).unwrap_or(1);
    let mut pieces = Vec::with_capacity(chosen);
    let mut to = count;
    for row in best[..chosen].iter().rev() {
        let from = row[to].1;
        pieces.push(segments.line(from, to));
        to = from;
    }
    pieces.reverse();
    Fit { pieces, excess: best[chosen - 1][count].0 / n, ..Fit::level(points) }
}

/// Lines below all stretches of points.
struct Segments {
    count: usize,
    lines: Vec<(f64, Piece)>,
}

impl Segments {
    fn of(points: &[Point]) -> Self {
        Self::rows(points, 0..points.len())
    }

    /// Those that begin with some of the points.
    fn rows(points: &[Point], begins: Range<usize>) -> Self {
        let count = points.len();
        let mut lines = Vec::with_capacity(count * begins.len());
        for from in begins {
            let mut hull: Vec<Point> = Vec::new();
            let (mut times, mut sum) = (0.0, 0.0);
            for (to, point) in (1..).zip(points).skip(from) {
                while let [.., one, last] = hull[..]
                    && (last.ns - one.ns) * (point.at - last.at)
                        >= (point.ns - last.ns) * (last.at - one.at)
                {
                    hull.pop();
                }
                hull.push(*point);
                (times, sum) = (times + point.at, sum + point.ns);
                let n = (to - from) as f64;
                let (at, ns, slope) = below(&hull, times / n);
                let piece = Piece { from, to, at, ns, slope };
                lines.push((sum - n * piece.at(times / n), piece));
            }
        }
        Self { count, lines }
    }

    fn index(&self, from: usize, to: usize) -> usize {
        // Rows get shorter by one each.
        from * self.count - from * from.saturating_sub(1) / 2 + (to - from - 1)
    }

    fn excess(&self, from: usize, to: usize) -> f64 {
        if to <= from { 0.0 } else { self.lines[self.index(from, to)].0 }
    }

    fn line(&self, from: usize, to: usize) -> Piece {
        self.lines[self.index(from, to)].1
    }
}

/// The highest line below a convex hull at a time between its ends, as a point and a slope.
fn below(hull: &[Point], time: f64) -> (f64, f64, f64) {
    let edge = hull.windows(2).find(|edge| edge[1].at >= time);
    let slope = edge.map_or(0.0, |edge| (edge[1].ns - edge[0].ns) / (edge[1].at - edge[0].at));
    let slope = slope.clamp(-STEEPEST, STEEPEST);
    // The line of this slope touches the hull at the point that is lowest along it.
    let height = |point: &Point| point.ns - slope * (point.at - time);
    let touched = hull.iter().min_by(|one, other| height(one).total_cmp(&height(other)));
    touched.map_or((time, 0.0, 0.0), |point| (point.at, point.ns, slope))
}
