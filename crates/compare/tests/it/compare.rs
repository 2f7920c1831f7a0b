//! Comparisons: against naive calculations, and against made-up devices whose truth is known.

use crate::processes::{Process, latencies, repetitions};
use proptest::prelude::*;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use tailtrim_compare::{
    Comparison, Counted, LOST_NS, Options, Repetition, Resampling, Verdict, compare, losses,
};
use tailtrim_stats::Probability;

fn options() -> Options {
    let quantiles = [Probability::P50, Probability::P90, Probability::P99];
    Options { quantiles: quantiles.to_vec(), draws: 999, ..Options::default() }
}

fn side(runs: &[Vec<i64>]) -> Vec<Repetition> {
    runs.iter().map(|run| Repetition::of(run)).collect()
}

fn compared(a: &[i64], b: &[i64]) -> Comparison {
    compare(&[Repetition::of(a)], &[Repetition::of(b)], &options())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn values_are_nearest_rank_however_samples_come(
        a in prop::collection::vec(1..400_i64, 1..300),
        b in prop::collection::vec(1..400_i64, 1..300),
        cut in 0..300_usize,
    ) {
        let whole = compared(&a, &b);
        let cut = cut.min(b.len());
        let pieces = Repetition::new(b.len() as u64, [&b[..cut], &b[cut..]]);
        let pieced = compare(&[Repetition::of(&a)], &[pieces], &options());
        prop_assert_eq!(&whole, &pieced);
        for (row, divisor) in whole.quantiles.iter().zip([2, 10, 100]) {
            for (values, got) in [(&a, &row.a), (&b, &row.b)] {
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let beyond = sorted.len() / divisor;
                prop_assert_eq!(got.value_ns, Some(sorted[sorted.len() - 1 - beyond.min(sorted.len() - 1)]));
            }
        }
        prop_assert_eq!(whole.a.samples, a.len() as u64);
        prop_assert_eq!(whole.b.max_ns, b.iter().max().copied());
    }

    #[test]
    fn bounds_lie_around_the_ratio_and_no_side_is_special(seed in 0..1_000_u64, scale in 0.8..1.25_f64) {
        let a = latencies(Process::Clustered(8.0), 20_000, 1.0, 2 * seed);
        let b = latencies(Process::Clustered(8.0), 20_000, scale, 2 * seed + 1);
        let (forth, back) = (compared(&a, &b), compared(&b, &a));
        for (row, other) in forth.quantiles.iter().zip(&back.quantiles) {
            let ratio = row.ratio.unwrap();
            prop_assert!((ratio * other.ratio.unwrap() - 1.0).abs() < 1e-9);
            prop_assert!(row.low.is_none_or(|low| low <= ratio));
            prop_assert!(row.high.is_none_or(|high| ratio <= high));
            // "Worse" was once said beside an interval from 0.64 to 6.1.
            match row.verdict {
                Verdict::Worse => prop_assert!(row.low.is_none_or(|low| low > 1.0)),
                Verdict::Better => prop_assert!(row.high.is_none_or(|high| high < 1.0)),
                _ => {}
            }
            if let (Some(alone), Some(corrected)) = (row.p_value, row.adjusted_p) {
                // Never less than alone, never more than by Bonferroni (within the draws).
                prop_assert!(corrected >= alone && corrected <= 3.0 * alone + 0.01);
                // Other deals: p-values agree within the noise of 999 draws, five times 0.04.
                prop_assert!((alone - other.p_value.unwrap()).abs() < 0.2);
            }
        }
    }

    #[test]
    fn equal_sides_differ_by_nothing(values in prop::collection::vec(1..5_000_i64, 400..2_000)) {
        for row in compared(&values, &values).quantiles {
            prop_assert_eq!(row.ratio, Some(1.0));
            prop_assert!(!row.verdict.differs());
        }
    }
}

/// Resamples blocks of samples and takes quantiles of them: what the region stands for.
#[test]
fn intervals_agree_with_resampling_samples() {
    let sides = [0, 1].map(|s| latencies(Process::Clustered(5.0), 16_000, 1.0, 77 + s));
    let mut random = Pcg64::seed_from_u64(5);
    let mut resampled = |values: &[i64]| {
        let blocks: Vec<&[i64]> = values.chunks(250).collect();
        let draw = |_| blocks[(random.next_u64() % blocks.len() as u64) as usize];
        let mut drawn: Vec<i64> = (0..blocks.len()).flat_map(draw).copied().collect();
        drawn.sort_unstable();
        [drawn[8_000] as f64, drawn[14_400] as f64, drawn[15_840] as f64]
    };
    let mut ratios = [const { Vec::new() }; 3];
    for _ in 0..1_500 {
        let (a, b) = (resampled(&sides[0]), resampled(&sides[1]));
        (0..3).for_each(|i| ratios[i].push(b[i] / a[i]));
    }
    for (row, ratios) in compared(&sides[0], &sides[1]).quantiles.iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios[37], ratios[1_462]);
        let close = |x: f64, y: f64| (x - y).abs() < 0.35 * (high - low);
        assert!(close(row.low.unwrap(), low), "p{}: {:?} {low}", row.p, row.low);
        assert!(close(row.high.unwrap(), high), "p{}: {:?} {high}", row.p, row.high);
    }
}

/// Shares of the comparisons with any verdict, and of those in which each quantile alone would have got one.
fn false_positives(
    processes: [Process; 2],
    runs: usize,
    samples: usize,
    comparisons: u64,
) -> (f64, [f64; 3]) {
    let (mut any, mut alone) = (0, [0; 3]);
    for seed in 0..comparisons {
        let [a, b] = [0, 1].map(|s| {
            side(&repetitions(processes[s], runs, samples, 1.0, 0.0, 2 * seed + s as u64))
        });
        let found = compare(&a, &b, &options());
        any +=
            u32::from(found.quantiles.iter().any(|row| row.adjusted_p.is_some_and(|p| p <= 0.05)));
        for (row, alone) in found.quantiles.iter().zip(&mut alone) {
            *alone += u32::from(row.p_value.is_some_and(|p| p <= 0.05));
        }
    }
    let share = |count: u32| f64::from(count) / comparisons as f64;
    (share(any), alone.map(share))
}

/// The quick version of `examples/compare_errors.rs`; 400 comparisons know a rate within 1.1 %.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn false_positives_are_as_rare_as_asked() {
    for process in [Process::Independent, Process::Clustered(8.0), Process::Autocorrelated(0.9)] {
        let (any, alone) = false_positives([process; 2], 1, 30_000, 400);
        assert!((0.01..0.08).contains(&any), "{process:?}: {any}");
        for rate in alone {
            assert!((0.01..0.085).contains(&rate), "{process:?}: {alone:?}");
        }
    }
    let (any, _) = false_positives([Process::Autocorrelated(0.9); 2], 3, 5_000, 400);
    assert!(any < 0.08, "repetitions: {any}");
}

/// Blocks of sides that depend differently are no longer alike: by deals alone it was 0.1025.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn false_positives_are_rare_where_one_side_depends() {
    let processes = [Process::Independent, Process::Autocorrelated(0.97)];
    let (any, alone) = false_positives(processes, 1, 30_000, 400);
    assert!(any < 0.08, "{any}: {alone:?}");
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn what_could_have_been_shown_is_shown_that_often() {
    let (mut shown, mut tried) = (0, 0);
    for seed in 0..150 {
        let draw = |scale, seed| latencies(Process::Clustered(8.0), 30_000, scale, seed);
        let equal = compared(&draw(1.0, 3 * seed), &draw(1.0, 3 * seed + 1));
        let Some(ratio) = equal.quantiles[1].worse_from else { continue };
        let slower = compared(&draw(1.0, 3 * seed), &draw(ratio, 3 * seed + 2));
        tried += 1;
        shown += i32::from(slower.quantiles[1].verdict == Verdict::Worse);
    }
    // Of such a side 4 % have fewer than ten episodes at p90; 130 are three deviations below.
    let power = f64::from(shown) / f64::from(tried);
    assert!(tried > 130 && (0.68..0.92).contains(&power), "{power} of {tried}");
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn a_run_to_run_difference_is_no_difference_of_the_sides() {
    // The runs' levels differ by 5 %: with one run a side this is taken for one of the sides, with five it is not.
    let sides = |runs: usize, seed: u64| {
        [0, 1].map(|s| {
            side(&repetitions(Process::Independent, runs, 20_000, 1.0, 0.05, 2 * seed + s))
        })
    };
    let fooled = |runs| {
        (0..60)
            .filter(|seed| {
                let [a, b] = sides(runs, *seed);
                compare(&a, &b, &options())
                    .quantiles
                    .iter()
                    .any(|row| row.verdict == Verdict::Worse)
            })
            .count()
    };
    assert!(fooled(1) > 20);
    assert!(fooled(5) < 6);
    let [a, b] = sides(5, 1);
    let found = compare(&a, &b, &options());
    assert_eq!((found.resampling, found.a.units), (Resampling::Repetitions, 5));
}

#[test]
fn a_margin_is_a_margin() {
    let a = latencies(Process::Independent, 100_000, 1.0, 1);
    let b = latencies(Process::Independent, 100_000, 1.02, 2);
    let [one, two] = [Repetition::of(&a), Repetition::of(&b)];
    let median = |margin| {
        let options = Options { margin, ..options() };
        let forth = compare(std::slice::from_ref(&one), std::slice::from_ref(&two), &options);
        let back = compare(std::slice::from_ref(&two), std::slice::from_ref(&one), &options);
        (forth.quantiles[0].verdict, back.quantiles[0].verdict)
    };
    assert_eq!(median(0.0), (Verdict::Worse, Verdict::Better));
    assert_eq!(median(0.01), (Verdict::Worse, Verdict::Better));
    let within = Verdict::NoDifference { beyond: 0.03 };
    assert_eq!(median(0.03), (within, within));
}

#[test]
fn lost_packets_are_later_than_any() {
    // A loses its two hundredths that would have been latest, B delivers all: what A delivered looks
    // faster, what it was sent does not.
    for seed in 0..5 {
        let whole = latencies(Process::Independent, 50_000, 1.0, 2 * seed);
        let b = latencies(Process::Independent, 50_000, 1.0, 2 * seed + 1);
        let mut sorted = whole.clone();
        sorted.sort_unstable();
        let late = sorted[49_000];
        let delivered: Vec<i64> = whole.iter().copied().filter(|ns| *ns < late).collect();
        let a: Vec<i64> = whole.iter().map(|ns| if *ns < late { *ns } else { LOST_NS }).collect();
        for margin in [0.0, 0.01] {
            let rows = |a: &[i64], b: &[i64], quantiles: &[Probability]| {
                let options = Options { margin, quantiles: quantiles.to_vec(), ..options() };
                compare(&[Repetition::of(a)], &[Repetition::of(b)], &options).quantiles
            };
            let p99 = |a: &[i64], b: &[i64]| rows(a, b, &[Probability::P99]).remove(0);
            assert_eq!(p99(&delivered, &b).verdict, Verdict::Worse, "{seed}");
            let sent = p99(&a, &b);
            assert_eq!(sent.verdict, Verdict::Better, "{seed}");
            assert_eq!((sent.ratio, sent.a.value_ns), (None, Some(LOST_NS)));
            assert_eq!(p99(&b, &a).verdict, Verdict::Worse, "{seed}");
            assert!(!p99(&a, &a).verdict.differs(), "{seed}");
            // Before the lost ones, it is as if they had been late.
            let p90 = [Probability::P90];
            assert_eq!(rows(&a, &b, &p90), rows(&whole, &b, &p90), "{seed}");
        }
    }
}

/// Both halves of a run whose level rises are halves of one run: what rises within them may go on
/// from one to the other. Such a run is a few episodes at most, which seldom support a verdict; as many runs as are needed do.
#[test]
fn a_drift_is_no_difference() {
    let rising = |scale: f64, seed: u64| -> Vec<i64> {
        let flat = latencies(Process::Independent, 60_000, scale, seed);
        let level = |i: usize| 1.0 + 0.03 * i as f64 / 60_000.0;
        flat.iter().enumerate().map(|(i, ns)| (*ns as f64 * level(i)).round() as i64).collect()
    };
    for seed in 0..8 {
        let run = rising(1.0, seed);
        let halves = compared(&run[..30_000], &run[30_000..]);
        let Verdict::NotDecided { needed: Some(runs) } = halves.quantiles[0].verdict else {
            panic!("{seed}: {:?}", halves.quantiles[0].verdict)
        };
        assert!(runs >= 4 && halves.drifts, "{seed}: {runs}");
        let several = |runs: u64, scale: f64, from: u64| -> Vec<Repetition> {
            (from..from + runs).map(|seed| Repetition::of(&rising(scale, seed))).collect()
        };
        let verdict = compared(&run, &rising(1.5, 100 + seed)).quantiles[0].verdict;
        let Verdict::NotDecided { needed: Some(runs) } = verdict else {
            assert_eq!(verdict, Verdict::Worse, "{seed}");
            continue;
        };
        let repeated = compare(&several(runs, 1.0, 200), &several(runs, 1.5, 300), &options());
        assert_eq!(repeated.quantiles[0].verdict, Verdict::Worse, "{seed}: {runs}");
    }
}

#[test]
fn few_samples_support_little_and_none_nothing() {
    let few = latencies(Process::Independent, 500, 1.0, 1);
    let rows = compared(&few, &few).quantiles;
    assert_eq!([rows[0].supported, rows[2].supported], [true, false]);
    // So many times as many samples support it.
    let Verdict::NotDecided { needed: Some(runs) } = rows[2].verdict else {
        panic!("{:?}", rows[2].verdict)
    };
    assert_eq!(runs, rows[2].samples_needed.div_ceil(rows[2].a.effective_samples).max(4));
    for row in compared(&[], &few).quantiles {
        let nothing = Verdict::NotDecided { needed: None };
        assert_eq!((row.verdict, row.supported, row.ratio), (nothing, false, None));
    }
}

#[test]
fn tied_quantiles_are_equal() {
    // Seven of ten packets tie at the median of both; the shares below differ clearly.
    let tied = |below: i64| {
        (0..50_000)
            .map(|i| {
                if i % 100 < below {
                    900
                } else if i % 100 < below + 70 {
                    1000
                } else {
                    1100
                }
            })
            .collect::<Vec<i64>>()
    };
    let row = compared(&tied(20), &tied(12)).quantiles.remove(0);
    assert_eq!((row.ratio, row.verdict), (Some(1.0), Verdict::NoDifference { beyond: 0.0 }));
}

#[test]
fn losses_in_bursts_are_fewer_than_they_look() {
    let second = |lost| Counted { lost, known: 10_000 };
    let spread: Vec<Counted> = (0..30).map(|_| second(2)).collect();
    let burst: Vec<Counted> = (0..30).map(|i| second(if i == 7 { 60 } else { 0 })).collect();
    let none = vec![second(0); 30];
    let verdict = |a: &Vec<Counted>, b: &Vec<Counted>| {
        losses(std::slice::from_ref(a), std::slice::from_ref(b), Probability::P95).verdict
    };
    assert_eq!(verdict(&none, &spread), Verdict::Worse);
    assert_eq!(verdict(&spread, &none), Verdict::Better);
    let Verdict::NotDecided { needed: Some(runs) } = verdict(&none, &burst) else {
        panic!("{:?}", verdict(&none, &burst))
    };
    assert!(runs > 1, "{runs}");
    assert_eq!(verdict(&none, &none), Verdict::NotDecided { needed: None });
    let many: Vec<Counted> = (0..30).map(|_| second(500)).collect();
    let Verdict::NoDifference { beyond } = verdict(&many, &many) else {
        panic!("{:?}", verdict(&many, &many))
    };
    // Two counts of 15,000: 1.96 · √(2 / 15,000) = 2.3 %.
    assert!((0.02..0.03).contains(&beyond), "{beyond}");
}

/// Runs whose levels differ by 2 %, and sides that differ by nothing.
fn alike(runs: usize, seed: u64) -> Verdict {
    let [a, b] = [0, 1]
        .map(|s| side(&repetitions(Process::Independent, runs, 2_000, 1.0, 0.02, 2 * seed + s)));
    compare(&a, &b, &options()).quantiles[0].verdict
}

/// No permutation of three and three runs has p below 0.1, so that "no difference" was said of what nobody could
/// have seen.
#[test]
fn three_runs_a_side_never_show_that_there_is_no_difference() {
    for seed in 0..20 {
        let verdict = alike(3, seed);
        let told = matches!(verdict, Verdict::NotDecided { needed: Some(4..) });
        assert!(told || verdict.differs(), "{seed}: {verdict:?}");
    }
    let told = (0..20).filter(|seed| matches!(alike(6, *seed), Verdict::NoDifference { .. }));
    assert!(told.count() >= 17);
}

/// Three runs of 60 µs, and three of which one was throttled: 19 ms.
#[test]
fn a_difference_that_one_run_has_is_not_decided() {
    let usual = |seed| latencies(Process::Independent, 2_000, 6.0, seed);
    let throttled = latencies(Process::Independent, 2_000, 2_000.0, 9);
    let [a, b] = [side(&[usual(1), usual(2), usual(3)]), side(&[usual(4), usual(5), throttled])];
    let rows = compare(&a, &b, &options()).quantiles;
    assert!(
        rows.iter().all(|row| matches!(row.verdict, Verdict::NotDecided { needed: Some(4..) }))
    );
}

/// The quick version of `examples/verdicts.rs`; 200 comparisons know a rate of 5 % within 1.5 %.
#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn each_verdict_is_right_as_often_as_it_says() {
    let verdict = |runs, scale, seed: u64| {
        let [a, b] = [(1.0, 0), (scale, 1)].map(|(scale, s)| {
            side(&repetitions(Process::Independent, runs, 1_000, scale, 0.1, 2 * seed + s))
        });
        compare(&a, &b, &options()).quantiles[0].verdict
    };
    let (mut wrong, mut decided, mut tried) = ([0; 3], 0, 0);
    for seed in 0..200 {
        wrong[0] += u32::from(verdict(5, 1.0, seed).differs());
        for (place, scale) in [1.1, 1.2].into_iter().enumerate() {
            match verdict(5, scale, 1_000 + seed) {
                Verdict::NoDifference { beyond } => {
                    wrong[1 + place] += u32::from(beyond < scale - 1.0);
                }
                Verdict::NotDecided { needed: Some(runs @ ..=40) } if tried < 60 => {
                    let more = verdict(runs as usize, scale, 5_000 + seed);
                    tried += 1;
                    decided += u32::from(!matches!(more, Verdict::NotDecided { .. }));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.iter().all(|count| *count <= 16), "{wrong:?} of 200");
    assert!(tried >= 40 && decided * 10 >= tried * 7, "{decided} of {tried}");
}
