//! Captures by chance, of which everything is known.

use super::ledger::by_ledger;
use super::naive::naive;
use super::{Arrival, LONG, MS, START_NS, US, options, pcap, pcap_of_length, run, try_run};
use crate::support::{How, SECOND_NS};
use proptest::prelude::*;
use std::ops::Range;
use tailtrim_stats::{Histogram, Probability, Spread};
use tailtrim_tail::analysis::{Options, Sample};

/// Behaviour of a made packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Leaves after so many ns.
    Delivered(i64),
    /// Leaves, and then again so many ns later.
    Copied(i64, i64),
    Lost,
    /// Enters twice before anything leaves.
    Twice,
    /// Leaves after between one and two windows.
    Beyond(i64),
    /// Leaves after more than two windows.
    Never(i64),
    /// Leaves without having entered.
    Alien,
}

/// Packets at two taps, with the behaviour of each.
#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) ingress: Vec<(i64, u32)>,
    pub(super) egress: Vec<(i64, u32)>,
    pub(super) kinds: Vec<Kind>,
}

fn kinds() -> impl Strategy<Value = Kind> {
    let latency = || prop_oneof![6 => 10 * US..60 * US, 2 => 1..40 * MS, 1 => Just(20 * US)];
    prop_oneof![
        30 => latency().prop_map(Kind::Delivered),
        2 => (latency(), 1..5 * MS).prop_map(|(latency, later)| Kind::Copied(latency, later)),
        2 => Just(Kind::Lost),
        1 => Just(Kind::Twice),
        1 => (50 * MS..100 * MS).prop_map(Kind::Beyond),
        1 => (100 * MS..300 * MS).prop_map(Kind::Never),
        1 => Just(Kind::Alien),
    ]
}

fn worlds() -> impl Strategy<Value = World> {
    worlds_of(1..500)
}

/// Worlds of so many packets.
pub(super) fn worlds_of(packets: Range<usize>) -> impl Strategy<Value = World> {
    let gap = prop_oneof![5 => 1..300 * US, 1 => 0..30 * MS, 1 => Just(100 * US)];
    let steps = prop::collection::vec((gap, kinds()), packets);
    let ends = (0..40_u32, 0..40_u32);
    (steps, ends).prop_map(|(steps, (first, last))| {
        let mut world = World::default();
        let mut now_ns = START_NS;
        for ((gap_ns, kind), id) in steps.into_iter().zip(0..) {
            now_ns += gap_ns;
            if !matches!(kind, Kind::Alien) {
                world.ingress.push((now_ns, id));
            }
            let mut leave = |after_ns| world.egress.push((now_ns + after_ns, id));
            match kind {
                Kind::Delivered(latency) | Kind::Beyond(latency) | Kind::Never(latency) => {
                    leave(latency);
                }
                Kind::Copied(latency, later) => {
                    leave(latency);
                    leave(latency + later);
                }
                Kind::Lost => {}
                Kind::Twice => {
                    leave(200 * US);
                    leave(300 * US);
                    world.ingress.push((now_ns + 50 * US, id));
                }
                Kind::Alien => leave(0),
            }
            world.kinds.push(kind);
        }
        world.ingress.sort_by_key(|packet| packet.0);
        world.egress.sort_by_key(|packet| packet.0);
        // One capture starts late, the other ends early: the numbers are of packets.
        let first = (first.saturating_sub(20) as usize).min(world.ingress.len());
        world.ingress.drain(..first);
        let last = (last.saturating_sub(20) as usize).min(world.egress.len());
        world.egress.truncate(world.egress.len() - last);
        world
    })
}

/// ⌈p·n⌉-th smallest, 1-based, nothing for ranks beyond the list.
fn at_quantile(sorted: &[i64], p: Probability, n: u64) -> Option<i64> {
    let rank = (u128::from(p.numerator()) * u128::from(n)).div_ceil(u128::from(p.denominator()));
    sorted.get(usize::try_from(rank).unwrap().checked_sub(1)?).copied()
}

fn spread_of(histogram: &Histogram) -> Spread {
    let sorted: Vec<i64> = histogram
        .sorted()
        .into_iter()
        .flat_map(|(value, count)| std::iter::repeat_n(value, count as usize))
        .collect();
    let at = |p: &str| at_quantile(&sorted, p.parse().unwrap(), sorted.len() as u64);
    Spread {
        min: sorted.first().copied(),
        p50: at("0.5"),
        p99: at("0.99"),
        p999: at("0.999"),
        max: sorted.last().copied(),
        iqr: at("0.75").zip(at("0.25")).map(|(high, low)| high - low),
    }
}

fn pairs_of(samples: &[Sample]) -> Vec<(i64, i64)> {
    samples.iter().map(|sample| (sample.ingress_ns, sample.egress_ns)).collect()
}

fn check(world: &World, options: &Options) {
    let files = (pcap_of_length(&world.ingress, LONG), pcap_of_length(&world.egress, LONG));
    let files = (files.0.as_slice(), files.1.as_slice());
    let (analysis, samples) = try_run(files, How::default(), Arrival::Mapped, options).unwrap();
    let expected = naive(world, options);
    let summary = &analysis.summary;
    assert_eq!(summary.ingress, expected.ingress);
    assert_eq!(summary.egress, expected.egress);
    assert_eq!(summary.samples, expected.samples.len() as u64);
    assert_eq!(pairs_of(&samples), expected.samples);
    assert_eq!(analysis.ingress_gaps.sorted(), expected.ingress_gaps.sorted());
    assert_eq!(analysis.egress_gaps.sorted(), expected.egress_gaps.sorted());
    assert_eq!(summary.gap_ns.ingress, spread_of(&expected.ingress_gaps));
    assert_eq!(summary.gap_ns.egress, spread_of(&expected.egress_gaps));
    assert_eq!(analysis.seconds, expected.seconds);

    let latencies: Vec<i64> = expected.samples.iter().map(|(i, e)| e - i).collect();
    let variation = latencies.windows(2).map(|pair| (pair[1] - pair[0], 1));
    let variation = Histogram::from_pairs(variation);
    assert_eq!(analysis.delay_variation.sorted(), variation.sorted());
    assert_eq!(summary.delay_variation_ns, spread_of(&variation));

    let mut ranked: Vec<(i64, u64)> = latencies.iter().copied().zip(0..).collect();
    ranked.sort_by_key(|&(latency, index)| (std::cmp::Reverse(latency), index));
    ranked.truncate(options.worst);
    let worst: Vec<(i64, u64)> =
        analysis.worst.iter().map(|worst| (worst.sample.latency_ns(), worst.index)).collect();
    assert_eq!(worst, ranked);
    for worst in &analysis.worst {
        assert_eq!(samples[worst.index as usize], worst.sample);
    }
    assert_eq!(summary.worst.count, ranked.len() as u64);
    assert_eq!(summary.worst.from_ns, ranked.last().map(|packet| packet.0));

    let mut sorted = latencies;
    sorted.sort_unstable();
    let undelivered = expected.ingress.lost + expected.ingress.beyond_window;
    assert_eq!(summary.latency_ns.min, sorted.first().copied());
    assert_eq!(summary.latency_ns.max, sorted.last().copied());
    let quantiles = summary.latency_ns.quantiles.iter().zip(&summary.delivery_adjusted_ns);
    for (delivered, adjusted) in quantiles {
        let n = sorted.len() as u64;
        assert_eq!(delivered.p, adjusted.p);
        assert_eq!(delivered.value, at_quantile(&sorted, delivered.p, n));
        assert_eq!(adjusted.value, at_quantile(&sorted, adjusted.p, n + undelivered));
    }
    let trimmed_lost = summary.warnings.iter().find(|warning| warning.code == "trimmed_lost");
    assert_eq!(trimmed_lost.map_or(0, |warning| warning.count), expected.trimmed_lost);

    // The ledger of an engine and the native matcher give the same summary.
    let text = serde_json::to_string(summary).unwrap();
    assert_eq!(by_ledger(files, options, &analysis), text);
    // Nor does it how the bytes arrive.
    for arrival in [Arrival::Piped, Arrival::ByteByByte] {
        let (other, others) = try_run(files, How::default(), arrival, options).unwrap();
        assert_eq!(serde_json::to_string(&other.summary).unwrap(), text);
        assert_eq!(other.seconds, analysis.seconds);
        assert_eq!(others, samples);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    #[ignore = "simulation: make test-simulations runs it"]
    fn agrees_with_what_was_made(world in worlds(), watched_to_the_end in any::<bool>()) {
        check(&world, &Options { watched_to_the_end, ..options() });
    }

    #[test]
    #[ignore = "simulation: make test-simulations runs it"]
    fn agrees_with_what_was_made_and_trimmed(
        world in worlds(),
        trim_ns in prop_oneof![Just(5 * MS), Just(40 * MS), Just(SECOND_NS)],
    ) {
        // Without a match nothing says where the trim would end.
        let matched = world.egress.iter().any(|(egress_ns, id)| {
            let mut entered = world.ingress.iter().filter(|packet| packet.1 == *id);
            let first = entered.next();
            entered.next().is_none() && first.is_some_and(|packet| egress_ns - packet.0 < 50 * MS)
        });
        prop_assume!(matched);
        check(&world, &Options { trim_ns, ..options() });
    }

    #[test]
    fn the_order_in_which_packets_were_written_matters_little(
        world in worlds(),
        jitters in prop::collection::vec(0..400 * MS, 1..50),
    ) {
        let disordered = |packets: &[(i64, u32)], shift: usize| {
            let written = |index: usize| jitters[(index * 7 + shift) % jitters.len()];
            let mut packets: Vec<(i64, (i64, u32))> = packets
                .iter()
                .enumerate()
                .map(|(index, &packet)| (packet.0 + written(index), packet))
                .collect();
            // The first one tells from where seconds are counted.
            if let Some(first) = packets.first_mut() {
                first.0 = i64::MIN;
            }
            packets.sort_by_key(|(written, _)| *written);
            packets.into_iter().map(|(_, packet)| packet).collect::<Vec<(i64, u32)>>()
        };
        // Other kinds of packets have outcomes that depend on the order in which the packets are seen.
        let mut world = world;
        let plain = |id: u32| {
            let kind = world.kinds[id as usize];
            matches!(kind, Kind::Delivered(_) | Kind::Lost | Kind::Never(_) | Kind::Alien)
        };
        world.ingress.retain(|packet| plain(packet.1));
        world.egress.retain(|packet| plain(packet.1));
        let ordered = run(&pcap(&world.ingress), &pcap(&world.egress), &options());
        let (ingress, egress) = (disordered(&world.ingress, 0), disordered(&world.egress, 3));
        let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
        let back = |packets: &[(i64, u32)]| {
            let mut last = i64::MIN;
            packets.iter().filter(|packet| {
                let back = packet.0 < last;
                last = last.max(packet.0);
                back
            }).count() as u64
        };
        prop_assert_eq!(analysis.summary.taps.ingress.out_of_order, back(&ingress));
        prop_assert_eq!(analysis.summary.taps.egress.out_of_order, back(&egress));
        prop_assert_eq!(analysis.summary.ingress, ordered.summary.ingress);
        prop_assert_eq!(analysis.summary.egress, ordered.summary.egress);
        prop_assert_eq!(analysis.latencies.entries(), ordered.latencies.entries());
        prop_assert_eq!(&analysis.seconds, &ordered.seconds);
        let taps = &analysis.summary.taps;
        if taps.ingress.misplaced == 0 {
            prop_assert_eq!(analysis.ingress_gaps.sorted(), ordered.ingress_gaps.sorted());
        }
        if taps.egress.misplaced == 0 {
            prop_assert_eq!(analysis.egress_gaps.sorted(), ordered.egress_gaps.sorted());
        }
    }
}
