//! Candidate frequencies: the power of late packets' ends at the harmonics of each frequency.
//!
//! The ends are binned in time and transformed over the whole run. What the schedule alone would show is subtracted
//! first, packet by packet, so that the rates of packets and bursts are not taken for candidates.

use super::capture::{Capture, Level};
use realfft::RealFftPlanner;

/// Fundamental frequencies that are searched.
pub(super) const SEARCHED_HZ: (f64, f64) = (0.4, 2_500.0);

/// Width of a bin of time: the highest harmonic that is seen is half of its inverse, 16 kHz. Ends vary by microseconds.
const BIN_NS: f64 = 31_250.0;

/// Below this frequency there are [`SLOW_HARMONICS`], above [`FAST_HARMONICS`] or as many as are seen: the
/// grid of frequencies grows with them, and slow ones are few.
const SLOW_HZ: f64 = 20.0;
const SLOW_HARMONICS: usize = 128;
const FAST_HARMONICS: usize = 32;

/// Fundamentals of one frequency and harmonic are looked up in so many steps at once, to stay in the processor's cache.
const BLOCK: usize = 4_096;

/// The noise of a frequency is the median power of so many bins around it: clusters of stalls have more at low
/// frequencies. A line of a cause is one bin in dozens.
const WHITENED: usize = 512;

/// A candidate's sum is at least so many standard deviations. Of 10⁷ sums, chance alone puts 300 above.
const LEAST: f64 = 4.0;

/// Bits behind the point of a bin's number.
const POINT_BITS: u32 = 24;
const POINT: f64 = (1_u32 << POINT_BITS) as f64;

/// Fewer stalls show no period.
const FEWEST: usize = 5;

/// Sums that are sorted: lines of a strong source are many.
const SORTED: usize = 4_000;

/// So many candidates of a level are looked at more closely, a limit of time.
pub(super) const MOST: usize = 20;

/// With bursts these are more, since each frequency folds with theirs to others of the same power.
const MOST_IN_BURSTS: usize = 80;

/// A candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// The frequency, to a fraction of what the run resolves at the highest harmonic.
    pub(super) hz: f64,
    /// Harmonics that were added.
    pub(super) harmonics: usize,
    /// Standard deviations above noise.
    deviations: f64,
    /// Mean power of a harmonic.
    mean: f64,
}

/// The candidate frequencies of the stalls that are not explained yet, best first.
pub(super) fn candidates(
    plan: &mut RealFftPlanner<f32>,
    capture: &Capture,
    level: &Level,
) -> Vec<Candidate> {
    if level.open().count() < FEWEST {
        return Vec::new();
    }
    let most = if capture.bursts { MOST_IN_BURSTS } else { MOST };
    proposed(plan, capture, most, |add| level.fill(capture, add))
}

/// The candidate frequencies of a series of times and weights, best first, at most so many.
pub(super) fn proposed(
    plan: &mut RealFftPlanner<f32>,
    capture: &Capture,
    most: usize,
    fill: impl FnOnce(&mut dyn FnMut(f64, f32)),
) -> Vec<Candidate> {
    let Some(power) = Power::of(plan, capture.run_ns, fill) else { return Vec::new() };
    let run_s = capture.run_ns as f64 / 1e9;
    let mut found = Vec::new();
    let mut low_hz = (4.0 / run_s).max(SEARCHED_HZ.0);
    while low_hz < SEARCHED_HZ.1 {
        let (harmonics, high_hz) = band(low_hz);
        power.sums(low_hz, high_hz, harmonics, run_s, &mut found);
        low_hz = high_hz;
    }
    shorten(&mut found);
    found.retain(|one| !capture.locked(one.hz, true));
    // A slow fundamental collects lines of several faster ones, and has many standard deviations; a fast one has few
    // harmonics, and by chance a high mean.
    let mut kept: Vec<Candidate> = Vec::new();
    for order in [|one: &Candidate| one.mean, |one: &Candidate| one.deviations] {
        found.sort_by(|a, b| order(b).total_cmp(&order(a)));
        let most = kept.len() + most / 2;
        for one in &found {
            if kept.len() == most {
                break;
            }
            if !kept.iter().any(|other| related(one, other, run_s)) {
                kept.push(*one);
            }
        }
    }
    kept
}

/// Keeps the best by either order.
fn shorten(found: &mut Vec<Candidate>) {
    if found.len() > SORTED {
        let (best, _, rest) =
            found.select_nth_unstable_by(SORTED / 2, |a, b| b.deviations.total_cmp(&a.deviations));
        let mut kept = best.to_vec();
        if rest.len() > SORTED / 2 {
            rest.select_nth_unstable_by(SORTED / 2, |a, b| b.mean.total_cmp(&a.mean));
        }
        kept.extend(rest.iter().take(SORTED / 2));
        *found = kept;
    }
}

/// Harmonics of the band that begins at this frequency, and its end.
fn band(low_hz: f64) -> (usize, f64) {
    if low_hz < SLOW_HZ {
        return (SLOW_HARMONICS, SLOW_HZ);
    }
    let highest_hz = 0.5e9 / BIN_NS;
    let seen = (highest_hz / (low_hz * 1.1)) as usize;
    if seen >= FAST_HARMONICS {
        (FAST_HARMONICS, (highest_hz / FAST_HARMONICS as f64).min(SEARCHED_HZ.1))
    } else {
        (seen.max(1), (low_hz * 1.1).min(SEARCHED_HZ.1))
    }
}

/// Whether one frequency is a simple fraction of the other: they have harmonics in common, as far as both are known.
fn related(one: &Candidate, other: &Candidate, run_s: f64) -> bool {
    let ratio = one.hz / other.hz;
    let resolved_hz = |one: &Candidate| 1.0 / (one.harmonics as f64 * run_s);
    (1..=8).map(f64::from).any(|denominator| {
        let numerator = libm::round(ratio * denominator);
        // Beside a strong line are those of the run's ends.
        let near_hz = 1.0 / run_s + denominator * resolved_hz(one) + numerator * resolved_hz(other);
        (1.0..=HIGHEST).contains(&numerator)
            && (one.hz * denominator - other.hz * numerator).abs() < near_hz
    })
}

/// Of a higher multiple, another frequency may be as near.
const HIGHEST: f64 = 40.0;

/// Power by frequency, 1 on average where there is nothing.
struct Power {
    values: Vec<f32>,
    /// Frequency of the first value but one.
    step_hz: f64,
}

impl Power {
    fn of(
        plan: &mut RealFftPlanner<f32>,
        run_ns: i64,
        fill: impl FnOnce(&mut dyn FnMut(f64, f32)),
    ) -> Option<Self> {
        let bins = (run_ns as f64 / BIN_NS) as usize + 1;
        let length = (bins * 2).next_power_of_two();
        let transform = plan.plan_fft_forward(length);
        let mut series = transform.make_input_vec();
        fill(&mut |at_ns, weight| {
            if let Some(bin) = series.get_mut((at_ns / BIN_NS) as usize) {
                *bin += weight;
            }
        });
        let mut output = transform.make_output_vec();
        transform.process(&mut series, &mut output).ok()?;
        drop(series);
        let mut values: Vec<f32> =
            output.iter().map(realfft::num_complex::Complex::norm_sqr).collect();
        drop(output);
        let mut parted = Vec::with_capacity(WHITENED);
        for block in values.chunks_mut(WHITENED) {
            parted.clear();
            parted.extend_from_slice(block);
            let middle = parted.len() / 2;
            let (_, median, _) = parted.select_nth_unstable_by(middle, f32::total_cmp);
            // The median of an exponential law is ln 2 of its mean.
            let mean = *median / std::f32::consts::LN_2;
            if mean > 0.0 {
                block.iter_mut().for_each(|value| *value /= mean);
            }
        }
        Some(Self { values, step_hz: 1e9 / (length as f64 * BIN_NS) })
    }

    /// Adds the local maxima of the sums over harmonics between two frequencies.
    fn sums(
        &self,
        low_hz: f64,
        high_hz: f64,
        harmonics: usize,
        run_s: f64,
        found: &mut Vec<Candidate>,
    ) {
        let grid_hz = 1.0 / (2.0 * harmonics as f64 * run_s);
        let steps = ((high_hz - low_hz) / grid_hz) as usize + 1;
        let least = least_sum(harmonics as f64) as f32;
        let mut block = vec![0.0_f32; BLOCK];
        let (mut before, mut last) = (0.0_f32, 0.0_f32);
        for start in (0..steps).step_by(BLOCK) {
            let count = BLOCK.min(steps - start);
            block[..count].fill(0.0);
            for harmonic in 1..=harmonics {
                let first =
                    (low_hz + start as f64 * grid_hz) * harmonic as f64 / self.step_hz + 0.5;
                let step = grid_hz * harmonic as f64 / self.step_hz;
                // Bins as fixed-point numbers: 24 bits behind the point, and an error of a hundredth of a bin at most.
                let mut place = (first * POINT) as u64;
                let step = (step * POINT) as u64;
                for sum in &mut block[..count] {
                    *sum += self.values.get((place >> POINT_BITS) as usize).copied().unwrap_or(1.0);
                    place += step;
                }
            }
            for (index, sum) in block[..count].iter().enumerate() {
                if last > least && last >= before && last > *sum {
                    let hz = low_hz + ((start + index) as f64 - 1.0) * grid_hz;
                    let deviations = deviations(f64::from(last), harmonics as f64);
                    let mean = f64::from(last) / harmonics as f64;
                    found.push(Candidate { hz, harmonics, deviations, mean });
                }
                (before, last) = (last, *sum);
            }
        }
    }
}

/// The sum that is [`LEAST`] standard deviations above noise.
fn least_sum(count: f64) -> f64 {
    let spread = 1.0 / (9.0 * count);
    let root = 1.0 - spread + LEAST * libm::sqrt(spread);
    count * root * root * root
}

/// Standard deviations of a normal law by which a sum of so many exponential powers is above its mean (Wilson and
/// Hilferty 1931).
fn deviations(sum: f64, count: f64) -> f64 {
    let spread = 1.0 / (9.0 * count);
    (libm::cbrt(sum / count) - (1.0 - spread)) / libm::sqrt(spread)
}
