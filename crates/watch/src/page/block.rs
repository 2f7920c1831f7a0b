//! Minutes beside each other as one block: counts, percentiles with intervals, outages.

use super::reading::Line;
use serde::Serialize;
use serde_json::{Map, Value};
use tailtrim_stats::{Dependence, Histogram, Probability, Ranked, ranks, supports};

/// Percentiles over time.
pub(super) const QUANTILES: [Probability; 3] =
    [Probability::P50, Probability::P99, Probability::P99_9];

const CONFIDENCE: Probability = Probability::P95;

/// A percentile with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Quantile {
    ns: i64,
    low_ns: Option<i64>,
    /// `None`: too few independent episodes bound it.
    high_ns: Option<i64>,
}

/// Probes of a time.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Block {
    pub(super) begin_s: i64,
    due: u64,
    answered: u64,
    unanswered: u64,
    /// Answered probes with a round trip.
    samples: u64,
    /// As [`QUANTILES`]; `None`: no sample, or the clock was stepped back over the end of the block.
    quantiles: Option<[Quantile; 3]>,
    /// The slowest probe, as its minute has it.
    worst: Option<Map<String, Value>>,
    /// Minutes in which probes left, or taps recorded, as bits.
    #[serde(skip)]
    pub(super) measured: u64,
    /// Minutes in which probes left, and none was answered.
    #[serde(skip)]
    pub(super) silent: u64,
}

impl Block {
    fn count(&mut self, line: &Line) {
        let unanswered = line.late + line.lost + line.altered + line.undelivered;
        let minute = (line.begin_ns.div_euclid(1_000_000_000) - self.begin_s).div_euclid(60);
        let bit = 1_u64 << minute.clamp(0, 63);
        self.due += line.due;
        self.answered += line.answered;
        self.unanswered += unanswered;
        let is_measured = match line.health.tapped_ns {
            Some(tapped_ns) => tapped_ns > 0,
            None => line.answered + unanswered > 0,
        };
        if is_measured {
            self.measured |= bit;
        }
        if line.answered == 0 && unanswered > 0 {
            self.silent |= bit;
        }
        // A restart cuts a minute in two, of which one may have an answer.
        if line.answered > 0 {
            self.silent &= !bit;
        }
        let ns = |worst: &Map<String, Value>| worst.get("latency_ns").and_then(Value::as_i64);
        if line.worst.as_ref().and_then(ns) > self.worst.as_ref().and_then(ns) {
            self.worst.clone_from(&line.worst);
        }
    }
}

/// Makes blocks of minutes.
#[derive(Default)]
pub(super) struct Blocks {
    /// Blocks that are made, ascending.
    pub(super) made: Vec<Block>,
    /// Whether a minute came behind a later block: the clock was stepped back.
    pub(super) is_disordered: bool,
    open: Option<Open>,
}

/// The block to which minutes are added.
struct Open {
    block: Block,
    latencies: Vec<Ranked>,
    /// Their round trips as the probes left; `None`: those of a minute are many, and only counted.
    in_order: Option<Vec<i64>>,
}

impl Blocks {
    /// Blocks that follow these.
    pub(super) fn behind(made: Vec<Block>) -> Self {
        Self { made, ..Self::default() }
    }

    /// Adds a minute to the block with this begin.
    pub(super) fn add(&mut self, begin_s: i64, line: &Line) {
        let newest = self.open.as_ref().map(|open| &open.block).or(self.made.last());
        match newest.map(|block| block.begin_s) {
            Some(newest_s) if begin_s < newest_s => return self.add_late(begin_s, line),
            // It was made, so its samples are gone.
            Some(newest_s) if begin_s == newest_s && self.open.is_none() => {
                return self.add_late(begin_s, line);
            }
            Some(newest_s) if begin_s == newest_s => {}
            _ => self.close(),
        }
        let open = self.open.get_or_insert_with(|| Open {
            block: Block { begin_s, ..Block::default() },
            latencies: Vec::new(),
            in_order: Some(Vec::new()),
        });
        open.add(line);
    }

    /// Makes the block that is open.
    pub(super) fn close(&mut self) {
        self.made.extend(self.open.take().map(Open::made));
    }

    fn add_late(&mut self, begin_s: i64, line: &Line) {
        self.is_disordered = true;
        let at = self.made.partition_point(|block| block.begin_s < begin_s);
        if self.made.get(at).is_none_or(|block| block.begin_s != begin_s) {
            self.made.insert(at, Block { begin_s, ..Block::default() });
        }
        let Some(block) = self.made.get_mut(at) else { return };
        block.count(line);
        block.quantiles = None;
    }
}

impl Open {
    fn add(&mut self, line: &Line) {
        self.block.count(line);
        let ranked = match &line.samples {
            None => {
                let mut answered: Vec<i64> = line.latency_ns.iter().flatten().copied().collect();
                self.in_order.iter_mut().for_each(|all| all.extend(&answered));
                Ranked::from_values(&mut answered)
            }
            Some(samples) => {
                self.in_order = None;
                let pairs = line.latency_ns.iter().flatten().copied().zip(samples.iter().copied());
                Ranked::new(&Histogram::from_pairs(pairs))
            }
        };
        self.block.samples += ranked.count();
        self.latencies.push(ranked);
    }

    fn made(self) -> Block {
        let latencies = Ranked::merged(&self.latencies);
        let mut block = self.block;
        if latencies.count() > 0 {
            let in_order = self.in_order.as_deref();
            block.quantiles = Some(QUANTILES.map(|p| Quantile::of(p, &latencies, in_order)));
        }
        block
    }
}

impl Quantile {
    /// The quantile of samples, with bounds if they are known in their order, too: late ones that come together are worth
    /// fewer independent ones.
    fn of(p: Probability, latencies: &Ranked, in_order: Option<&[i64]>) -> Self {
        let ns = latencies.quantile(p).unwrap_or(0);
        let Some(in_order) = in_order else { return Self { ns, low_ns: None, high_ns: None } };
        let count = latencies.count();
        let dependence = dependence(in_order, ns);
        let effect = dependence.raised(CONFIDENCE);
        let interval = ranks(p, count, CONFIDENCE, effect);
        let episodes = (count as f64 * p.complement_f64() / effect).min(dependence.freedom);
        let at = |rank: Option<u64>| rank.and_then(|rank| latencies.at_rank(rank));
        let high_ns = at(interval.high).filter(|_| supports(episodes, CONFIDENCE));
        Self { ns, low_ns: at(interval.low), high_ns }
    }
}

/// Dependence of the samples above a latency, in 128 to 255 blocks as for runs.
fn dependence(in_order: &[i64], latency_ns: i64) -> Dependence {
    let length = (in_order.len() / 256 + 1).next_power_of_two();
    let above = |block: &[i64]| block.iter().filter(|ns| **ns > latency_ns).count() as u64;
    Dependence::of_blocks(in_order.chunks_exact(length).map(above), length as u64)
}
