//! Latencies of made-up devices whose quantiles are known: what comparisons are tried on.

#![allow(dead_code, unreachable_pub, reason = "each user of this module needs a part of it")]

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Median of all processes in nanoseconds, without the shift.
const MEDIAN_NS: f64 = 10_000.0;

/// Dependence of a latency on those before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Process {
    /// Not at all.
    Independent,
    /// As independent ones, on stamps with a resolution of 250 ns: most latencies tie.
    Tied,
    /// One in a hundred packets meets a stall that delays this many after it on average, each a
    /// little less: the tail comes in clusters.
    Clustered(f64),
    /// As a Gaussian process with this correlation from packet to packet.
    Autocorrelated(f64),
    /// Not at all, and the tail is Pareto's with this exponent from the median on.
    Pareto(f64),
    /// Not at all, but their level wanders away: a random walk that has this relative standard
    /// deviation at the end of the run.
    Wandering(f64),
    /// Not at all, but for 300 packets on average of 3,000 the device is slower by a fifth.
    Regimes,
}

/// One uniform number in (0, 1).
fn uniform(random: &mut Pcg64) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn normal(random: &mut Pcg64) -> f64 {
    let radius = (-2.0 * uniform(random).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// Log-normal latencies with a tail: the same marginal law whatever the dependence of the body.
fn latency(z: f64) -> f64 {
    MEDIAN_NS * (0.15 * z + 0.05 * z.max(0.0).powi(2)).exp()
}

/// `samples` latencies in the order of arrival, each `scale` times as long as the process says.
pub fn latencies(process: Process, samples: usize, scale: f64, seed: u64) -> Vec<i64> {
    let mut random = Pcg64::seed_from_u64(seed);
    let whole = |value: f64| (value * scale).round() as i64;
    match process {
        Process::Independent => (0..samples).map(|_| whole(latency(normal(&mut random)))).collect(),
        Process::Tied => {
            let tied = |value: i64| value / 250 * 250;
            (0..samples).map(|_| tied(whole(latency(normal(&mut random))))).collect()
        }
        Process::Pareto(exponent) => {
            let mut next = || whole(MEDIAN_NS * (2.0 * uniform(&mut random)).powf(-1.0 / exponent));
            (0..samples).map(|_| next()).collect()
        }
        Process::Autocorrelated(correlation) => {
            let mut z = normal(&mut random);
            let fresh = (1.0 - correlation * correlation).sqrt();
            let mut next = || {
                z = correlation * z + fresh * normal(&mut random);
                whole(latency(z))
            };
            (0..samples).map(|_| next()).collect()
        }
        Process::Wandering(spread) => {
            let step = spread / (samples as f64).sqrt();
            let mut level = 0.0;
            let mut next = || {
                level += step * normal(&mut random);
                whole(latency(normal(&mut random)) * f64::exp(level))
            };
            (0..samples).map(|_| next()).collect()
        }
        Process::Regimes => {
            let mut slow = false;
            let mut next = || {
                slow ^= uniform(&mut random) < if slow { 1.0 / 300.0 } else { 1.0 / 2_700.0 };
                whole(latency(normal(&mut random)) * if slow { 1.2 } else { 1.0 })
            };
            (0..samples).map(|_| next()).collect()
        }
        Process::Clustered(length) => clustered(samples, length, scale, &mut random),
    }
}

/// Stalls of exponential length, 20 µs on average: the packets behind one wait for its rest.
fn clustered(samples: usize, length: f64, scale: f64, random: &mut Pcg64) -> Vec<i64> {
    let rate = 0.01 / length;
    let less = 20_000.0 / length;
    let mut waits = 0.0_f64;
    let mut next = || {
        waits = (waits - less).max(0.0);
        if uniform(random) < rate {
            waits = waits.max(-uniform(random).ln() * 20_000.0);
        }
        ((latency(normal(random)) + waits) * scale).round() as i64
    };
    (0..samples).map(|_| next()).collect()
}

/// Repetitions whose level differs from run to run by this relative standard deviation.
pub fn repetitions(
    process: Process,
    runs: usize,
    samples: usize,
    scale: f64,
    spread: f64,
    seed: u64,
) -> Vec<Vec<i64>> {
    let mut random = Pcg64::seed_from_u64(seed ^ 0x5eed);
    (0..runs as u64)
        .map(|run| {
            let level = (spread * normal(&mut random)).exp();
            latencies(process, samples, scale * level, seed.wrapping_mul(1_000_003) + run)
        })
        .collect()
}
