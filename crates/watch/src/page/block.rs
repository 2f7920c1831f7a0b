//! Minutes beside each other as one block: counts, percentiles with intervals, outages.

use super::reading::Line;
use serde::Serialize;
use serde_json::{Map, Value};
use tailtrim_stats::{Band, BlockCounts, Probability, Ranked, Undelivered};

/// Percentiles over time.
pub(super) const QUANTILES: [Probability; 3] =
    [Probability::P50, Probability::P99, Probability::P99_9];

/// A percentile with its interval at 95 %.
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
    /// Minutes in which probes left or none was due, as bits.
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
        if line.due == 0 || line.answered + unanswered > 0 {
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
    /// Clusters of the samples; those of a minute that were only counted have no order.
    dependence: BlockCounts,
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
            dependence: BlockCounts::new(),
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
                self.dependence.record_all(&answered);
                Ranked::from_values(&mut answered)
            }
            Some(samples) => {
                let pairs = line.latency_ns.iter().flatten().copied().zip(samples.iter().copied());
                Ranked::new(&tailtrim_stats::Histogram::from_pairs(pairs))
            }
        };
        self.block.samples += ranked.count();
        self.latencies.push(ranked);
    }

    fn made(self) -> Block {
        let latencies = Ranked::merged(&self.latencies);
        let mut block = self.block;
        if latencies.count() > 0 {
            let band = Band::new(&latencies, &self.dependence, Undelivered::NONE, Probability::P95);
            block.quantiles = Some(QUANTILES.map(|p| {
                let bounds = band.at(p);
                let at = |rank: Option<u64>| rank.and_then(|rank| latencies.at_rank(rank));
                Quantile {
                    // There is a sample, so there is one at each percentile.
                    ns: latencies.quantile(p).unwrap_or(0),
                    low_ns: at(bounds.interval.low),
                    high_ns: at(bounds.interval.high).filter(|_| bounds.supported),
                }
            }));
        }
        block
    }
}
