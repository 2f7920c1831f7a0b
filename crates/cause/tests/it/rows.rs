//! Late packets by cause: each is in one row, and rows add up.

use crate::worlds::{Sources, world};
use proptest::prelude::*;
use tailtrim_cause::periodic::{Periodic, explain};
use tailtrim_cause::rows::{Kind, LatePackets, Row, Struck, rows};

/// The sums of rows are those of the late packets, one by one.
fn add_up(samples: &[(i64, i64)], found: &Periodic) -> Result<(), TestCaseError> {
    let sum = |of: fn(&Row) -> i64| found.rows.iter().map(of).sum::<i64>();
    let packets = found.late_packets.cast_signed();
    prop_assert_eq!(sum(|row| row.packets.cast_signed()), packets);
    prop_assert_eq!(sum(|row| row.stalls.cast_signed()), found.stalls.cast_signed());
    prop_assert_eq!(found.late.len() as i64, packets);
    prop_assert!(found.late.windows(2).all(|pair| pair[0].packet < pair[1].packet), "each once");
    for (number, row) in found.rows.iter().enumerate() {
        let of_row = found.late.iter().filter(|one| one.row == number);
        prop_assert_eq!(row.packets, of_row.clone().count() as u64);
        prop_assert_eq!(row.excess_ns, of_row.map(|one| one.excess_ns).sum::<i64>());
        let causes = found.causes.len() + found.batches.len();
        prop_assert_eq!(row.cause.is_some(), matches!(row.kind, Kind::Cause | Kind::Behind));
        prop_assert!(row.cause.is_none_or(|cause| cause < causes));
    }
    let mut gaps: Vec<i64> = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort_unstable();
    // Of packets in bursts, what they wait for each other is taken out first.
    if gaps[gaps.len() / 2] > 2_000 {
        let late = samples.iter().map(|(in_ns, out_ns)| out_ns - in_ns);
        let late = late.filter(|ns| *ns > found.late_above_ns).map(|ns| ns - found.median_ns);
        let told: Vec<i64> = found.late.iter().map(|one| one.excess_ns).collect();
        prop_assert_eq!(told, late.collect::<Vec<i64>>());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn rows_add_up_to_all_late_packets(seed in 0_u64..1 << 40) {
        let world = world(seed, 1e9, Sources::Any);
        add_up(&world.samples, &explain(&world.samples))?;
    }

    /// Whatever sources are said to have struck, and in whatever order packets leave.
    #[test]
    fn rows_add_up_whatever_struck(
        latencies in prop::collection::vec(-50_i64..20_000, 1..300),
        sources in prop::collection::vec(
            (1_000.0..1e6, 0.0..30_000.0, 0.0..3_000.0, prop::collection::vec(0_usize..300, 0..9)),
            0..4,
        ),
    ) {
        let samples: Vec<(i64, i64)> =
            (0..).zip(&latencies).map(|(n, ns)| (n * 3_000, n * 3_000 + 5_000 + ns)).collect();
        let causes: Vec<Struck> = sources
            .into_iter()
            .map(|(period_ns, before_ns, within_ns, packets)| Struck {
                ends_ns: (0..50).map(|number| f64::from(number) * period_ns).collect(),
                before_ns,
                within_ns,
                packets,
                longest_ns: i64::MAX,
            })
            .collect();
        let late = LatePackets { samples: &samples, median_ns: 6_000, threshold_ns: 9_000 };
        let (rows, packets) = rows(late, &causes, 0..samples.len());
        let excess: Vec<i64> =
            latencies.iter().filter(|ns| **ns > 4_000).map(|ns| ns - 1_000).collect();
        prop_assert_eq!(rows.iter().map(|row| row.packets).sum::<u64>(), excess.len() as u64);
        prop_assert_eq!(rows.iter().map(|row| row.stalls).sum::<u64>(), excess.len() as u64);
        let told: Vec<i64> = packets.iter().map(|one| one.excess_ns).collect();
        prop_assert_eq!(rows.iter().map(|row| row.excess_ns).sum::<i64>(), told.iter().sum::<i64>());
        prop_assert_eq!(told, excess);
    }
}

#[test]
#[ignore = "simulation: make test-simulations runs it"]
fn rows_of_whole_runs_add_up() {
    for seed in 0..50 {
        let world = world(seed, 20e9, Sources::Any);
        add_up(&world.samples, &explain(&world.samples)).unwrap();
    }
}

/// Packets of 1 µs of service that come at these times, in a device that stands still in these intervals.
fn served(arrivals: &[i64], stalls: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut free_ns = 0;
    let serve = |at_ns: &i64| {
        let mut begin_ns = free_ns.max(*at_ns);
        for (from_ns, until_ns) in stalls {
            if (*from_ns..*until_ns).contains(&begin_ns) {
                begin_ns = *until_ns;
            }
        }
        free_ns = begin_ns + 1_000;
        (*at_ns, free_ns)
    };
    arrivals.iter().map(serve).collect()
}

/// The row of each late packet: what they have in common, and the cause.
fn told(samples: &[(i64, i64)], causes: &[Struck]) -> Vec<(Kind, Option<usize>)> {
    let late = LatePackets { samples, median_ns: 1_000, threshold_ns: 1_000 };
    let (rows, packets) = rows(late, causes, std::iter::empty());
    packets.iter().map(|one| (rows[one.row].kind, rows[one.row].cause)).collect()
}

/// A cause that ends at these times and takes up to so long.
fn ends(ends_ns: &[f64], before_ns: f64) -> Struck {
    Struck { ends_ns: ends_ns.to_vec(), before_ns, within_ns: 100.0, ..Struck::default() }
}

#[test]
fn packets_queue_behind_the_one_that_a_cause_delayed() {
    // 10 µs, in which three packets came; the fourth came when it was over, and waits for them.
    let samples = served(
        &[0, 100_000, 104_000, 108_000, 110_500, 130_000],
        &[(99_000, 110_000), (200_000, 210_000)],
    );
    let behind = (Kind::Behind, Some(0));
    let tick = ends(&[110_000.0, 210_000.0], 11_000.0);
    assert_eq!(told(&samples, &[tick]), [(Kind::Cause, Some(0)), behind, behind, behind]);
}

#[test]
fn a_short_cause_within_a_long_stall_is_not_its_cause() {
    let samples = served(&[0, 100_000, 700_000], &[(99_000, 600_000)]);
    let tick: Vec<f64> = (0..10).map(|number| f64::from(number) * 100_000.0).collect();
    assert_eq!(told(&samples, &[ends(&tick, 4_000.0)]), [(Kind::NotPeriodic, None)]);
}

#[test]
fn what_two_causes_delay_alike_is_of_several() {
    let samples = served(&[0, 100_000, 200_000], &[(100_000, 110_000), (110_000, 120_000)]);
    let both = [ends(&[110_000.0], 10_000.0), ends(&[120_000.0], 10_000.0)];
    assert_eq!(told(&samples, &both), [(Kind::Several, None)]);
    // The second one has most of it.
    let samples = served(&[0, 107_000, 200_000], &[(100_000, 110_000), (110_000, 120_000)]);
    assert_eq!(told(&samples, &both), [(Kind::Cause, Some(1))]);
}

#[test]
fn packets_that_overtake_do_not_hide_what_the_slow_one_waited_for() {
    let mut samples: Vec<(i64, i64)> = (0..20).map(|n| (n * 2_000, n * 2_000 + 1_000)).collect();
    samples[5].1 = 30_000;
    assert_eq!(told(&samples, &[ends(&[29_000.0], 20_000.0)]), [(Kind::Cause, Some(0))]);
}

/// Ticks of host and guest: neither is a part of the other.
#[test]
fn two_clocks_of_one_frequency_are_told_with_their_distance() {
    let at = |phase_ns: i64, at_ns: i64| (at_ns - phase_ns).rem_euclid(4_000_000);
    let samples: Vec<(i64, i64)> = (0..200_000_i64)
        .map(|number| {
            let at_ns = number * 99_921;
            let longest = [100_000, 1_500_000]
                .map(|phase_ns| (9_000 - at(phase_ns, at_ns)).max(0))
                .into_iter()
                .max();
            (at_ns, at_ns + 3_000 + number * 7_919 % 64 + longest.unwrap_or(0))
        })
        .collect();
    let found = explain(&samples);
    let [apart] = &found.phase_differences[..] else { panic!("{found:?}") };
    let (first, second) = apart.causes;
    assert_eq!((found.causes.len(), first, second), (2, 0, 1));
    let ns = apart.apart_ns.min(4e6 - apart.apart_ns);
    assert!((ns - 1.4e6).abs() < 1_000.0 && apart.moved_ns < 1_000.0, "{apart:?}");
    let of_causes = found.rows.iter().filter(|row| row.kind == Kind::Cause);
    assert!(of_causes.clone().all(|row| row.packets > 100), "{:?}", found.rows);
    assert_eq!(of_causes.map(|row| row.packets).sum::<u64>(), found.late_packets);
}
