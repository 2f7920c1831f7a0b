//! Faults of clocks as warnings.

use super::ClockFit;
use super::faults::{Drift, Faults, Step};
use super::stamps::Batches;
use super::words::{moment, signed, size};
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
        "even the fastest packets take {} {longer} from about {} on (some {} samples before it): {reason}",
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

/// Pieces of a correction that are told.
const TOLD: usize = 4;

/// Warning of a correction.
pub(crate) fn corrected(fit: &ClockFit, samples: u64) -> Warning {
    let sides = SIDES.into_iter().zip([&fit.ingress, &fit.egress]);
    let sides = sides.into_iter().filter(|(_, pieces)| !pieces.is_empty());
    let told: Vec<String> = sides
        .map(|(side, pieces)| {
            let told = pieces.iter().take(TOLD).map(|piece| {
                let sign = if piece.offset_ns > 0 { "−" } else { "+" };
                let mut text = format!(
                    "from packet {} by {sign}{}",
                    grouped(piece.packet),
                    size(piece.offset_ns)
                );
                if piece.rate_ppt != 0 {
                    let ppm = format!("{:+.3}", -piece.rate_ppt as f64 / 1e6).replace('-', "−");
                    text += &format!(" and {ppm} ppm");
                }
                text
            });
            let told: Vec<String> = told.collect();
            let more = match pieces.len().saturating_sub(TOLD) {
                0 => String::new(),
                more => format!(", and {more} more pieces"),
            };
            format!("the {side} clock is corrected {}{more}", told.join(", "))
        })
        .collect();
    let fastest = match fit.fastest_ns {
        Some(ns) => format!(
            "what the fastest packets take in both directions together is known: they are taken to need {} in each",
            size(ns)
        ),
        None if fit.level_kept => only_beyond("keep the latency that they have at first"),
        None => only_beyond("are taken to have none"),
    };
    let text =
        format!("{}; this can be off by {}, and {fastest}", told.join("; "), size(fit.bound_ns),);
    Warning { code: "clock_fit", count: samples, text, invalidates: false }
}

fn only_beyond(fastest: &str) -> String {
    format!("only latency beyond that of the fastest packets is known: these {fastest}")
}

/// Warning of clocks by which the fastest packets of one of two directions take no time, of latencies in that which counts
/// and in the other one.
#[must_use]
pub fn of_directions([ours_ns, back_ns]: [i64; 2], samples: u64) -> Option<Warning> {
    let both_ns = ours_ns.saturating_add(back_ns);
    if both_ns <= 0 || ours_ns.min(back_ns) > 0 {
        return None;
    }
    let by_ns = ours_ns.saturating_sub(back_ns) / 2;
    let ahead = if by_ns > 0 { "ahead of" } else { "behind" };
    let text = format!(
        "the egress clock is {} {ahead} the ingress clock, within {}: by these clocks the fastest packets take {} in this \
         direction and {} in the other; {CORRECTED}",
        size(by_ns),
        size(both_ns / 2),
        signed(ours_ns),
        signed(back_ns),
    );
    Some(Warning { code: "clock_offset", count: samples, text, invalidates: true })
}

/// Warning of stamps of two clocks, which are known to differ by no more than this.
pub(crate) fn of_two_clocks(
    error_ns: Option<i64>,
    why: &[String],
    median_ns: Option<i64>,
    samples: u64,
) -> Warning {
    let told = "the taps stamped by two clocks";
    let (text, invalidates) = match error_ns {
        None => {
            let why =
                if why.is_empty() { "too little was compared".to_owned() } else { why.join("; ") };
            (format!("{told}, and how far each latency is off is not known: {why}"), true)
        }
        // Not even its sign is known then.
        Some(error_ns) if median_ns.is_some_and(|ns| ns.saturating_abs() <= error_ns) => {
            let text = format!(
                "{told}: each latency is within {} of the true one, and the median is no more than that",
                size(error_ns)
            );
            (text, true)
        }
        Some(error_ns) => (
            format!(
                "{told}, compared all along: each latency is within {} of the true one",
                size(error_ns)
            ),
            false,
        ),
    };
    Warning { code: "clock_error", count: samples, text, invalidates }
}

/// Part of the median latency below which the step of stamps does not matter.
const FINE: f64 = 0.01;

/// Sides in the order in which packets pass them.
const SIDES: [&str; 2] = ["ingress", "egress"];

/// Warning of stamps in steps that matter for latencies of this median.
pub(crate) fn coarse(steps_ps: [u64; 2], median_ns: i64, samples: u64) -> Option<Warning> {
    let coarsest_ps = steps_ps[0].max(steps_ps[1]);
    if coarsest_ps <= 1_000 || coarsest_ps as f64 / 1e3 <= FINE * median_ns.unsigned_abs() as f64 {
        return None;
    }
    // A stamp that is cut is early by less than a step: at ingress the latency is too long, at egress too short.
    let [longer_ns, shorter_ns] = steps_ps.map(|ps| (ps.div_ceil(1_000) - 1).cast_signed());
    let less = |ns: i64| if ns == 0 { String::new() } else { format!(" − {}", size(ns)) };
    let more = |ns: i64| if ns == 0 { String::new() } else { format!(" + {}", size(ns)) };
    let text = format!(
        "ingress stamps have steps of {}, egress stamps of {}: if they are cut to these, the true latency is between each value\
         {} and the value{}",
        step(steps_ps[0]),
        step(steps_ps[1]),
        less(longer_ns),
        more(shorter_ns),
    );
    Some(Warning { code: "coarse_stamps", count: samples, text, invalidates: false })
}

/// Of so many samples one may have no latency by chance, such as in a capture of two clocks.
const ONE_WITHOUT: u64 = 100;

/// Warning of samples without latency, whose stamps have steps that no gaps show.
pub(crate) fn without_latency(count: u64, samples: u64) -> Option<Warning> {
    let many = count > 0 && count * ONE_WITHOUT >= samples;
    let text = format!(
        "{} of {} latencies are 0, which no packet can have: the stamps have steps of more than packets take, and each \
         latency is wrong by up to a step",
        grouped(count),
        grouped(samples),
    );
    many.then_some(Warning { code: "coarse_stamps", count, text, invalidates: false })
}

/// A step of stamps: 1 µs, 12.5 ns.
fn step(ps: u64) -> String {
    let ns = ps as f64 / 1e3;
    let (unit, value) = match ns {
        1e6.. => ("ms", ns / 1e6),
        1e3.. => ("µs", ns / 1e3),
        _ => ("ns", ns),
    };
    format!("{} {unit}", (value * 1e3).round() / 1e3)
}

/// Warning of stamps that a tap takes in batches.
pub(crate) fn batched(side: usize, found: &Batches, samples: u64) -> Warning {
    let every = size(found.every_ns);
    let (wrong, holder) = if side == 0 {
        ("short", "the tap held them (interrupt coalescing)")
    } else {
        ("long", "the tap held them (interrupt coalescing), and not the device,")
    };
    let text = format!(
        "{} stamps come in batches of about {:.0}, one every {every}, those of the other tap do not: if {holder} latencies are up \
         to {every} too {wrong}; look at ethtool -c",
        SIDES[side], found.packets,
    );
    Warning { code: "batched_stamps", count: samples, text, invalidates: false }
}
