//! Clocks of periodic causes: fractions of a clock, and clocks that wander.

use crate::periodic::{Interrupts, run};
use tailtrim_cause::periodic::explain;

/// The halves of a capture told 125 Hz of a tick of 250 Hz, without a word of that.
#[test]
fn every_second_tick_is_told_as_that() {
    let tick = Interrupts { start_ns: 123_456, period_ns: 4e6, durations_ns: vec![8_200, 0] };
    let found = explain(&run("poisson", 99_921, 20, &[tick]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz - 125.0).abs() < 0.01, "{cause:?}");
    assert_eq!(cause.clock_hz, Some(250.0));
    let other = Interrupts { start_ns: 123_456, period_ns: 1e9 / 97.3, durations_ns: vec![9_000] };
    let found = explain(&run("poisson", 99_921, 20, &[other]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert_eq!(cause.clock_hz, None);
}

/// A mean frequency without error was told of a clock that wanders around it.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_clock_that_wanders_is_told_as_that() {
    let mut samples = run("cbr", 99_921, 30, &[]);
    for sample in &mut samples {
        // Up to 17 ppm fast or slow, 80 µs early or late.
        let turn = std::f64::consts::TAU * sample.0 as f64 / 30e9;
        let at_ns = sample.0 as f64 + 8e4 * turn.sin();
        let into_ns = at_ns.rem_euclid(1e9 / 945.25) as i64;
        sample.1 += (20_000 - into_ns).max(0);
    }
    let found = explain(&samples);
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!(cause.wanders && (cause.frequency_hz - 945.25).abs() < cause.error_hz, "{cause:?}");
    assert!(cause.purity > 0.8, "{cause:?}");
}

/// Regression test: a clock delayed the next packet by 2.8 µs whenever it came. That looked like clocks of 2,265.66 and
/// 2,190.63 Hz: fractions of sums with the packets' rate.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn the_packet_behind_a_clock_is_of_that_clock() {
    let (period_ns, stall_ns) = (1e9 / 945.25, 18_000.0);
    for seconds in [7, 15] {
        let mut samples = run("cbr", 99_921, seconds, &[]);
        let mut last = -1.0;
        for sample in &mut samples {
            // It wanders by 15 ppm.
            let turn = std::f64::consts::TAU * sample.0 as f64 / 30e9;
            let turns = (sample.0 as f64 + 8e4 * turn.sin()) / period_ns;
            let into_ns = turns.fract() * period_ns;
            if into_ns < stall_ns {
                sample.1 += (stall_ns - into_ns) as i64;
            } else if turns.floor() > last {
                sample.1 += 2_800 + sample.0 % 300;
                last = turns.floor();
            }
        }
        let found = explain(&samples);
        let [cause] = &found.causes[..] else { panic!("{seconds} s: {:?}", found.causes) };
        assert!((cause.frequency_hz - 945.25).abs() < 0.05, "{seconds} s: {cause:?}");
    }
}
