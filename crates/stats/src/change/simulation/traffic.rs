//! Paths: latencies and losses of minutes.

use super::super::edges::{Edges, Tally};
use super::DAY;
use crate::Probability;
use crate::random::Random;

/// The median latency in ns.
const MEDIAN_NS: f64 = 1_000_000.0;

/// Kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Independent,
    /// The same, with a tail beyond which a share falls with its square.
    HeavyTail,
    /// 30 % slower in the afternoon and faster at night; half of that at weekends.
    Daily,
    /// The level wanders by 5 % (standard deviation), with a correlation time of two hours.
    Wandering,
    /// One stall a minute: two seconds of probes are three times as slow.
    Stalls,
    /// Ten times a day, for ten minutes on average, all is 1.5 times as slow.
    Episodes,
    /// Five times a day, for three minutes on average, a fifth is lost.
    LossBursts,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent probes",
            Self::HeavyTail => "heavy tail",
            Self::Daily => "daily rhythm, other at weekends",
            Self::Wandering => "level wanders",
            Self::Stalls => "stalls of two seconds",
            Self::Episodes => "episodes of minutes",
            Self::LossBursts => "bursts of loss",
        }
    }

    /// Exponent of the survival function 1 / (1 + x^k).
    fn exponent(self) -> f64 {
        if self == Self::HeavyTail { 2.0 } else { 12.0 }
    }
}

/// A change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) name: &'static str,
    /// Factor of all latencies.
    pub(super) scale: f64,
    /// Share of probes that are three times as slow, too.
    pub(super) slow: f64,
    /// Share of further lost probes.
    pub(super) lost: f64,
}

impl Change {
    pub(super) const NONE: Self = Self { name: "none", scale: 1.0, slow: 0.0, lost: 0.0 };
}

pub(super) const CHANGES: [Change; 11] = [
    Change { name: "all latencies + 8 %", scale: 1.08, ..Change::NONE },
    Change { name: "all latencies + 15 %", scale: 1.15, ..Change::NONE },
    Change { name: "all latencies + 50 %", scale: 1.5, ..Change::NONE },
    Change { name: "all latencies − 15 %", scale: 0.85, ..Change::NONE },
    Change { name: "0.2 % of probes × 3", slow: 0.002, ..Change::NONE },
    Change { name: "0.5 % of probes × 3", slow: 0.005, ..Change::NONE },
    Change { name: "2 % of probes × 3", slow: 0.02, ..Change::NONE },
    Change { name: "loss + 0.2 %", lost: 0.002, ..Change::NONE },
    Change { name: "loss + 0.5 %", lost: 0.005, ..Change::NONE },
    Change { name: "loss + 2 %", lost: 0.02, ..Change::NONE },
    Change { name: "loss + 50 %", lost: 0.5, ..Change::NONE },
];

impl Random {
    fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    fn poisson(&mut self, mean: f64) -> u64 {
        let (mut count, mut at) = (0, self.exponential());
        while at < mean {
            count += 1;
            at += self.exponential();
        }
        count
    }

    fn binomial(&mut self, n: u64, p: f64) -> u64 {
        if p > 0.5 {
            return n - self.binomial(n, 1.0 - p);
        }
        let mean = n as f64 * p;
        if mean > 30.0 {
            // Its skewness is that of a share of one half to a twentieth.
            let near = mean + (mean * (1.0 - p)).sqrt() * self.normal();
            return (near.round().max(0.0) as u64).min(n);
        }
        if p <= 0.0 {
            return 0;
        }
        // Numbers of misses between two hits are geometric.
        let (mut count, mut at, per) = (0, 0.0, (-p).ln_1p());
        loop {
            at += 1.0 + (self.uniform().ln() / per).floor();
            if at > n as f64 {
                return count;
            }
            count += 1;
        }
    }
}

/// A path, minute by minute.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) kind: Kind,
    /// Probes a minute.
    probes: u64,
    random: Random,
    level: f64,
    /// Minutes that an episode still lasts.
    left: f64,
}

/// A minute: answered probes of several speeds, and the others.
struct Minute {
    groups: [(u64, f64); 3],
    lost: u64,
}

impl Path {
    pub(super) fn new(kind: Kind, probes: u64, seed: u64) -> Self {
        let random = Random::seeded(seed);
        Self { kind, probes, random, level: 0.0, left: 0.0 }
    }

    fn minute(&mut self, minute: i64, change: &Change) -> Minute {
        let (mut scale, mut stalled, mut loss) = (change.scale, 0, 0.000_5);
        let random = &mut self.random;
        let (per_day, lasting) = match self.kind {
            Kind::Episodes => (10.0, 10.0),
            Kind::LossBursts => (5.0, 3.0),
            _ => (0.0, 0.0),
        };
        let active = self.left > 0.0;
        self.left -= 1.0;
        if !active && random.uniform() < per_day / DAY as f64 {
            self.left = lasting * random.exponential();
        }
        match self.kind {
            Kind::Daily => {
                let weekend = (minute.div_euclid(DAY) + 3).rem_euclid(7) >= 5;
                let amplitude = if weekend { 0.15 } else { 0.3 };
                let phase = std::f64::consts::TAU * minute as f64 / DAY as f64;
                scale *= 1.0 + amplitude * phase.sin();
            }
            Kind::Wandering => {
                let kept = (-1.0_f64 / 120.0).exp();
                self.level =
                    kept * self.level + 0.05 * (1.0 - kept * kept).sqrt() * random.normal();
                scale *= self.level.exp();
            }
            Kind::Stalls => stalled = self.probes / 30 * random.poisson(1.0),
            Kind::Episodes if active => scale *= 1.5,
            Kind::LossBursts if active => loss = 0.2,
            _ => {}
        }
        let lost = random.binomial(self.probes, loss + change.lost);
        let answered = self.probes - lost;
        let stalled = stalled.min(answered);
        let slow = random.binomial(answered - stalled, change.slow);
        let groups =
            [(answered - stalled - slow, scale), (stalled, 3.0 * scale), (slow, 3.0 * scale)];
        Minute { groups, lost }
    }

    /// Takes the latencies of the next minute one by one. Returns the number of lost probes.
    pub(super) fn latencies(&mut self, minute: i64, mut take: impl FnMut(i64)) -> u64 {
        let Minute { groups, lost } = self.minute(minute, &Change::NONE);
        let power = 1.0 / self.kind.exponent();
        for (count, scale) in groups {
            for _ in 0..count {
                let uniform = self.random.uniform();
                take((MEDIAN_NS * scale * (uniform / (1.0 - uniform)).powf(power)) as i64);
            }
        }
        lost
    }

    /// Counts the next minute by edges.
    pub(super) fn tally(&mut self, minute: i64, edges: &Edges, change: &Change) -> Tally {
        let Minute { groups, lost } = self.minute(minute, change);
        let mut tally = Tally { answered: self.probes - lost, lost, ..Tally::default() };
        for (count, scale) in groups.into_iter().filter(|(count, _)| *count > 0) {
            // From edge to edge, so many of those above the one are above the next one.
            let (mut above, mut before) = (count, 1.0);
            for (counts, edges) in tally.above.iter_mut().zip(edges.at(minute)) {
                for (sum, edge) in counts.iter_mut().zip(edges) {
                    let share = survival(self.kind, scale, *edge);
                    above = self.random.binomial(above, (share / before).min(1.0));
                    before = share.min(before);
                    *sum += above;
                }
            }
        }
        tally
    }
}

/// Share of independent probes above an edge.
fn survival(kind: Kind, scale: f64, edge_ns: i64) -> f64 {
    1.0 / (1.0 + (edge_ns as f64 / MEDIAN_NS / scale).powf(kind.exponent()))
}

/// The share of independent probes above the edge itself of a percentile, before and after a change.
pub(super) fn shares(kind: Kind, change: &Change, edges: &Edges, p: Probability) -> [f64; 2] {
    let edge = edges.percentile_ns(0, p).unwrap();
    let of = |scale: f64| survival(kind, scale, edge);
    [of(1.0), (1.0 - change.slow) * of(change.scale) + change.slow * of(3.0 * change.scale)]
}
