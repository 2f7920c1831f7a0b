use std::hash::BuildHasher;

use proptest::prelude::*;

use super::*;

/// Values on both sides of every border: zero, the end of the window, the ends of `i64`.
fn value() -> impl Strategy<Value = i64> {
    let window = DENSE as i64;
    prop_oneof![
        4 => 0..50_i64,
        2 => -20..20_i64,
        2 => window - 5..window + 5,
        1 => any::<i64>(),
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
    ]
}

fn histogram_of(values: &[i64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&v| histogram.record(v));
    histogram
}

fn pairs_of(sorted: &[i64]) -> Vec<(i64, u64)> {
    let runs = sorted.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len() as u64)).collect()
}

proptest! {
    #[test]
    fn agrees_with_a_sorted_list(mut values in prop::collection::vec(value(), 0..200)) {
        let histogram = histogram_of(&values);
        values.sort_unstable();
        prop_assert_eq!(histogram.count(), values.len() as u64);
        prop_assert_eq!(histogram.is_empty(), values.is_empty());
        prop_assert_eq!(histogram.min(), values.first().copied());
        prop_assert_eq!(histogram.max(), values.last().copied());
        prop_assert_eq!(histogram.sorted(), pairs_of(&values));
        prop_assert_eq!(histogram.distinct(), pairs_of(&values).len());
    }

    #[test]
    fn merging_is_recording_both(
        a in prop::collection::vec(value(), 0..80),
        b in prop::collection::vec(value(), 0..80),
    ) {
        let mut merged = histogram_of(&a);
        merged.merge(&histogram_of(&b));
        let (mut all, mut moved) = (Histogram::new(), histogram_of(&b));
        for values in [&mut histogram_of(&a), &mut moved, &mut Histogram::around_zero()] {
            all.take_all(values);
            prop_assert_eq!((values.count(), values.sorted()), (0, Vec::new()));
        }
        prop_assert_eq!((all.count(), all.sorted()), (merged.count(), merged.sorted()));
        let both = histogram_of(&[b, a].concat());
        prop_assert_eq!(&merged, &both);
        prop_assert_eq!(merged.count(), both.count());
        prop_assert_eq!(Histogram::from_pairs(both.sorted()), both);
    }

    #[test]
    fn removing_takes_exactly_one(
        mut values in prop::collection::vec(value(), 0..80),
        wanted in prop::collection::vec(value(), 0..80),
    ) {
        let mut histogram = histogram_of(&values);
        for v in wanted {
            let at = values.iter().position(|&w| w == v);
            prop_assert_eq!(histogram.remove(v), at.is_some());
            at.map(|i| values.swap_remove(i));
        }
        prop_assert_eq!(&histogram, &histogram_of(&values));
        prop_assert_eq!(histogram.count(), values.len() as u64);
    }
}

#[test]
fn counts_saturate_instead_of_wrapping() {
    let histogram = Histogram::from_pairs([(1, u64::MAX), (1, 5), (-3, 7), (9, 0)]);
    assert_eq!(histogram.sorted(), [(-3, 7), (1, u64::MAX)]);
    assert_eq!(histogram.count(), u64::MAX);
}

#[test]
fn the_hasher_spreads_regular_values() {
    // Stamps of 10 or 12.5 ns resolution, and powers of two, must not share buckets.
    let steps = [1, 10, 25, 1 << 12, 1 << 20, 1 << 32];
    for (step, hasher) in steps.into_iter().zip(std::iter::repeat_with(IntegerHash::default)) {
        let mut buckets: Vec<u64> =
            (0..1024_i64).map(|i| hasher.hash_one(131_072 + i * step) & 1023).collect();
        buckets.sort_unstable();
        buckets.dedup();
        assert!(buckets.len() > 400, "step {step}: {} buckets", buckets.len());
    }
}

#[test]
fn too_many_values_are_rounded_whatever_their_order() {
    let value = |at: usize| (at as i64 + 1) * 1_000_003;
    let values = 0..=EXACT;
    let mut upwards = Histogram::new();
    values.clone().for_each(|at| upwards.record(value(at)));
    let (mut early, mut late) = (Histogram::new(), Histogram::new());
    values.clone().rev().for_each(|at| {
        if at % 3 == 0 { &mut early } else { &mut late }.record(value(at));
    });
    assert!(upwards.is_rounded() && !early.is_rounded() && !late.is_rounded());
    early.merge(&late);
    assert_eq!(early, upwards);
    assert!(upwards.sparse.len() < EXACT);
    let near = |exact: i64, kept: i64| (exact - kept).unsigned_abs() <= exact.unsigned_abs() >> 17;
    let ranks = upwards.sorted().into_iter().flat_map(|(ns, n)| (0..n).map(move |_| ns));
    assert!(ranks.zip(values).all(|(ns, at)| near(value(at), ns)));
    assert!(upwards.remove(value(7)));
    let told = serde_json::to_string(&Histogram { rounded: true, ..Histogram::new() }).unwrap();
    assert!(serde_json::from_str::<Histogram>(&told).unwrap().is_rounded());
    for edge in [0, 131_071, 131_072, i64::MAX, i64::MIN, -131_072, -5_000_000_000] {
        for digits in [DIGITS, FEW_DIGITS] {
            let once = rounded(edge, digits);
            assert_eq!(rounded(once, digits), once, "{edge}");
        }
    }
}

#[test]
fn a_million_values_of_a_slow_tail_stay_small() {
    // Different values from 131 µs to 10 s, as many in each octave.
    let value = |at: usize| (131_072.0 * (at as f64 / 1e6 * 76_294.0_f64.ln()).exp()) as i64;
    let mut small = Histogram::small();
    (0..1_000_000).for_each(|at| small.record(value(at)));
    assert!(small.is_rounded());
    assert_eq!(small.count(), 1_000_000);
    let bytes = small.dense.capacity() * 8 + small.sparse.capacity() * (16 + 1) * 8 / 7;
    assert!(bytes < 8 << 20, "{bytes}");
    let near = |exact: i64, kept: i64| (exact - kept).abs() as f64 <= exact as f64 * 0.000_25;
    let ranks = small.sorted().into_iter().flat_map(|(ns, n)| (0..n).map(move |_| ns));
    assert!(ranks.zip(0..).all(|(ns, at)| near(value(at), ns)));
    // The most that a minute can have: 2,048 values in each octave of 63 bits.
    let mut all = Histogram::small();
    for octave in 17..63 {
        (0..4_096).for_each(|at| all.record((1 << octave) + (at << (octave - 12))));
    }
    assert!(all.sparse.len() <= 94_208, "{}", all.sparse.len());
}
