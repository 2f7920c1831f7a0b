//! Bounds of random runs agree with each other, and few episodes support nothing.

use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use super::*;
use crate::Histogram;

fn band_of(latencies_ns: &[i64], undelivered: Undelivered) -> Band {
    let (mut histogram, mut blocks) = (Histogram::new(), BlockCounts::new());
    histogram.record_all(latencies_ns.iter().copied());
    blocks.record_all(latencies_ns);
    Band::new(&Ranked::new(&histogram), &blocks, undelivered, Probability::P95)
}

fn p(text: &str) -> Probability {
    text.parse().unwrap()
}

/// A part of a run: so many packets between a latency and another one, a power of a uniform deviate apart.
type Stretch = (usize, i64, i64, i32);

fn run_of(stretches: &[Stretch], resolution_ns: i64, seed: u64) -> Vec<i64> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut latencies_ns = Vec::new();
    for &(packets, from_ns, spread_ns, power) in stretches {
        for _ in 0..packets {
            let ns = from_ns + (spread_ns as f64 * uniform().powi(power)) as i64;
            latencies_ns.push(ns / resolution_ns * resolution_ns);
        }
    }
    latencies_ns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bounds_never_step_back(
        stretches in prop::collection::vec((1..3_000_usize, 0..3_000_i64, 1..100_000_i64, 1..20_i32), 1..12),
        repeated in 1..4_usize,
        resolution_ns in prop_oneof![Just(1), Just(13), Just(1_000)],
        seed in any::<u64>(),
        count in prop_oneof![Just(0), 0..5_000_u64],
        effect in 0.5..300.0_f64,
        freedom in 1.0..300.0_f64,
        asked in prop::collection::vec(1..1_000_000_u64, 1..60),
    ) {
        let latencies_ns = run_of(&stretches.repeat(repeated), resolution_ns, seed);
        let all = latencies_ns.len() as u64 + count;
        let dependence = Dependence { effect, freedom };
        let band = band_of(&latencies_ns, Undelivered { count, dependence });
        let mut asked: Vec<Probability> =
            asked.iter().map(|millionths| p(&format!("0.{millionths:06}"))).collect();
        asked.extend(decades(all).chain(near_zero(all)));
        asked.sort_unstable();
        let mut last = [0, 0];
        for p in asked {
            let Interval { low, high } = band.at(p).interval;
            let bounds = [low.unwrap_or(0), high.unwrap_or(all + 1)];
            prop_assert!(bounds[0] >= last[0] && bounds[1] >= last[1], "{p}: {last:?} {bounds:?}");
            prop_assert!(bounds[0] <= p.rank(all) && p.rank(all) <= bounds[1], "{p}: {bounds:?}");
            last = bounds;
        }
    }
}

/// States of so many packets each, the later one 3 µs slower.
fn states(good: usize, bad: usize, cycles: usize) -> Band {
    let cycle = [(good, 50_000, 2_000, 1), (bad, 53_000, 2_000, 1)];
    band_of(&run_of(&cycle.repeat(cycles), 1, 7), Undelivered::NONE)
}

#[test]
fn three_episodes_support_nothing_that_they_touch() {
    let band = states(9_500, 500, 3);
    for quantile in ["0.5", "0.9", "0.99", "0.999"] {
        assert!(!band.at(p(quantile)).supported, "{quantile}: {:?}", band.at(p(quantile)));
    }
}

#[test]
fn fifty_episodes_support_them() {
    let band = states(9_500, 500, 50);
    for quantile in ["0.5", "0.9", "0.99"] {
        assert!(band.at(p(quantile)).supported, "{quantile}: {:?}", band.at(p(quantile)));
    }
}

#[test]
fn independent_samples_support_what_ten_of_them_exceed() {
    let latencies_ns = run_of(&[(20_000, 0, 1_000_000_000, 1)], 1, 3);
    let band = band_of(&latencies_ns, Undelivered::NONE);
    assert!(band.at(p("0.999")).supported && !band.at(p("0.9996")).supported);
    assert!(band.at(p("0.001")).supported && !band.at(p("0.0004")).supported);
    // Equal latencies have no order that could tell anything else.
    let equal = band_of(&[700; 20_000], Undelivered::NONE);
    assert!(equal.at(p("0.999")).supported && !equal.at(p("0.9996")).supported);
    assert!(!band_of(&[], Undelivered::NONE).at(Probability::P50).supported);
}

#[test]
fn more_confidence_takes_as_many_episodes_as_bound_a_quantile() {
    assert!(supports(10.0, Probability::P95) && !supports(9.9, Probability::P95));
    // ln(2 / 10⁻⁶) = 14.5
    assert!(supports(15.0, p("0.999999")) && !supports(14.9, p("0.999999")));
    assert!(!supports(1e18, Probability::ONE));
}

#[test]
fn losses_in_bursts_are_fewer_episodes() {
    let latencies_ns = run_of(&[(20_000, 0, 1_000_000, 1)], 1, 5);
    let supported = |effect| {
        let dependence = Dependence { effect, freedom: 50.0 };
        band_of(&latencies_ns, Undelivered { count: 1_000, dependence }).at(p("0.99")).supported
    };
    assert!(supported(1.0) && !supported(200.0));
}
