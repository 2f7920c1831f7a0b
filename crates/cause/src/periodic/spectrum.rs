//! The frequency at which events are in step.
//!
//! Fast periods are searched in the differences of near events: their sum of phasors needs steps of a
//! frequency as wide as the differences are short, where that of the events themselves would need the
//! inverse of the whole run. Slow ones, whose events are all far apart, in the events themselves.

use super::late::Stall;
use std::f64::consts::TAU;

/// Differences up to this are searched for fast periods: four of the slowest.
const NEAR_NS: i64 = 200_000_000;

/// So many differences decide; the phasors of all of a crowded run would take minutes.
const MOST_PAIRS: usize = 20_000;

/// Lowest and highest frequency of fast periods, and the step between two that are tried: a fifth of
/// what the longest difference resolves.
pub(super) const FAST_HZ: (f64, f64) = (20.0, 10_000.0);
const FAST_STEP_HZ: f64 = 1.0;

/// A slow period must occur so often in a run.
const FEWEST_PERIODS: f64 = 8.0;

/// A lower frequency that is this nearly as good is the fundamental: all its multiples are in step too.
const FUNDAMENTAL: f64 = 0.8;

/// Peaks that are looked at: so many, of at least this part of the largest. A random case needed the 41st
/// (`a_cause_is_found_by_a_high_harmonic` in the tests).
const MOST_PEAKS: usize = 60;
const PEAK: f64 = 0.4;

/// Events that refine a frequency of a peak.
const MOST_REFINED: usize = 500;

/// Phases closer than this are the same when frequencies are compared: interrupts end within as much.
const FOLDED_NS: f64 = 1_000.0;

/// A phase by chance tells less than this, and frequencies that tell nearly as much are alike: by less than half of the
/// ln 2 = 0.69 by which a frequency and its multiple differ.
const LEAST_NATS: f64 = 0.5;
const SAME_NATS: f64 = 0.35;

/// Sums of this many standard deviations do not come by chance in the 10⁴ frequencies tried: 10⁴ times 1.3·10⁻¹².
const SIGNIFICANT: f64 = 7.0;

/// Arrivals in step with more than this share at a frequency are what is seen there, not a cause. By chance, a thousand
/// of them have a share of 0.1 with probability e⁻¹⁰ (Rayleigh).
const SCHEDULED: f64 = 0.5;

/// Arrivals that are asked whether they are in step.
const ARRIVALS: usize = 20_000;

/// The fundamental frequency at which the ends of stalls are in step; none where they are in step at no
/// frequency, or only with the arrivals of the packets that show them.
pub(super) fn frequency(stalls: &[Stall], samples: &[(i64, i64)], searched_ns: i64) -> Option<f64> {
    let ends: Vec<f64> = stalls.iter().map(|stall| stall.end_ns as f64).collect();
    let every = ends.len().div_ceil(MOST_REFINED).max(1);
    let some: Vec<f64> = ends.iter().copied().step_by(every).collect();
    let candidates = fast(stalls, samples);
    let reach_hz = FAST_STEP_HZ;
    let fast =
        fundamental(&ends, candidates.iter().map(|hz| refine(&some, *hz, reach_hz, searched_ns)));
    fast.or_else(|| {
        let coarse_hz = slow(&ends, searched_ns)?;
        Some(refine(&ends, coarse_hz, 2e9 / searched_ns as f64, searched_ns))
    })
}

/// Of frequencies the one that tells most about where events lie. In step with a packet schedule of a
/// constant rate, a cause is also in step at its frequency plus or minus multiples of the beat; but
/// there the ends are spread over that share of a period that the packets see, and only at the true
/// frequency over that of the interrupt's own variation. Of frequencies that tell nearly the same, the
/// highest: a multiple tells ln 2 less, a fraction as much.
fn fundamental(ends: &[f64], candidates: impl Iterator<Item = f64>) -> Option<f64> {
    let told: Vec<(f64, f64)> = candidates.map(|hz| (information(ends, hz), hz)).collect();
    let most = told.iter().map(|(nats, _)| *nats).fold(0.0, f64::max);
    told.iter()
        .filter(|(nats, _)| *nats > LEAST_NATS && *nats >= most - SAME_NATS)
        .map(|(_, hz)| *hz)
        .reduce(f64::max)
}

/// What folding at a frequency tells about an event, in nats: how much less the entropy of its phase is
/// than that of a phase by chance (with Miller and Madow's correction for few events).
fn information(ends: &[f64], hz: f64) -> f64 {
    let period_ns = 1e9 / hz;
    let bins = (period_ns / FOLDED_NS).max(2.0);
    let mut phases: Vec<u64> = ends
        .iter()
        .map(|end| {
            let turns = end / period_ns;
            ((turns - libm::floor(turns)) * bins) as u64
        })
        .collect();
    phases.sort_unstable();
    let count = phases.len() as f64;
    let runs: Vec<f64> = phases.chunk_by(|a, b| a == b).map(|run| run.len() as f64).collect();
    let entropy: f64 = runs.iter().map(|run| -run / count * libm::log(run / count)).sum();
    libm::log(bins) - entropy - (runs.len() as f64 - 1.0) / (2.0 * count)
}

/// Sums of cosines of the differences of near events, by frequency: the frequencies
/// of the largest peaks.
fn fast(stalls: &[Stall], samples: &[(i64, i64)]) -> Vec<f64> {
    let differences = differences(stalls);
    if differences.is_empty() {
        return Vec::new();
    }
    let steps = ((FAST_HZ.1 - FAST_HZ.0) / FAST_STEP_HZ) as usize;
    let mut sums = vec![0.0_f64; steps];
    for difference_ns in &differences {
        // cos(a + (n+1)·s) = 2·cos(s)·cos(a + n·s) - cos(a + (n-1)·s)
        let start = TAU * FAST_HZ.0 * difference_ns / 1e9;
        let step = TAU * FAST_STEP_HZ * difference_ns / 1e9;
        let twice = 2.0 * libm::cos(step);
        let (mut before, mut now) = (libm::cos(start - step), libm::cos(start));
        for sum in &mut sums {
            *sum += now;
            (before, now) = (now, twice * now - before);
        }
    }
    let hz = |n: usize| FAST_HZ.0 + n as f64 * FAST_STEP_HZ;
    // What is in step with the arrivals themselves shows the schedule.
    let noise = libm::sqrt(differences.len() as f64 / 2.0);
    for (n, sum) in sums.iter_mut().enumerate() {
        if *sum > SIGNIFICANT * noise && scheduled(samples, hz(n)) {
            *sum = 0.0;
        }
    }
    let largest = sums.iter().copied().fold(0.0, f64::max);
    if largest < SIGNIFICANT * noise {
        return Vec::new();
    }
    let mut peaks: Vec<usize> = (1..steps - 1)
        .filter(|n| sums[*n] >= sums[n - 1] && sums[*n] > sums[n + 1])
        .filter(|n| sums[*n] >= PEAK * largest)
        .collect();
    peaks.sort_by(|a, b| sums[*b].total_cmp(&sums[*a]));
    peaks.truncate(MOST_PEAKS);
    peaks.into_iter().map(hz).collect()
}

/// Differences of events that are near each other, thinned out where there are too many.
fn differences(stalls: &[Stall]) -> Vec<f64> {
    let mut ends: Vec<i64> = stalls.iter().map(|stall| stall.end_ns).collect();
    ends.sort_unstable();
    let reach = |n: usize| ends[n..].partition_point(|end| end - ends[n] <= NEAR_NS) - 1;
    let all: usize = (0..ends.len()).map(reach).sum();
    let every = all.div_ceil(MOST_PAIRS).max(1);
    (0..ends.len())
        .flat_map(|n| ends[n + 1..=n + reach(n)].iter().map(move |end| (n, end)))
        .step_by(every)
        .map(|(n, end)| (end - ends[n]) as f64)
        .collect()
}

/// Whether the arrivals of packets are in step at a frequency.
fn scheduled(samples: &[(i64, i64)], hz: f64) -> bool {
    let some = &samples[..samples.len().min(ARRIVALS)];
    let Some(&(first_ns, last)) = some.first().zip(some.last()).map(|(a, b)| (a.0, b.0)).as_ref()
    else {
        return false;
    };
    // Slower than one cycle in ten packets: no schedule of single packets.
    let interval_ns = (last - first_ns) as f64 / some.len() as f64;
    if hz * interval_ns < 1e8 {
        return false;
    }
    let short = &some[..some.len().min(1_000)];
    let times: Vec<f64> = short.iter().map(|sample| (sample.0 - first_ns) as f64).collect();
    resultant(&times, hz) > SCHEDULED
}

/// The slow period of events, by their phasors over the whole run.
fn slow(ends: &[f64], searched_ns: i64) -> Option<f64> {
    let run_s = searched_ns as f64 / 1e9;
    let (low_hz, step_hz) = (FEWEST_PERIODS / run_s, 1.0 / (8.0 * run_s));
    if low_hz >= FAST_HZ.0 {
        return None;
    }
    let every = ends.len().div_ceil(2_000).max(1);
    let some: Vec<f64> = ends.iter().copied().step_by(every).collect();
    let steps = ((FAST_HZ.0 * 1.25 - low_hz) / step_hz) as usize;
    let sums: Vec<f64> =
        (0..steps).map(|n| resultant(&some, low_hz + n as f64 * step_hz)).collect();
    let largest = sums.iter().copied().fold(0.0, f64::max);
    // N·R² is exponential by chance (Rayleigh): e⁻¹⁶ a frequency, of which 12,000 are tried in a minute, 0.001 in all.
    if largest * largest * (some.len() as f64) < 16.0 {
        return None;
    }
    let first = sums.iter().position(|sum| *sum >= FUNDAMENTAL * largest)?;
    let top = (first..steps - 1).find(|n| sums[n + 1] < sums[*n]).unwrap_or(steps - 1);
    Some(low_hz + top as f64 * step_hz)
}

/// The best frequency near a coarse one, in steps of a hundredth of what the run resolves.
fn refine(ends: &[f64], coarse_hz: f64, reach_hz: f64, searched_ns: i64) -> f64 {
    let resolved_hz = 1e9 / searched_ns as f64;
    let mut best = (resultant(ends, coarse_hz), coarse_hz);
    let mut centre_hz = coarse_hz;
    for (reach_hz, step_hz) in [
        (reach_hz, resolved_hz / 4.0),
        (resolved_hz / 3.0, resolved_hz / 40.0),
        (resolved_hz / 30.0, resolved_hz / 1_000.0),
    ] {
        let steps = (reach_hz / step_hz) as i64;
        for n in -steps..=steps {
            let hz = centre_hz + n as f64 * step_hz;
            if hz > 0.0 {
                let sum = resultant(ends, hz);
                if sum > best.0 {
                    best = (sum, hz);
                }
            }
        }
        centre_hz = best.1;
    }
    best.1
}

/// Length of the mean phasor of times at a frequency: 1 in step, near 0 by chance.
fn resultant(times_ns: &[f64], hz: f64) -> f64 {
    let (mut real, mut imaginary) = (0.0, 0.0);
    for time_ns in times_ns {
        let turns = time_ns * hz / 1e9;
        let (sine, cosine) = libm::sincos(TAU * (turns - libm::floor(turns)));
        real += cosine;
        imaginary += sine;
    }
    libm::sqrt(real * real + imaginary * imaginary) / times_ns.len().max(1) as f64
}
