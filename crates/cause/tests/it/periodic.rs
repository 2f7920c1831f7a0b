//! Periodic causes: what is put into a capture is found in it.

use proptest::prelude::*;
use tailtrim_cause::periodic::explain;
use tailtrim_wire::traffic::{Fraction, Pattern, Schedule};

/// A device that serves a packet in 300 ns (they stay for 3 µs and a little more) and is stopped by interrupts: start of
/// the first one, period, and duration of every n-th one.
pub(crate) struct Interrupts {
    pub(crate) start_ns: i64,
    pub(crate) period_ns: f64,
    pub(crate) durations_ns: Vec<i64>,
}

impl Interrupts {
    /// When the interrupt ends that keeps a packet from being served at this time.
    fn end_ns(&self, at_ns: i64) -> Option<i64> {
        let number = ((at_ns - self.start_ns) as f64 / self.period_ns).floor() as i64;
        let start_ns = self.start_ns + (number as f64 * self.period_ns) as i64;
        let count = self.durations_ns.len() as i64;
        let end_ns = start_ns + self.durations_ns[number.rem_euclid(count) as usize];
        (number >= 0 && at_ns < end_ns).then_some(end_ns)
    }
}

pub(crate) fn run(
    pattern: &str,
    interval_ns: u64,
    run_s: i64,
    interrupts: &[Interrupts],
) -> Vec<(i64, i64)> {
    let interval = Fraction { numerator: u128::from(interval_ns), denominator: 1 };
    let pattern: Pattern = pattern.parse().expect("a pattern");
    let mut free_ns = 0;
    Schedule::new(&pattern, interval, 11)
        .map(|at_ns| at_ns.cast_signed())
        .take_while(|at_ns| *at_ns < run_s * 1_000_000_000)
        .enumerate()
        .map(|(number, at_ns)| {
            let mut served_ns = at_ns.max(free_ns);
            for _ in 0..2 {
                for interrupt in interrupts {
                    served_ns = interrupt.end_ns(served_ns).unwrap_or(served_ns);
                }
            }
            free_ns = served_ns + 300;
            (at_ns, served_ns + 3_000 + (number as i64 * 7919) % 64)
        })
        .collect()
}

#[test]
fn a_tick_and_what_comes_every_third_time() {
    let tick =
        Interrupts { start_ns: 123_456, period_ns: 4e6, durations_ns: vec![5_500, 5_500, 8_200] };
    let found = explain(&run("cbr", 99_921, 30, &[tick]));
    let causes: Vec<(f64, i64, u64)> = found
        .causes
        .iter()
        .map(|cause| (cause.frequency_hz, cause.delay_ns, cause.every))
        .collect();
    let [(tick_hz, tick_ns, 1), (work_hz, work_ns, 3)] = causes[..] else {
        panic!("{causes:?}");
    };
    assert!((tick_hz - 250.0).abs() < 0.01 && (work_hz - 250.0 / 3.0).abs() < 0.01, "{causes:?}");
    assert!((5_000..5_700).contains(&tick_ns) && (7_700..8_400).contains(&work_ns), "{causes:?}");
    assert!(found.causes.iter().all(|cause| cause.sampling.undersampled));
}

#[test]
fn a_cause_that_stands_still_against_the_schedule_is_called_aliased() {
    let tick = Interrupts { start_ns: 398_000, period_ns: 4e6, durations_ns: vec![5_500] };
    let found = explain(&run("cbr", 100_000, 30, &[tick]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz - 250.0).abs() < 0.01, "{cause:?}");
    assert!(cause.sampling.aliased && cause.sampling.beat_hz.is_none(), "{cause:?}");
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn two_clocks_are_two_causes() {
    let tick = Interrupts { start_ns: 100_000, period_ns: 4e6, durations_ns: vec![9_000] };
    let host = Interrupts { start_ns: 333_333, period_ns: 1e9 / 97.3, durations_ns: vec![30_000] };
    let found = explain(&run("poisson", 50_000, 20, &[tick, host]));
    let mut frequencies: Vec<f64> = found.causes.iter().map(|cause| cause.frequency_hz).collect();
    frequencies.sort_by(f64::total_cmp);
    let [slow, fast] = frequencies[..] else { panic!("{:?}", found.causes) };
    assert!((slow - 97.3).abs() < 0.1 && (fast - 250.0).abs() < 0.25, "{frequencies:?}");
}

/// Their common multiple has the same lines: 3,500 and 4,500 Hz were told.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn commensurable_clocks_are_told_apart() {
    let tick = Interrupts { start_ns: 100_000, period_ns: 4e6, durations_ns: vec![10_000] };
    let other = Interrupts { start_ns: 1_333_333, period_ns: 1e7, durations_ns: vec![20_000] };
    let found = explain(&run("poisson", 100_000, 30, &[tick, other]));
    let mut frequencies: Vec<f64> = found.causes.iter().map(|cause| cause.frequency_hz).collect();
    frequencies.sort_by(f64::total_cmp);
    let [slow, fast] = frequencies[..] else { panic!("{:?}", found.causes) };
    assert!((slow - 100.0).abs() < 0.01 && (fast - 250.0).abs() < 0.01, "{frequencies:?}");
}

/// A schedule that stands still against a clock and meets none of its occurrences knows nothing of it.
#[test]
fn a_clock_whose_phases_are_not_met_is_not_covered() {
    let found = explain(&run("cbr", 100_000, 20, &[]));
    let of = |hz: f64| found.limits.iter().find(|limit| limit.frequency_hz == hz).unwrap();
    let tick = of(250.0);
    assert!(tick.longer_than_ns.is_none_or(|ns| ns >= 100_000), "{tick:?}");
    let random = explain(&run("poisson", 100_000, 20, &[]));
    let tick = random.limits.iter().find(|limit| limit.frequency_hz == 250.0).unwrap();
    assert!(tick.longer_than_ns.is_some_and(|ns| ns <= 10_000), "{tick:?}");
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_residual_tick_of_one_hertz_is_found() {
    let tick = Interrupts { start_ns: 100_000, period_ns: 1e9, durations_ns: vec![700_000] };
    let found = explain(&run("poisson", 100_000, 50, &[tick]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz - 1.0).abs() < 0.01, "{cause:?}");
}

/// Packets that are left are faster than the median: not late.
#[test]
fn a_cause_of_most_packets_leaves_none_that_are_late() {
    let stop = Interrupts { start_ns: 100_000, period_ns: 1e7, durations_ns: vec![6_000_000] };
    let mut samples = run("poisson", 250_000, 1, &[stop]);
    for (number, sample) in (0..).zip(samples.iter_mut().step_by(20)) {
        sample.1 += 50_000 + number * 7_919 % 400_000;
    }
    let found = explain(&samples).causes;
    assert!((found[0].frequency_hz - 100.0).abs() < 0.05, "{found:?}");
}

#[test]
fn nothing_is_found_in_nothing() {
    assert!(explain(&[]).causes.is_empty());
    assert!(explain(&[(5, 8)]).causes.is_empty());
    assert!(explain(&run("cbr", 100_000, 5, &[])).causes.is_empty());
    // Late packets at random times have no period.
    let mut samples = run("poisson", 100_000, 20, &[]);
    for (number, sample) in samples.iter_mut().enumerate() {
        let chance = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        if chance.is_multiple_of(300) {
            sample.1 += (chance % 20_000).cast_signed() + 5_000;
        }
    }
    assert_eq!(explain(&samples).causes, []);
}

/// A random case: the peak of the 41st harmonic was the highest, and only 40 were looked at.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_cause_is_found_by_a_high_harmonic() {
    let hz = 122.542_33;
    let tick = Interrupts { start_ns: 73_968, period_ns: 1e9 / hz, durations_ns: vec![12_046] };
    let found = explain(&run("poisson", 42_117, 10, &[tick]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz / hz - 1.0).abs() < 1e-3, "{cause:?}");
}

/// Stalls begin with the first packet of a burst: a batch of four was told, and the tick was not.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn bursts_are_no_batch_of_the_device() {
    let tick =
        Interrupts { start_ns: 100_000, period_ns: 1e9 / 249.988, durations_ns: vec![60_000] };
    let found = explain(&run("burst:4", 100_000, 20, &[tick]));
    assert_eq!(found.batches, []);
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.frequency_hz - 249.988).abs() < 0.01, "{cause:?}");
}

/// 921.6 packets are a simple fraction of their rate, but no whole number: nothing was told at 10.85 Hz.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_clock_near_a_fraction_of_the_packets_rate_is_found() {
    let period_ns = 921.6 * 99_921.0;
    let slow = Interrupts { start_ns: 100_000, period_ns, durations_ns: vec![480_000] };
    let found = explain(&run("cbr", 99_921, 20, &[slow]));
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    assert!((cause.period_ns / period_ns - 1.0).abs() < 1e-4, "{cause:?}");
}

/// The mean of the packets that another cause delays was subtracted, too: packets seemed faster.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_small_cause_beside_a_large_one_makes_packets_slower() {
    let large =
        Interrupts { start_ns: 100_000, period_ns: 1e9 / 116.99, durations_ns: vec![300_000] };
    let small =
        Interrupts { start_ns: 3_900_000, period_ns: 1e9 / 229.47, durations_ns: vec![9_000] };
    let found = explain(&run("poisson", 100_000, 20, &[large, small]));
    assert_eq!(found.causes.len(), 2, "{:?}", found.causes);
    for cause in &found.causes {
        assert!(cause.excess.low_ns > 0.0, "{cause:?}");
        assert!(cause.width.low_ns <= cause.width.value_ns, "{cause:?}");
        assert!(cause.width.value_ns <= cause.width.high_ns, "{cause:?}");
    }
}

/// Where two clocks of one source meet, packets wait longest: what was told first, and alone, was a fraction of both.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn clocks_that_meet_are_not_told_as_their_common_fraction() {
    let tick = Interrupts { start_ns: 100_000, period_ns: 4e6, durations_ns: vec![60_000] };
    let fast = Interrupts { start_ns: 133_000, period_ns: 4e6 / 3.75, durations_ns: vec![45_000] };
    let found = explain(&run("poisson", 100_000, 30, &[tick, fast]));
    let mut rates: Vec<f64> =
        found.causes.iter().filter(|one| one.every == 1).map(|one| one.frequency_hz).collect();
    rates.sort_by(f64::total_cmp);
    let [slow, fast] = rates[..] else { panic!("{:?}", found.causes) };
    assert!((slow - 250.0).abs() < 0.01 && (fast - 937.5).abs() < 0.01, "{rates:?}");
}

/// Every second stall of the faster clock is within one of the slower clock: the slower frequency was told twice.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_clock_that_is_half_hidden_by_a_slower_one_has_its_own_frequency() {
    let slow =
        Interrupts { start_ns: 100_000, period_ns: 4_629_416.0, durations_ns: vec![300_000] };
    let fast = Interrupts { start_ns: 134_000, period_ns: 2_314_708.0, durations_ns: vec![3_000] };
    let found = explain(&run("cbr", 100_001, 10, &[slow, fast]));
    let mut rates: Vec<f64> = found.causes.iter().map(|one| one.frequency_hz).collect();
    rates.sort_by(f64::total_cmp);
    let [slow, fast] = rates[..] else { panic!("{:?}", found.causes) };
    assert!((slow - 216.01).abs() < 0.01 && (fast - 432.02).abs() < 0.02, "{rates:?}");
}

/// Regression test: the schedule folds the ninth multiple of a found clock, which was reported as a clock of 999.9 Hz.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_folded_multiple_of_a_clock_is_not_told() {
    let slow = Interrupts { start_ns: 100_000, period_ns: 1e6, durations_ns: vec![91_000] };
    let fast = Interrupts { start_ns: 352_000, period_ns: 1e9 / 1.5e3, durations_ns: vec![2_700] };
    let other =
        Interrupts { start_ns: 400_000, period_ns: 1e9 / 877.0096, durations_ns: vec![2_500] };
    let found = explain(&run("cbr", 100_001, 20, &[slow, fast, other]));
    let near =
        |hz: f64| found.causes.iter().filter(|one| (one.frequency_hz - hz).abs() < 1.0).count();
    assert_eq!((near(1e3), near(877.0)), (1, 1), "{:?}", found.causes);
}

/// The power of ten stalls among hundreds is above noise at no frequency.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_rare_cause_is_found_among_other_stalls() {
    for (seed, hz, ns) in [(1, 10.6, 6_000), (2, 7.87, 8_000), (3, 30.81, 3_000)] {
        let rare = Interrupts { start_ns: 4_321, period_ns: 1e9 / hz, durations_ns: vec![ns] };
        let mut samples = run("poisson", 99_921, 20, &[rare]);
        // Every 500th packet or so waits for something else, for up to 20 µs.
        for (number, sample) in samples.iter_mut().enumerate() {
            let random = (mixed(seed << 32 | number as u64) >> 33).cast_signed();
            if random % 500 == 0 {
                sample.1 += random / 500 % 20_000;
            }
        }
        let found = explain(&samples);
        let told: Vec<f64> = found.causes.iter().map(|cause| cause.frequency_hz).collect();
        assert!(matches!(told[..], [one] if (one / hz - 1.0).abs() < 1e-4), "{hz} Hz: {told:?}");
    }
}

/// A clock of nearly one in 9,216 packets was taken for a batch of so many.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_slow_clock_is_no_batch() {
    let slow = Interrupts { start_ns: 98_765, period_ns: 1e9 / 1.0824, durations_ns: vec![90_119] };
    let found = explain(&run("cbr", 100_000, 20, &[slow]));
    let told: Vec<f64> = found.causes.iter().map(|cause| cause.frequency_hz).collect();
    assert!(matches!(told[..], [one] if (one / 1.0824 - 1.0).abs() < 1e-4), "{found:?}");
}

/// A few events fit many frequencies: one was told, and it was wrong.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn what_many_frequencies_fit_is_not_told() {
    let rare =
        Interrupts { start_ns: 13_432_238, period_ns: 1e9 / 13.5565, durations_ns: vec![4_033] };
    for interval_ns in [100_001, 99_999, 100_002] {
        let rare = Interrupts { durations_ns: rare.durations_ns.clone(), ..rare };
        let found = explain(&run("cbr", interval_ns, 20, &[rare]));
        for cause in &found.causes {
            let hz = [&[cause.frequency_hz][..], &cause.aliases_hz].concat();
            assert!(hz.iter().any(|hz| (hz / 13.5565 - 1.0).abs() < 1e-3), "{cause:?}");
        }
    }
}

/// By how many intervals of a schedule a clock moves in 10 s against every so many of its packets. Where it hardly does,
/// something of the packets' own recurs in the same way, and no clock is told: 80.34053 Hz comes 3 times in 602.0013 packets
/// of 62,028 ns.
fn moved(period_ns: f64, interval_ns: u64) -> f64 {
    let times = (1..=8).map(|times| {
        let packets = f64::from(times) * period_ns / interval_ns as f64;
        (packets - packets.round()).abs() * 10e9 / (packets * interval_ns as f64)
    });
    times.fold(f64::INFINITY, f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    #[ignore = "simulation: make test-simulations runs it"]
    fn any_period_is_found_within_a_thousandth(
        hz in 40.0_f64..2_000.0,
        start_ns in 0_i64..100_000,
        duration_ns in 6_000_i64..25_000,
        pattern in prop::sample::select(vec!["cbr", "poisson", "jitter:0.2"]),
        interval_ns in 30_000_u64..110_000,
    ) {
        let period_ns = 1e9 / hz;
        prop_assume!(pattern != "cbr" || moved(period_ns, interval_ns) > 3.0);
        let tick = Interrupts { start_ns, period_ns, durations_ns: vec![duration_ns] };
        let found = explain(&run(pattern, interval_ns, 10, &[tick]));
        prop_assume!(found.stalls >= 60);
        prop_assume!(!found.causes.iter().any(|cause| cause.sampling.aliased));
        prop_assert!(
            found.causes.iter().any(|cause| (cause.frequency_hz / hz - 1.0).abs() < 1e-3),
            "{hz} Hz in {found:?}"
        );
    }
}

/// A number without pattern: products of the golden ratio alone recur with a frequency (`SplitMix64`).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Every 129th packet takes longer, or most of these do, with another number after the device was stopped: 1,008.54 Hz was
/// told, which comes 13 times in 129 packets.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn what_recurs_with_packets_is_no_clock() {
    let ring_hz = 1e9 / 99_921.0 / 129.0;
    for (seconds, percent) in [(7, 40), (15, 60), (30, 60), (15, 100), (30, 100)] {
        let mut samples = run("cbr", 99_921, seconds, &[]);
        let stopped = samples.len() * 3 / 5;
        for (number, sample) in samples.iter_mut().enumerate() {
            let random = (mixed(number as u64) >> 33).cast_signed();
            let of_ring = number % 129 == if number < stopped { 63 } else { 73 };
            sample.1 += random % 997;
            if of_ring && random / 997 % 100 < percent {
                sample.1 += 10_000 + random % 1_999;
            } else if random / 997 % 20 == 0 {
                sample.1 += random % 9_001;
            }
        }
        for cause in explain(&samples).causes {
            // That of the ring itself stands still against the schedule, which is told.
            let ring = (cause.frequency_hz - ring_hz).abs() < 0.01 && cause.sampling.aliased;
            assert!(ring && percent == 100, "{seconds} s, {percent} %: {cause:?}");
        }
    }
}
