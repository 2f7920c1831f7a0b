//! Faults of clocks as warnings.

use super::faults::{Drift, Faults, Step};
use super::words::{moment, size};
use crate::summary::{Tap, Warning, grouped};

/// Rates of Ethernet in bit/s.
const RATES: [f64; 12] = [1e7, 1e8, 1e9, 2.5e9, 5e9, 1e10, 2.5e10, 4e10, 5e10, 1e11, 2e11, 4e11];

/// Bytes beside each frame on the wire: preamble, FCS and the least gap.
const BESIDE: u64 = 24;

/// The option that corrects clocks.
const CORRECTED: &str = "--clock-fit takes it out";

/// Warnings of faults in a run of so many samples.
pub(crate) fn warnings(faults: &Faults, ingress: &Tap, packets: u64, samples: u64) -> Vec<Warning> {
    let first_ns = ingress.first_ns.unwrap_or(0);
    let steps = faults.steps.iter().map(|step| Warning {
        code: "clock_step",
        count: samples,
        text: step_text(step, first_ns),
        invalidates: step.certain,
    });
    let drift = faults.drift.iter().map(|drift| {
        let fed = (drift.slopes[1] > 0.0).then(|| full_link(ingress, packets)).flatten();
        Warning {
            code: "clock_drift",
            count: samples,
            text: drift_text(drift, fed),
            invalidates: fed.is_none(),
        }
    });
    steps.chain(drift).collect()
}

fn step_text(step: &Step, first_ns: i64) -> String {
    let longer = if step.by_ns > 0 { "longer" } else { "shorter" };
    let reason = if step.certain {
        format!(
            "a clock of the taps was set, and the latencies before or after it are wrong by as much; {CORRECTED}"
        )
    } else {
        "the clocks of the taps, or the way of the packets, changed".to_owned()
    };
    format!(
        "even the fastest packets take {} {longer} from {} on ({} samples before it): {reason}",
        size(step.by_ns),
        moment(step.at_ns, first_ns),
        grouped(step.behind),
    )
}

fn drift_text(drift: &Drift, fed: Option<f64>) -> String {
    let [least, greatest] = drift.slopes.map(|slope| slope * 1e6);
    let range = size(drift.range_ns);
    if let Some(rate) = fed {
        return format!(
            "even the fastest packets take longer and longer, by {range} in all ({greatest:.1} ppm), and they fill a link of \
             {} Gbit/s: either a queue grows, or the clocks of the taps run apart",
            rate / 1e9,
        );
    }
    if drift.slopes[0].to_bits() == drift.slopes[1].to_bits() {
        let longer = if greatest > 0.0 { "longer" } else { "shorter" };
        return format!(
            "even the fastest packets take evenly {longer}, by {range} in all: the clocks of the taps run apart by {:.1} ppm, and \
             each percentile is wrong by up to {range}; {CORRECTED}",
            greatest.abs(),
        );
    }
    format!(
        "the latency of the fastest packets wanders within {range}, by {least:.1} to {greatest:.1} ppm: the clocks of the taps \
         are steered against each other, and each percentile is wrong by up to {range}; {CORRECTED}"
    )
}

/// The rate of a link that these packets fill, within what clocks differ by.
fn full_link(tap: &Tap, packets: u64) -> Option<f64> {
    let (first_ns, last_ns) = tap.first_ns.zip(tap.last_ns)?;
    let seconds = last_ns.saturating_sub(first_ns) as f64 / 1e9;
    let bits = 8.0 * (tap.bytes + BESIDE * packets) as f64;
    RATES.into_iter().find(|rate| (bits / seconds / rate - 1.0).abs() < super::STEEPEST)
}
