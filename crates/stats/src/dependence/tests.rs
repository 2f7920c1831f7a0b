//! Design effects of samples whose dependence is known.

use proptest::prelude::*;

use super::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

fn blocks_of(values: impl IntoIterator<Item = i64>) -> BlockCounts {
    let mut blocks = BlockCounts::new();
    blocks.record_all(&values.into_iter().collect::<Vec<_>>());
    blocks
}

/// The design effect of what lies above a threshold, at 95 %.
fn effect_of(values: impl IntoIterator<Item = i64>, threshold_ns: i64) -> f64 {
    let values: Vec<i64> = values.into_iter().collect();
    effect_above(&values, threshold_ns, Probability::P95)
}

fn effect_above(values: &[i64], threshold_ns: i64, confidence: Probability) -> f64 {
    let above = values.iter().filter(|value| **value > threshold_ns).count() as u64;
    blocks_of(values.iter().copied()).design_effect(threshold_ns, above, confidence)
}

/// Pseudo-random but fixed: above 1 µs with the given probability in thousandths.
fn independent(n: u64, thousandths: u64) -> impl Iterator<Item = i64> {
    let hash = |i: u64| (i ^ (i >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = move |i| hash(hash(i) >> 17) >> 40;
    (0..n).map(move |i| if mixed(i) % 1000 < thousandths { 5000 } else { 500 })
}

#[test]
fn levels_ascend_and_are_narrow() {
    let mut last = 0;
    for octave in 0..33 {
        for step in 0..256_i64 {
            let value = (1_i64 << octave) + ((step << octave) >> 8);
            let here = level(value);
            assert!(here >= last && here < LEVELS, "{value}");
            assert!(level(value + value / 60 + 1) > here, "{value}");
            last = here;
        }
    }
    for value in 0..127 {
        assert_eq!(level(value), value as usize);
    }
    assert_eq!(level(i64::MIN), 0);
    assert_eq!(level(-1), 0);
    assert_eq!(level((1 << 33) - 1), LEVELS - 2);
    assert_eq!(level(1 << 33), LEVELS - 1);
    assert_eq!(level(i64::MAX), LEVELS - 1);
}

#[test]
fn memory_stays_within_two_megabytes() {
    assert_eq!(BlockCounts::new().counts.capacity(), 0);
    let blocks = blocks_of(0..100_000);
    assert!(blocks.counts.capacity() * size_of::<u32>() <= 2 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn blocks_are_consecutive_samples(values in prop::collection::vec(-5..300_i64, 0..3000)) {
        let blocks = blocks_of(values.iter().copied());
        let complete = blocks.rows().count();
        prop_assert!(complete <= MAX_BLOCKS as usize && complete >= values.len().min(128));
        let edge = level(100);
        let length = blocks.grid.length as usize;
        let want: Vec<u64> = values
            .chunks_exact(length)
            .map(|block| block.iter().filter(|v| level(**v) >= edge).count() as u64)
            .collect();
        prop_assert_eq!(blocks.at_or_above(edge), want);
    }

    #[test]
    fn stretches_add_up_in_any_grouping(
        values in prop::collection::vec(-5..300_i64, 0..3000),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        joins in prop::collection::vec(any::<prop::sample::Index>(), 6),
    ) {
        let mut borders: Vec<usize> = cuts.iter().map(|cut| cut.index(values.len() + 1)).collect();
        borders.extend([0, values.len()]);
        borders.sort_unstable();
        let stretch = |from: usize, to: usize| {
            let mut stretch = BlockCounts::behind(from as u64);
            stretch.record_all(&values[from..to]);
            stretch
        };
        let mut parts: Vec<_> = borders.windows(2).map(|ends| stretch(ends[0], ends[1])).collect();
        for join in joins {
            if parts.len() > 1 {
                let at = join.index(parts.len() - 1);
                let later = parts.remove(at + 1);
                parts[at].append(&later);
            }
        }
        prop_assert_eq!(&parts[0], &stretch(0, values.len()));
    }

    #[test]
    fn recording_many_is_recording_each(lengths in prop::collection::vec(0..700_u64, 0..12)) {
        let (mut bulk, mut single) = (BlockCounts::new(), BlockCounts::new());
        for (value, n) in lengths.into_iter().enumerate() {
            bulk.record_n(value as i64 * 90, n);
            single.record_all(&vec![value as i64 * 90; n as usize]);
        }
        prop_assert_eq!(bulk, single);
    }
}

/// Failed where the first of them has no samples and lies behind an odd number of blocks.
#[test]
fn a_stretch_without_samples_takes_any_that_follows() {
    for behind in 1..2 * MAX_BLOCKS {
        let samples = 5 * MAX_BLOCKS as usize;
        let mut later = BlockCounts::behind(behind);
        later.record_all(&vec![100; samples]);
        let mut stretch = BlockCounts::behind(behind);
        stretch.append(&later);
        assert!(stretch == later, "{behind}");
    }
}

#[test]
fn independent_samples_have_no_effect() {
    for thousandths in [1, 20, 500] {
        let effect = effect_of(independent(300_000, thousandths), 1000);
        assert!((1.0..1.35).contains(&effect), "{thousandths}: {effect}");
    }
}

/// The median of runs, since one run in a hundred is taken for one of twice the effect.
#[test]
fn clusters_of_k_have_an_effect_of_k() {
    for k in [3_usize, 10, 40] {
        let mut effects = [0, 1, 2, 3, 4].map(|seed| {
            let mut random = Pcg64Mcg::seed_from_u64(seed);
            let clusters = (0..60_000).map(|_| random.next_u64() % 1000 < 20);
            let values = clusters.map(|is_late| if is_late { 5000 } else { 500 });
            effect_of(values.flat_map(|value| std::iter::repeat_n(value, k)), 1000)
        });
        effects.sort_unstable_by(f64::total_cmp);
        let ratio = effects[2] / k as f64;
        assert!((0.8..1.4).contains(&ratio), "{k}: {effects:?}");
    }
}

#[test]
fn more_confidence_raises_the_effect_of_few_clusters() {
    let clustered = independent(1_000, 20).flat_map(|v| std::iter::repeat_n(v, 40));
    let values: Vec<i64> = clustered.collect();
    let effect = |confidence: &str| effect_above(&values, 1000, confidence.parse().unwrap());
    let [least, usual, most] = ["0.8", "0.95", "0.999"].map(effect);
    assert!(least < usual && usual < most, "{least} {usual} {most}");
}

#[test]
fn clusters_longer_than_a_block_are_seen() {
    // 200 blocks of 16 samples; clusters of 64 samples span four blocks.
    let clustered = independent(50, 200).flat_map(|v| std::iter::repeat_n(v, 64));
    let values: Vec<i64> = clustered.collect();
    assert_eq!(blocks_of(values.iter().copied()).grid.length, 16);
    let effect = effect_of(values, 1000);
    assert!((40.0..120.0).contains(&effect), "{effect}");
}

#[test]
fn a_drifting_body_does_not_count_as_tail() {
    // The body alternates slowly inside the level of 4096..4160 and below it; the tail is
    // independent of that, and its quantile lies in the body's level.
    let tail = independent(200_000, 20).zip(0..);
    let drifting = tail.map(|(v, i)| match (v, i / 20_000 % 3) {
        (5000, _) => 5000,
        (_, 0) => 4090,
        _ => 4100,
    });
    let effect = effect_of(drifting, 4100);
    assert!(effect < 1.5, "{effect}");
}

#[test]
fn one_burst_beyond_the_level_is_too_few_to_tell() {
    // Twenty in a row lie beyond the threshold's level, two thousand independent ones in it.
    let burst = std::iter::repeat_n(9000, 20);
    let effect = effect_of(independent(100_000, 20).chain(burst).chain(independent(999, 20)), 4999);
    assert!(effect < 3.0, "{effect}");
}

/// The relative variance of the variance of a Poisson number per block, of so many in all.
#[test]
fn telling_samples_give_the_effect_to_a_quarter() {
    let error = |above: u64| (2.0 / 127.0 + 1.0 / above as f64).sqrt();
    assert!(error(BlockCounts::TELLING) < 0.25 && error(10) > 0.33);
    let (blocks, seeds, telling) = (128, 2_000_u64, BlockCounts::TELLING);
    let mut ratios = Vec::new();
    let mut state = 7_u64;
    for _ in 0..seeds {
        let mut counts = vec![0.0_f64; blocks];
        for _ in 0..telling {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            counts[(state >> 57) as usize] += 1.0;
        }
        let mean = telling as f64 / blocks as f64;
        let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
        ratios.push(squares / (blocks - 1) as f64 / mean);
    }
    let spread = ratios.iter().map(|ratio| (ratio - 1.0).powi(2)).sum::<f64>() / seeds as f64;
    assert!(spread.sqrt() < error(telling) + 0.01, "{}", spread.sqrt());
}

#[test]
fn without_evidence_the_effect_is_one() {
    assert_eq!(effect_of([], 5), 1.0);
    assert_eq!(effect_of(0..15, 5), 1.0);
    assert_eq!(effect_of([700; 5000], 700), 1.0);
    assert_eq!(effect_of([700; 5000], i64::MAX), 1.0);
    // One in ten, exactly periodic: more regular than chance.
    let periodic = (0..50_000).map(|i| if i % 10 == 0 { 9000 } else { 10 });
    assert_eq!(effect_of(periodic, 5000), 1.0);
}

#[test]
fn runs_are_clusters() {
    assert_eq!(runs(&[]), 0);
    assert_eq!(runs(&[7]), 1);
    assert_eq!(runs(&[1, 2, 3, 7, 8, 20]), 3);
    assert_eq!(runs(&[1, 1, 2, u64::MAX - 1, u64::MAX]), 2);
}
