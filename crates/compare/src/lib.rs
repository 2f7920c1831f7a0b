//! Comparison of two devices, kernels or settings, which of them is slower: quantile by quantile, the ratio
//! B / A with an interval, and a verdict that holds for all quantiles together.
//!
//! 1. A [`Repetition`] counts a run's latencies per block of consecutive samples: late packets come
//!    in clusters, and blocks keep a cluster together.
//! 2. The design effect of each side says how much the number of late packets varies between its
//!    blocks, or between its repetitions where both sides have several, beyond chance. It scales
//!    the distance between a quantile and a latency, measured in samples, to standard errors. Where
//!    the effects of both sides could be one, they are pooled.
//! 3. A ratio is refuted when no latency x lies near the quantile of A with ratio·x near that of B:
//!    the test of two quantiles, inverted for the interval. No density is estimated, and latencies
//!    that tie (stamps have a resolution) are never told apart.
//! 4. What chance alone would do is seen by dealing the blocks anew to the sides, which is right for
//!    any kind of cluster as long as blocks are independent. A bootstrap of each side gave 6 % false
//!    verdicts for 5 %: it cannot draw larger clusters than it saw. The interval must agree: where the
//!    dependence of the sides is different, or one has far fewer samples, dealing is not enough.
//!    Repetitions are too few to be dealt (three a side in ten ways): Student's t compares the
//!    logarithms of their quantiles. Student's are the intervals, too, with as many degrees of freedom
//!    as the blocks' kurtosis leaves.
//! 5. The same deals for all quantiles say how these go together, so that verdicts can be corrected
//!    for looking at many of them (Westfall and Young 1993, step-down with the smallest p).
//!
//! Blocks are merged as long as successive ones are alike. A run whose slowest changes are larger
//! than its faster ones let expect drifts: it is taken for a random walk, of which one slow change is
//! known. A walk that is too slow to be seen in a run is not allowed for: see `drift`.
//!
//! Nothing here reads a clock or a file, and the draws are seeded: equal input gives equal output.
#![forbid(unsafe_code)]

mod dealt;
mod draws;
mod drift;
mod few;
mod length;
mod multiple;
mod promise;
mod reach;
mod region;
mod repetition;
mod result;
mod shares;
mod side;
mod verdict;

use draws::{Draws, Statistic};
use region::Region;
use side::Side;
use tailtrim_stats::{Probability, episodes_needed, samples_needed, supports};

pub use length::{Length, LengthError, Pilot, length};
pub use promise::{Observed, Promise, Promised, promised};
pub use repetition::{LOST_NS, Repetition};
pub use result::{Comparison, Curve, Group, Resampling, Row, SideOfRow};
pub use shares::{Counted, Losses, losses};
pub use verdict::Verdict;

/// Power of the smallest difference that is told: the chance of showing it if it is there. Four out
/// of five is the usual convention (Cohen 1988, *Statistical Power Analysis*, section 2.4).
const POWER: f64 = 0.8;
/// The standard normal deviate that is exceeded with probability 1 − [`POWER`].
const POWER_DEVIATE: f64 = 0.841_621;

/// Options of a comparison.
#[derive(Debug, Clone)]
pub struct Options {
    /// Quantiles that get a verdict.
    pub quantiles: Vec<Probability>,
    /// Quantiles of the curve, which get none.
    pub curve: Vec<Probability>,
    /// Confidence of each interval, and of all verdicts together.
    pub confidence: Probability,
    /// A quantile is better or worse when it is so by more than this, relatively: 0.01 for 1 %.
    pub margin: f64,
    /// Draws of what chance would do. With the default of 9,999, a p-value of 0.05 has a standard error
    /// of 0.002.
    pub draws: u32,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        let quantiles =
            std::iter::once(Probability::P50).chain((1..=6).filter_map(Probability::nines));
        Self {
            quantiles: quantiles.collect(),
            curve: Vec::new(),
            confidence: Probability::P95,
            margin: 0.0,
            draws: 9_999,
            seed: 1,
        }
    }
}

/// Compares the repetitions of B with those of A.
///
/// Where both sides have several repetitions these are resampled, since they differ by more than
/// the packets within one tell; otherwise blocks of consecutive samples are, and what would differ
/// from run to run stays unseen. A quantile that the samples of a side do not support gets no
/// verdict.
#[must_use]
pub fn compare(a: &[Repetition], b: &[Repetition], options: &Options) -> Comparison {
    let by = if a.len() > 1 && b.len() > 1 { Resampling::Repetitions } else { Resampling::Blocks };
    let known = options.quantiles.iter().copied().filter(|p| *p != Probability::ONE);
    let sides = Side::both([a, b], by, &known.collect::<Vec<_>>(), options.confidence);
    let mut rows: Vec<Row> = Vec::new();
    let mut tested: Vec<(usize, Region)> = Vec::new();
    for &p in &options.quantiles {
        let region = Region::new(&sides, p);
        let row = described(&sides, p, options.confidence);
        if row.supported {
            tested.push((rows.len(), region));
        }
        rows.push(row);
    }
    judge(&mut rows, &tested, &sides, options);
    let curve = curve(&sides, options);
    Comparison {
        schema: "tailtrim.comparison/1",
        confidence: options.confidence,
        margin: options.margin,
        power: POWER,
        draws: options.draws,
        seed: options.seed,
        resampling: by,
        drifts: sides[0].drifts(),
        a: sides[0].group(),
        b: sides[1].group(),
        quantiles: rows,
        curve,
    }
}

/// A row without a test: values and what each side is worth.
fn described(sides: &[Side<'_>; 2], p: Probability, confidence: Probability) -> Row {
    let worth = [0, 1].map(|side| sides[side].worth(p));
    let [a, b] = [0, 1].map(|side| SideOfRow {
        value_ns: sides[side].quantile(p),
        effective_samples: worth[side].samples as u64,
    });
    let supported = worth.iter().all(|one| supports(one.episodes, confidence));
    let times = [0, 1].map(|side| {
        let episodes = Some(worth[side].episodes).filter(|episodes| *episodes > 0.0);
        episodes.map(|episodes| {
            sides[side].runs() as f64 * episodes_needed(confidence) as f64 / episodes
        })
    });
    let fewest = verdict::fewest_runs(confidence.complement_f64());
    let runs = times[0].zip(times[1]).map(|(a, b)| (a.max(b).ceil() as u64).max(fewest));
    Row {
        p,
        ratio: ratio(a.value_ns, b.value_ns),
        a,
        b,
        samples_needed: samples_needed(p, confidence),
        low: None,
        high: None,
        p_value: None,
        adjusted_p: None,
        supported,
        verdict: Verdict::NotDecided { needed: runs },
        better_from: None,
        worse_from: None,
    }
}

/// Fills in tests, intervals and verdicts of the rows that can have them.
fn judge(rows: &mut [Row], tested: &[(usize, Region)], sides: &[Side<'_>; 2], options: &Options) {
    let (signed, statistics): (Vec<(f64, f64)>, Vec<Statistic>) =
        tested.iter().map(|(_, region)| region.test(sides, options.margin)).unzip();
    let draws = Draws::new(&statistics, options.draws, options.seed);
    let p_value =
        |(index, (_, region)): (usize, &(usize, Region))| match (signed[index], region.few()) {
            ((0.0, _), _) => 1.0,
            ((distance, _), Some(few)) => few.p_value(distance),
            ((distance, least), None) => draws.p_value(index, distance).max(least),
        };
    let found: Vec<f64> = tested.iter().enumerate().map(p_value).collect();
    let adjusted = multiple::step_down(&found, &draws);
    let alpha = options.confidence.complement_f64();
    let together = multiple::smallest_p_at(&draws, alpha);
    for (index, (row, region)) in tested.iter().enumerate() {
        let row = &mut rows[*row];
        (row.low, row.high) = region.interval(sides, region.critical(alpha));
        row.p_value = Some(found[index]);
        row.adjusted_p = Some(adjusted[index]);
        let limit = 1.0 + options.margin;
        // The p-value is one pair of latencies', the interval that of the whole edge of the region.
        let shown = adjusted[index] <= alpha;
        row.verdict = if shown && signed[index].0 > 0.0 && row.low.is_none_or(|low| low > limit) {
            Verdict::Worse
        } else if shown && signed[index].0 < 0.0 && row.high.is_none_or(|high| high < 1.0 / limit) {
            Verdict::Better
        } else {
            undecided(region, sides, together, options)
        };
        let (low, high) = region.interval(sides, region.critical(together) + POWER_DEVIATE);
        row.better_from =
            low.zip(row.ratio).map(|(low, ratio)| low / ratio / (1.0 + options.margin));
        row.worse_from =
            high.zip(row.ratio).map(|(high, ratio)| high / ratio * (1.0 + options.margin));
    }
}

/// The verdict where no difference is shown: none beyond what the interval of all quantiles together leaves possible, or
/// as many runs as would decide.
fn undecided(region: &Region, sides: &[Side<'_>; 2], together: f64, options: &Options) -> Verdict {
    let alpha = options.confidence.complement_f64();
    let fewest = verdict::fewest_runs(alpha);
    let now = sides[0].runs().min(sides[1].runs());
    // Blocks of a run are enough to be dealt; repetitions may be too few.
    let told = region.few().is_none() || now >= fewest;
    let (low, high) = region.interval(sides, region.critical(together));
    let needed = || {
        let limit = 1.0 + options.margin;
        length::smallest(fewest.max(now + 1), |runs| {
            let shrunk = (now as f64 / runs as f64).sqrt();
            let reach = (region.critical_of(together, now, runs) + POWER_DEVIATE) * shrunk;
            let (low, high) = region.interval(sides, reach);
            low.is_some_and(|low| low > limit)
                || high.is_some_and(|high| high < 1.0 / limit)
                || verdict::beyond(low, high).is_some_and(|x| x <= verdict::telling(options.margin))
        })
    };
    Verdict::within(low.filter(|_| told), high, options.margin, needed)
}

fn curve(sides: &[Side<'_>; 2], options: &Options) -> Vec<Curve> {
    let alpha = options.confidence.complement_f64();
    let point = |&p: &Probability| {
        let region = Region::new(sides, p);
        let (low, high) = region.interval(sides, region.critical(alpha));
        let supported =
            sides.iter().all(|side| supports(side.worth(p).episodes, options.confidence));
        Curve { p, ratio: ratio(sides[0].quantile(p), sides[1].quantile(p)), low, high, supported }
    };
    options.curve.iter().map(point).collect()
}

/// B / A; `None` unless both are positive, and packets that were delivered.
fn ratio(a_ns: Option<i64>, b_ns: Option<i64>) -> Option<f64> {
    let known = |ns: i64| ns > 0 && ns != LOST_NS;
    match (a_ns, b_ns) {
        (Some(a), Some(b)) if known(a) && known(b) => Some(b as f64 / a as f64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviate_is_that_of_the_power() {
        // Exceeded to one side with probability 1 − POWER, hence to both with twice that.
        let deviate = tailtrim_stats::student::critical(2.0 * (1.0 - POWER), 1e6);
        assert!((deviate - POWER_DEVIATE).abs() < 1e-5, "{deviate}");
    }
}
