//! Likelihood of a comb: stalls that end at one phase of one period.
//!
//! Each occurrence that a packet meets speaks for the comb or against it: the packet that arrives in the window before
//! the end is late until this end, or it is not. The result is the logarithm of the likelihood, less that of packets
//! that are late as often at any phase.

use super::capture::{Capture, Level};
use super::cluster::{Cluster, FEWEST, densest, narrowed};
use super::met::{self, Met};
use super::wander::Track;

/// A comb and what the packets say of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Comb {
    /// Number of the threshold at which it is seen best.
    pub(super) level: usize,
    /// The period.
    pub(super) period_ns: f64,
    /// When the first occurrence ends, less than a period after the first arrival.
    pub(super) phase_ns: f64,
    /// Ends vary by so much in both directions.
    pub(super) width_ns: f64,
    /// Packets that arrive at most so long before the end are delayed.
    pub(super) reach_ns: f64,
    /// The longest waits of its stalls, without the last ones in a hundred.
    pub(super) longest_ns: f64,
    /// Occurrences in whose window a packet arrived.
    pub(super) met: usize,
    /// Those that delayed it until their end.
    pub(super) hit: usize,
    /// Those that would by chance.
    pub(super) expected: f64,
    /// Natural logarithm of the likelihood ratio to chance.
    pub(super) nats: f64,
    /// The motion of its phase, if its clock wanders.
    pub(super) track: Option<Track>,
    /// The first packet that arrives within this time behind an occurrence takes longer, too: it finds cold caches.
    pub(super) behind_ns: f64,
}

impl Comb {
    /// Share of the met occurrences that delayed the packet.
    pub(super) fn purity(&self) -> f64 {
        self.hit as f64 / self.met.max(1) as f64
    }

    /// Whether the share is high, by its standard deviation too.
    pub(super) fn is_sure(&self) -> bool {
        let share = self.purity();
        share - libm::sqrt(share * (1.0 - share) / self.met.max(1) as f64) >= SURE
    }

    /// Whether the run cannot tell their frequencies apart.
    pub(super) fn is_same(&self, other: &Self, run_ns: i64) -> bool {
        let periods = run_ns as f64 / other.period_ns;
        (self.period_ns - other.period_ns).abs() * periods < 0.1 * other.period_ns
    }

    /// Penalty of the likelihood for the choice of frequency, phase and widths: the logarithm of the number of choices.
    pub(super) fn price(&self, run_ns: i64) -> f64 {
        let narrow_ns = self.width_ns.max(500.0);
        libm::log(run_ns as f64 / narrow_ns)
            + libm::log((self.period_ns / narrow_ns).max(2.0))
            + libm::log(100.0)
    }

    /// The likelihood beyond its price.
    pub(super) fn net(&self, run_ns: i64) -> f64 {
        self.nats - self.price(run_ns)
    }

    /// Merit among combs for the same stalls: net likelihood, weighted by the share of packets delayed among those that
    /// it could have delayed.
    pub(super) fn merit(&self, run_ns: i64) -> f64 {
        self.net(run_ns) * self.purity()
    }

    /// The time before its end in which it accounts for packets.
    pub(super) fn before_ns(&self) -> f64 {
        1.3 * self.longest_ns + 2.0 * self.width_ns
    }

    /// Period number nearest to a time, and the time beyond its end.
    pub(super) fn off(&self, at_ns: f64) -> (i64, f64) {
        let at_ns = at_ns - self.moved_ns(at_ns);
        let number = libm::round((at_ns - self.phase_ns) / self.period_ns);
        (number as i64, at_ns - self.phase_ns - number * self.period_ns)
    }

    /// The stalls that end within its width: their numbers of the period, and the times beyond its end.
    pub(super) fn hits(&self, level: &Level) -> Vec<(i64, f64)> {
        let offs = level.open().map(|stall| self.off(stall.end_ns as f64));
        offs.filter(|(_, off_ns)| off_ns.abs() <= self.width_ns).collect()
    }

    /// When an occurrence ends.
    pub(super) fn end_ns(&self, number: i64) -> f64 {
        let end_ns = self.phase_ns + number as f64 * self.period_ns;
        end_ns + self.moved_ns(end_ns)
    }

    fn moved_ns(&self, at_ns: f64) -> f64 {
        self.track.map_or(0.0, |track| track.at(at_ns))
    }
}

/// A comb is believed if its likelihood exceeds its price by so much: a chance of 1 in 1,000 (ln 1000).
pub(super) const BELIEVED_NATS: f64 = 7.0;

/// Combs that delay nearly all that they could have delayed need no comparison with surrogates. With
/// bursts, none else are told: their rate folds every clock to others.
pub(super) const SURE: f64 = 0.7;

/// Half widths of the ends that are tried.
const WIDTHS_NS: [f64; 10] =
    [300.0, 600.0, 1_200.0, 2_400.0, 4_800.0, 9_600.0, 19_200.0, 38_400.0, 76_800.0, 153_600.0];

/// Windows take less than this part of the period.
const WIDEST: f64 = 0.0625;

/// Ends vary by less than this part of what packets wait: else packets would be late before and behind it alike, and it is
/// they that have a pattern.
const SHARP: f64 = 0.75;

/// The best comb near a frequency. `smear` is the part of a period by which the frequency may be wrong over the run.
pub(super) fn near(
    capture: &Capture,
    levels: &[Level],
    level: usize,
    hz: f64,
    smear: f64,
) -> Option<Comb> {
    let ends: Vec<f64> = levels[level].open().map(|stall| stall.end_ns as f64).collect();
    let period_ns = 1e9 / hz;
    let mut width_ns = period_ns * smear;
    let all = ends.len() as f64;
    let mut cluster = densest(&ends, period_ns, width_ns)?;
    let mut best: Option<Comb> = None;
    loop {
        let chance = all * width_ns / period_ns;
        let count = cluster.ends.len() as f64;
        if cluster.ends.len() < FEWEST {
            break;
        }
        let told = count * libm::log(count / chance.max(0.1)) - (count - chance);
        if told > 12.0 {
            let found = of_cluster(capture, &levels[level], level, &cluster, width_ns);
            if let Some(found) = found
                && best.is_none_or(|best| found.nats > best.nats)
            {
                best = Some(found);
            }
        }
        if width_ns < 600.0 {
            break;
        }
        cluster = narrowed(&cluster, width_ns, capture.run_ns as f64)?;
        width_ns /= 3.0;
    }
    let best = best?;
    Some(polished(capture, levels, &best).unwrap_or(best))
}

/// The comb of a cluster: period and phase by least squares.
fn of_cluster(
    capture: &Capture,
    level: &Level,
    number: usize,
    cluster: &Cluster,
    width_ns: f64,
) -> Option<Comb> {
    let (period_ns, at_ns) = line(&cluster.ends, cluster.period_ns, cluster.at_ns)?;
    let comb = unscored(number, period_ns, at_ns, width_ns / 2.0);
    scored(capture, level, &comb)
}

/// A comb of which only period and phase are known.
pub(super) fn unscored(level: usize, period_ns: f64, at_ns: f64, width_ns: f64) -> Comb {
    let phase_ns = at_ns - libm::floor(at_ns / period_ns) * period_ns;
    Comb {
        level,
        period_ns,
        phase_ns,
        width_ns,
        reach_ns: 0.0,
        longest_ns: 0.0,
        met: 0,
        hit: 0,
        expected: 0.0,
        nats: 0.0,
        track: None,
        behind_ns: 0.0,
    }
}

/// Period and phase of ends by least squares.
pub(super) fn line(ends: &[f64], period_ns: f64, at_ns: f64) -> Option<(f64, f64)> {
    let count = ends.len() as f64;
    let number = |end: f64| libm::round((end - at_ns) / period_ns);
    let off = |end: f64| end - at_ns - number(end) * period_ns;
    let mean_number = ends.iter().map(|end| number(*end)).sum::<f64>() / count;
    let mean_ns = ends.iter().map(|end| off(*end)).sum::<f64>() / count;
    let (mut upper, mut lower) = (0.0, 0.0);
    for end in ends {
        let deviation = number(*end) - mean_number;
        upper += deviation * (off(*end) - mean_ns);
        lower += deviation * deviation;
    }
    if lower <= 0.0 {
        return None;
    }
    let slope = upper / lower;
    Some((period_ns + slope, at_ns + mean_ns - slope * mean_number))
}

/// The comb fitted once more to the stalls that it accounts for.
pub(super) fn polished(capture: &Capture, levels: &[Level], comb: &Comb) -> Option<Comb> {
    let level = &levels[comb.level];
    let mut best = *comb;
    for _ in 0..2 {
        let ends: Vec<f64> = level
            .open()
            .map(|stall| stall.end_ns as f64)
            .filter(|end| best.off(*end).1.abs() <= best.width_ns)
            .collect();
        let (period_ns, at_ns) = line(&ends, best.period_ns, best.phase_ns)?;
        let again =
            Comb { track: best.track, ..unscored(best.level, period_ns, at_ns, best.width_ns) };
        let again = scored(capture, level, &again)?;
        if again.nats <= best.nats {
            break;
        }
        best = again;
    }
    Some(best)
}

/// Of fewer stalls, the longest one counts as well.
const FEW: usize = 20;

/// The comb with the width and the reach that are likeliest.
pub(super) fn scored(capture: &Capture, level: &Level, comb: &Comb) -> Option<Comb> {
    let mut waits: Vec<f64> = level
        .open()
        .filter(|stall| comb.off(stall.end_ns as f64).1.abs() <= comb.width_ns.max(600.0))
        .map(|stall| stall.delay_ns() as f64)
        .collect();
    if waits.len() < FEWEST {
        return None;
    }
    waits.sort_unstable_by(f64::total_cmp);
    let quantile = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize];
    let longest_ns = quantile(0.99);
    let parts = if waits.len() < FEW { &[0.5, 0.9, 1.0][..] } else { &[0.5, 0.9] };
    let reaches_ns = parts.iter().map(|part| quantile(*part) + 1.0);
    let reaches_ns: Vec<f64> =
        reaches_ns.take_while(|reach_ns| *reach_ns <= 0.6 * comb.period_ns).collect();
    let by_reach = met::meet(capture, level, comb, &reaches_ns);
    let mut tried: Vec<(usize, Comb, &[Met])> = Vec::new();
    for (met, reach_ns) in by_reach.iter().zip(reaches_ns) {
        let widest_ns = (WIDEST * comb.period_ns).min(SHARP * reach_ns);
        let widest_ns = widest_ns.min(4.0 * comb.width_ns.max(600.0));
        for width_ns in WIDTHS_NS.into_iter().take_while(|width_ns| *width_ns <= widest_ns) {
            let one = Comb { width_ns, reach_ns, longest_ns, ..*comb };
            tried.extend(met::at_most(level, one, met).map(|one| (tried.len(), one, &met[..])));
        }
    }
    // Those that may be likeliest come first, so that most of the others need not be looked at. Of equals, the first is taken.
    let net = |one: &Comb| one.net(capture.run_ns);
    tried.sort_by(|a, b| net(&b.1).total_cmp(&net(&a.1)));
    let mut best: Option<(usize, Comb)> = None;
    for (place, one, met) in tried {
        if best.is_some_and(|best| net(&one) < net(&best.1)) {
            break;
        }
        if let Some(one) = met::likelihood(level, one, met)
            && best.is_none_or(|best| {
                net(&one) > net(&best.1) || net(&one) == net(&best.1) && place < best.0
            })
        {
            best = Some((place, one));
        }
    }
    best.map(|(_, one)| one)
}
