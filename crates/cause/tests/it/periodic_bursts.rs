//! Periodic causes in bursts that keep a device busy: its queue carries a stall to the packets behind.

use tailtrim_cause::periodic::{Periodic, PeriodicCause, explain};

/// A device that takes 14 µs for a packet.
const SERVICE_NS: f64 = 14_000.0;
const RUN_NS: f64 = 20e9;

/// Pseudo-random numbers between 0 and 1 (an additive recurrence, scrambled).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Bursts of so many packets 150 ns apart, 10,007 packets/s, in a device that sends up to `batch` packets together. It
/// stands still where `stalled` says from and until when, given a time.
fn run(
    burst: usize,
    batch: usize,
    seed: u64,
    stalled: impl Fn(f64) -> Option<(f64, f64)>,
) -> Vec<(i64, i64)> {
    let mut random = Random(seed);
    let interval_ns = burst as f64 * 99_930.0;
    let mut samples = Vec::new();
    let mut free_ns = 0.0_f64;
    for number in 0..(RUN_NS / interval_ns) as usize {
        let mut waiting: Vec<f64> =
            (0..burst).map(|place| number as f64 * interval_ns + 150.0 * place as f64).collect();
        while !waiting.is_empty() {
            let mut at_ns = free_ns.max(waiting[0]);
            let here = waiting.iter().take_while(|came_ns| **came_ns <= at_ns).count();
            let together: Vec<f64> = waiting.drain(..here.clamp(1, batch)).collect();
            let mut left_ns = together.len() as f64 * SERVICE_NS * (0.97 + 0.06 * random.uniform());
            // Works until the next stall begins, and on when it has ended.
            while let Some((from_ns, until_ns)) =
                stalled(at_ns).filter(|next| next.0 < at_ns + left_ns && next.1 > at_ns)
            {
                left_ns -= (from_ns - at_ns).max(0.0);
                at_ns = until_ns;
            }
            free_ns = at_ns + left_ns;
            for (place, came_ns) in together.iter().enumerate() {
                let out_ns = free_ns + 4_000.0 + 100.0 * place as f64;
                samples.push((*came_ns as i64, out_ns as i64));
            }
        }
    }
    samples
}

/// A clock that stalls the device for so long.
fn clock(hz: f64, long_ns: f64) -> impl Fn(f64) -> Option<(f64, f64)> {
    let period_ns = 1e9 / hz;
    move |at_ns| {
        let number = ((at_ns - long_ns - 777_000.0) / period_ns).floor() + 1.0;
        let from_ns = 777_000.0 + number * period_ns;
        Some((from_ns, from_ns + long_ns))
    }
}

/// Mean excess of the packets of the best window of this width, folded at a frequency, beyond that of the others; by the
/// usual latency of a packet's place.
fn folded_ns(samples: &[(i64, i64)], burst: usize, cause: &PeriodicCause) -> f64 {
    let mut usual: Vec<Vec<i64>> = vec![Vec::new(); burst];
    for (number, sample) in samples.iter().enumerate() {
        usual[number % burst].push(sample.1 - sample.0);
    }
    let usual: Vec<i64> = usual
        .into_iter()
        .map(|mut some| {
            some.sort_unstable();
            some[some.len() / 2]
        })
        .collect();
    let mut folded: Vec<(f64, f64)> = samples
        .iter()
        .enumerate()
        .map(|(number, sample)| {
            let excess_ns = (sample.1 - sample.0 - usual[number % burst]) as f64;
            ((sample.0 - samples[0].0) as f64 % cause.period_ns, excess_ns)
        })
        .collect();
    folded.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = folded.len();
    let all_ns: f64 = folded.iter().map(|one| one.1).sum();
    let (mut from, mut sum_ns, mut best_ns) = (0, 0.0, f64::MIN);
    for to in 0..count {
        sum_ns += folded[to].1;
        while folded[to].0 - folded[from].0 > cause.width.value_ns {
            sum_ns -= folded[from].1;
            from += 1;
        }
        let here = to - from + 1;
        if here > 500 {
            let rest_ns = (all_ns - sum_ns) / (count - here) as f64;
            best_ns = best_ns.max(sum_ns / here as f64 - rest_ns);
        }
    }
    best_ns
}

fn only(found: &Periodic) -> &PeriodicCause {
    let [cause] = &found.causes[..] else { panic!("{:?}", found.causes) };
    cause
}

/// The packets behind the tick leave at their burst's end instead of the tick's: nothing was told of bursts of 32.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_tick_is_found_in_bursts_that_keep_the_device_busy() {
    for (burst, batch) in [(8, 1), (8, 4), (32, 1), (32, 4), (32, 32)] {
        let samples = run(burst, batch, 5, clock(249.988, 20_000.0));
        let found = explain(&samples);
        let cause = only(&found);
        assert!((cause.frequency_hz - 249.988).abs() < 0.01, "{burst} {batch} {cause:?}");
        let folded_ns = folded_ns(&samples, burst, cause);
        let ratio = cause.excess.value_ns / folded_ns;
        assert!((0.67..1.33).contains(&ratio), "{burst} {batch} {folded_ns} {cause:?}");
    }
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn bursts_without_a_clock_have_no_cause() {
    for (burst, batch) in [(8, 1), (8, 4), (32, 1), (32, 4), (32, 32)] {
        assert_eq!(explain(&run(burst, batch, 7, |_| None)).causes, [], "{burst} {batch}");
        // A stall each 12 ms on average, at a random time of each.
        let random = |at_ns: f64| {
            let number = (at_ns / 12e6).floor();
            let from_ns = number * 12e6 + 11e6 * Random(number as u64).uniform();
            Some((from_ns, from_ns + 40_000.0))
        };
        assert_eq!(explain(&run(burst, batch, 7, random)).causes, [], "{burst} {batch}");
    }
}

/// Any clock is told as it is, as an alias that names it, or not at all.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn no_other_frequency_is_told_in_busy_bursts() {
    let mut random = Random(11);
    let mut told = 0;
    // Those that take longer once, the others five times.
    let some = [(8, 8), (32, 4), (32, 32)].repeat(4);
    let all = [(8, 1), (8, 8), (32, 1), (32, 4), (32, 32)].into_iter().chain(some);
    for (burst, batch) in all {
        let hz = 20.0 * 50_f64.powf(random.uniform());
        let long_ns = 5_000.0 * 8_f64.powf(random.uniform());
        let found = explain(&run(burst, batch, 3, clock(hz, long_ns)));
        for cause in found.causes.iter().filter(|cause| cause.every == 1) {
            let all = [&[cause.frequency_hz][..], &cause.aliases_hz].concat();
            let right = all.iter().any(|one| (one / hz - 1.0).abs() < 1e-3);
            assert!(right, "{hz} Hz, {long_ns} ns, {burst} {batch}: {cause:?}");
        }
        told += usize::from(!found.causes.is_empty());
    }
    assert!(told >= 13, "{told}");
}

/// A clock whose phase wanders, near a multiple of the rate of bursts or of packets: its mean frequency or nothing.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_clock_that_wanders_near_the_schedule_is_told_right_or_not() {
    for (burst, hz) in
        [(32, 940.0), (32, 938.5), (8, 1_251.2), (8, 2_500.0), (1, 940.0), (1, 1_000.6)]
    {
        let wanders = |at_ns: f64| {
            let moved_ns = 1.5e5 * (std::f64::consts::TAU * at_ns / RUN_NS).sin();
            clock(hz, 20_000.0)(at_ns - moved_ns)
                .map(|(from_ns, until_ns)| (from_ns + moved_ns, until_ns + moved_ns))
        };
        let found = explain(&run(burst, 4, 3, wanders));
        for cause in &found.causes {
            let error_hz = cause.error_hz.max(5e-5 * hz);
            assert!((cause.frequency_hz - hz).abs() < error_hz, "{burst} {hz} {cause:?}");
        }
    }
}
