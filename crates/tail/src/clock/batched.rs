//! Stamps that both taps take in batches, as drivers do that stamp packets when an interrupt tells of several.
//!
//! Packets that come in bursts look the same at one tap. Two things tell that it is the stamps:
//!
//! * A batch of stamps ends at a moment that has nothing to do with the packets: the other tap, which they pass some time earlier or
//!   later, has other packets together. A device that is stalled joins bursts, too. But it cuts few, since they are short, and those
//!   that it joins to others are late: of stamps, the first of a batch are as fast as ever.
//! * Latencies differ by multiples of the time between batches, if that is the same at both taps.

use super::sampled::{Joined, SampledSide, join};
use super::stamps::Batches;
use super::words::size;
use crate::analysis::Analysis;
use crate::summary::{Summary, Warning};
use tailtrim_stats::{Probability, Ranked, Spread};

/// Gaps between batches are so many times longer than those within: of packets that come at random times, 7 % are in between.
const HOLE: i64 = 8;

/// Fewest packets of a batch on average.
const BATCHED: f64 = 2.0;

/// Part of the time between batches of the other tap that a batch takes: an interrupt cuts one in so many bursts.
const SHORT: i64 = 16;

/// Fewest places at which packets are together at egress only, and one of so many batches that has one at least: half as many are
/// cut, more than an interrupt cuts.
const FEWEST: usize = 8;
const ONE_OF: usize = 8;

/// Part of the time between batches within which a time is another one: by chance, one in ten is.
const NEAR: i64 = 20;

fn median(ns: &mut [i64]) -> i64 {
    ns.sort_unstable();
    ns.get(ns.len() / 2).copied().unwrap_or(0)
}

/// Batches at both taps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BothBatched([Batches; 2]);

impl BothBatched {
    /// Takes the batches that the gaps of both taps show; `None` where packets come one by one at one of them.
    #[must_use]
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let gaps = &analysis.summary.gap_ns;
        let likely = |gaps: &Spread| gaps.p99 >= gaps.p50.map(|ns| ns.max(1).saturating_mul(HOLE));
        if !likely(&gaps.ingress) || !likely(&gaps.egress) {
            return None;
        }
        let step_ns = (analysis.summary.resolution_ps / 1_000).max(1).cast_signed();
        let of = |gaps| Batches::clear(&Ranked::new(gaps), step_ns, HOLE);
        let [ingress, egress] = [of(&analysis.ingress_gaps)?, of(&analysis.egress_gaps)?];
        let are_short = |one: Batches, other: Batches| {
            one.packets >= BATCHED && one.span_ns.saturating_mul(SHORT) <= other.every_ns
        };
        let short = are_short(ingress, egress) && are_short(egress, ingress);
        short.then_some(Self([ingress, egress]))
    }

    /// Whether latencies differ by multiples of the time between batches, of both taps.
    #[must_use]
    pub fn are_multiples(&self, latencies: &Ranked) -> bool {
        let [every_ns, other_ns] = self.0.map(|batches| batches.every_ns);
        let Some(median_ns) = latencies.quantile(Probability::P50) else { return false };
        if every_ns.abs_diff(other_ns) * 100 > every_ns.unsigned_abs() {
            return false;
        }
        let (mut late, mut multiples) = (0, 0);
        for (ns, count) in latencies.entries() {
            let more_ns = ns.saturating_sub(median_ns);
            if more_ns.saturating_abs() < every_ns / 2 {
                continue;
            }
            let off_ns = more_ns.rem_euclid(every_ns);
            late += count;
            multiples += if off_ns.min(every_ns - off_ns) <= every_ns / NEAR { *count } else { 0 };
        }
        late >= FEWEST as u64 && multiples * 10 >= late * 9
    }

    /// Whether other packets are together at the other tap, by some that pass one after the other.
    #[must_use]
    pub fn are_of_stamps(&self, ingress: &SampledSide<()>, egress: &SampledSide<()>) -> bool {
        let (mut joined, _) = join(ingress, egress);
        joined.sort_unstable_by_key(|packet| packet.entered.0);
        let together = |side: usize, ns: i64| ns.saturating_abs() <= self.0[side].short_ns.max(1);
        let (mut cut, mut met, mut first) = (0, Vec::new(), Vec::new());
        let next = |pair: &&[Joined<()>]| pair[1].entered.0 == pair[0].entered.0 + 1;
        for pair in joined.windows(2).filter(next) {
            let entered = together(0, pair[1].entered.1.saturating_sub(pair[0].entered.1));
            let left = together(1, pair[1].left.1.saturating_sub(pair[0].left.1));
            cut += usize::from(entered && !left);
            if !entered {
                first.push(pair[1].apart_ns());
                met.extend(left.then(|| pair[1].apart_ns()));
            }
        }
        let many = met.len() >= FEWEST && met.len() * ONE_OF >= first.len();
        let late_ns = median(&mut met).saturating_sub(median(&mut first));
        many && cut * 2 >= met.len() && late_ns <= self.0[0].every_ns / NEAR
    }

    /// Adds to a summary by how much the batches make latencies wrong.
    pub fn tell(&self, summary: &mut Summary) {
        let [ingress, egress] = self.0;
        let wrong_ns = ingress.every_ns.max(egress.every_ns);
        // Clocks disagree only if they do by more than a batch: batches come at different times.
        let latency = &summary.latency_ns;
        let (least_ns, few_ns) = (latency.min.unwrap_or(0), wrong_ns.saturating_mul(2));
        let iqr_ns = latency.iqr.unwrap_or(0);
        summary.warnings.retain(|warning| match warning.code {
            "not_positive" => least_ns < -few_ns,
            "clock_step" | "clock_drift" => iqr_ns > few_ns,
            "batched_stamps" => false,
            _ => true,
        });
        let median = latency.quantiles.iter().find(|quantile| quantile.p == Probability::P50);
        let is_small = median.and_then(|median| median.value).is_some_and(|ns| ns < wrong_ns);
        let [short, long] = [ingress, egress].map(|batches| size(batches.every_ns));
        let text = format!(
            "the stamps of both taps come in batches (interrupt coalescing), at ingress about {:.0} every {short}, at egress about \
             {:.0} every {long}: each latency is up to {short} too short or {long} too long, and no percentile below that is known; \
             ethtool -C INTERFACE rx-usecs 0 adaptive-rx off, and capture again",
            ingress.packets, egress.packets,
        );
        let (code, count) = ("batched_stamps", summary.samples);
        summary.warnings.insert(0, Warning { code, count, text, invalidates: is_small });
    }
}
