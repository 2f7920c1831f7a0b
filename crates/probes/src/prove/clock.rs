//! The clock of a NIC: how fast it runs beside `CLOCK_REALTIME`, and whether it was stepped.

use super::Verdict;
use serde::Serialize;
use tailtrim_trace::phc::{DRIFT_PPM, Offset, Step};

/// A clock of a NIC beside `CLOCK_REALTIME`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockMeasured {
    /// Number of readings.
    pub readings: usize,
    /// The largest error of a reading, either way.
    pub error_ns: i64,
    /// Surplus of its speed, in millionths: the median between two readings.
    pub drift_ppm: f64,
    /// The frequency that it is set to beside its own, in parts per billion, as a servo does; `None` where this is not known.
    pub frequency_ppb: Option<i64>,
    /// Jumps, at times of `CLOCK_REALTIME`.
    pub steps: Vec<Step>,
}

/// Measures a clock by its readings; `None` where there are not two.
pub(super) fn measured(readings: &[Offset]) -> Option<ClockMeasured> {
    let spans: Vec<(f64, f64)> = readings
        .windows(2)
        .map(|pair| {
            let grown = i128::from(pair[1].offset_ns) - i128::from(pair[0].offset_ns);
            ((pair[1].at_ns - pair[0].at_ns) as f64, grown as f64)
        })
        .collect();
    let mut rates: Vec<f64> =
        spans.iter().filter(|(span, _)| *span > 0.0).map(|(span, grown)| grown / span).collect();
    rates.sort_by(f64::total_cmp);
    let rate = *rates.get(rates.len() / 2)?;
    let step = |(pair, (span, grown)): (&[Offset], &(f64, f64))| {
        let by = grown - rate * span;
        let explained =
            (pair[0].error_ns + pair[1].error_ns) as f64 + DRIFT_PPM * 1e-6 * span.abs();
        (by.abs() > explained).then_some(Step { at_ns: pair[1].at_ns, by_ns: by.round() as i64 })
    };
    Some(ClockMeasured {
        readings: readings.len(),
        error_ns: readings.iter().map(|reading| reading.error_ns).max().unwrap_or(0),
        drift_ppm: rate * 1e6,
        frequency_ppb: None,
        steps: readings.windows(2).zip(&spans).filter_map(step).collect(),
    })
}

/// The verdict on a clock, and what speaks against it.
pub(super) fn judged(told: &ClockMeasured) -> (Verdict, Option<String>) {
    if let Some(step) = told.steps.iter().max_by_key(|step| step.by_ns.saturating_abs()) {
        let seconds = step.by_ns as f64 / 1e9;
        let why = format!("jumped {} times, by up to {seconds:.3} s", told.steps.len());
        return (Verdict::Refuted, Some(why));
    }
    if told.drift_ppm.abs() > DRIFT_PPM {
        let times = 1.0 + told.drift_ppm / 1e6;
        return (
            Verdict::Refuted,
            Some(format!("runs {times:.4} times as fast as the system's clock")),
        );
    }
    (Verdict::Proven, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings each 100 ms of a clock that runs so much faster, with an error of 500 ns.
    fn readings(ppm: i64, jump: impl Fn(i64) -> i64) -> Vec<Offset> {
        let at = |n: i64| Offset {
            at_ns: n * 100_000_000,
            offset_ns: 37_000_000_000 + n * 100 * ppm + n % 2 * 400 + jump(n),
            error_ns: 500,
        };
        (0..9).map(at).collect()
    }

    #[test]
    fn a_steady_clock_is_proven() {
        for ppm in [0, -100, 100, 590] {
            let told = measured(&readings(ppm, |_| 0)).unwrap();
            assert!((told.drift_ppm - ppm as f64).abs() < 10.0, "{told:?}");
            assert_eq!((told.readings, told.error_ns, &told.steps[..]), (9, 500, &[][..]));
            assert_eq!(judged(&told), (Verdict::Proven, None), "{ppm} ppm");
        }
        assert_eq!(measured(&readings(0, |_| 0)[..1]), None);
    }

    #[test]
    fn a_jump_is_found_whatever_its_size() {
        // 2,199 s, as an emulated igb makes it, and half a millisecond.
        for by_ns in [1_i64 << 41, -(1 << 41), 500_000] {
            let told = measured(&readings(20, |n| if n >= 4 { by_ns } else { 0 })).unwrap();
            assert_eq!(told.steps.len(), 1, "{told:?}");
            assert!((told.steps[0].by_ns - by_ns).abs() < 5_000, "{told:?}");
            assert_eq!(told.steps[0].at_ns, 400_000_000);
            assert_eq!(judged(&told).0, Verdict::Refuted);
        }
        let told = measured(&readings(20, |n| n / 4 * (1 << 41))).unwrap();
        assert_eq!(judged(&told).1.unwrap(), "jumped 2 times, by up to 2199.023 s");
    }

    #[test]
    fn a_clock_that_runs_too_fast_is_refuted() {
        let told = measured(&readings(1_500_000, |_| 0)).unwrap();
        assert_eq!(told.steps, []);
        let why = "runs 2.5000 times as fast as the system's clock".to_owned();
        assert_eq!(judged(&told), (Verdict::Refuted, Some(why)));
    }
}
