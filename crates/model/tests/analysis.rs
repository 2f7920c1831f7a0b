//! Whole analyses of synthetic captures against a naive computation that knows what became of every
//! packet, because it made them.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(clippy::type_complexity, clippy::single_match, reason = "said once, read once")]

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use support::frames::{Ipv4, UDP, probe, udp};
use support::{Creeping, How, Order, Pcap, Pcapng, SECOND_NS, Trickle, mscap, x552};
use tailtrim_model::analysis::{
    Analysis, AnalysisError, Options, POSITIONS, Sample, Second, Sink, analyze,
};
use tailtrim_model::capture::{Capture, CaptureError, Input, StampSource, Streamed, Whole};
use tailtrim_model::matching::Window;
use tailtrim_model::signature::{Rewrites, Selection};
use tailtrim_model::stats::{Histogram, Probability};
use tailtrim_model::summary::{self, Warning};

const MS: i64 = 1_000_000;
const US: i64 = 1_000;

/// The time at which all captures of these tests begin, more or less.
const START_NS: i64 = 1_000 * SECOND_NS;

/// Keeps the samples in the order in which they come.
#[derive(Debug, Default)]
struct Kept(Vec<Sample>);

impl Sink for Kept {
    fn sample(&mut self, sample: &Sample) -> io::Result<()> {
        self.0.push(*sample);
        Ok(())
    }
}

/// How the bytes of a capture arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Mapped,
    Piped,
    ByteByByte,
}

impl Arrival {
    fn input(self, bytes: &[u8]) -> Box<dyn Input> {
        match self {
            Self::Mapped => Box::new(Whole::new(bytes.to_vec())),
            Self::Piped => Box::new(Streamed::new(Trickle::new(bytes.to_vec()))),
            Self::ByteByByte => Box::new(Creeping::new(bytes.to_vec())),
        }
    }
}

fn open(name: &str, bytes: &[u8], how: How, arrival: Arrival) -> Capture {
    let input = arrival.input(bytes);
    Capture::open(name, input, how.stamps, how.moonsniff, how.salvage).unwrap()
}

fn try_run(
    files: (&[u8], &[u8]),
    how: How,
    arrival: Arrival,
    options: &Options,
) -> Result<(Analysis, Vec<Sample>), AnalysisError> {
    let mut ingress = open("in", files.0, how, arrival);
    let mut egress = open("out", files.1, how, arrival);
    let mut kept = Kept::default();
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, options, &mut kept, progress)?;
    Ok((analysis, kept.0))
}

fn run(ingress: &[u8], egress: &[u8], options: &Options) -> Analysis {
    try_run((ingress, egress), How::default(), Arrival::Mapped, options).unwrap().0
}

/// Stamps and identifiers of frames as a pcap.
fn pcap(packets: &[(i64, u32)]) -> Vec<u8> {
    pcap_of_length(packets, probe(0).len())
}

/// The same with longer frames.
fn pcap_of_length(packets: &[(i64, u32)], length: usize) -> Vec<u8> {
    let mut file = Pcap::ethernet();
    for &(stamp_ns, identifier) in packets {
        let mut frame = probe(identifier);
        frame.resize(length, 0);
        file.frame(stamp_ns, &frame);
    }
    file.bytes
}

/// So long that only the first hundred frames or so of a capture are at hand from the start.
const LONG: usize = 2_500;

fn options() -> Options {
    Options {
        window: Window { window_ns: 50 * MS, early_ns: MS },
        trim_ns: 0,
        worst: 7,
        ..Options::default()
    }
}

/// What a made packet does.
#[derive(Debug, Clone, Copy)]
enum Kind {
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

/// What two taps see, and what became of it.
#[derive(Debug, Clone, Default)]
struct World {
    ingress: Vec<(i64, u32)>,
    egress: Vec<(i64, u32)>,
    kinds: Vec<Kind>,
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
    let gap = prop_oneof![5 => 1..300 * US, 1 => 0..30 * MS, 1 => Just(100 * US)];
    let steps = prop::collection::vec((gap, kinds()), 1..500);
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

/// What an analysis should say, by definition.
#[derive(Debug, Default)]
struct Naive {
    ingress: summary::Ingress,
    egress: summary::Egress,
    samples: Vec<(i64, i64)>,
    ingress_gaps: Histogram,
    egress_gaps: Histogram,
    seconds: Vec<Second>,
    trimmed_lost: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Never,
    Matched,
    Twice,
    Beyond,
}

fn naive(world: &World, options: &Options) -> Naive {
    let mut naive = Naive::default();
    let window_ns = options.window.window_ns;
    // What became of each packet, in the order of the captures.
    let mut pairs = Vec::new();
    let mut unmatched = Vec::new();
    let mut copies = Vec::new();
    let mut left: BTreeMap<u32, Left> = BTreeMap::new();
    for &(egress_ns, id) in &world.egress {
        let entered: Vec<i64> = world.ingress.iter().filter(|p| p.1 == id).map(|p| p.0).collect();
        match entered[..] {
            [ingress_ns] if egress_ns - ingress_ns >= 2 * window_ns => unmatched.push(egress_ns),
            [ingress_ns] if egress_ns - ingress_ns >= window_ns => {
                match left.insert(id, Left::Beyond) {
                    // A copy that comes after the window.
                    Some(matched) => {
                        left.insert(id, matched);
                    }
                    None => {}
                }
                unmatched.push(egress_ns);
            }
            [ingress_ns] if left.insert(id, Left::Matched).is_none() => {
                pairs.push((ingress_ns, egress_ns));
            }
            [_] => copies.push(egress_ns),
            // The second one of two may be the first that the capture holds.
            [_, _] => unmatched.push(egress_ns),
            _ => unmatched.push(egress_ns),
        }
        if entered.len() == 2 {
            left.insert(id, Left::Twice);
        }
    }
    let longest_ns = pairs.iter().map(|(i, e)| e - i).max().unwrap_or(0).max(0);
    let first_match = pairs.iter().map(|pair| pair.1).min();
    let trimmed_until_ns = match first_match {
        Some(first_ns) if options.trim_ns > 0 => first_ns + options.trim_ns,
        _ => i64::MIN,
    };
    let (ingress, egress) = (&mut naive.ingress, &mut naive.egress);
    ingress.packets = world.ingress.len() as u64;
    egress.packets = world.egress.len() as u64;
    let first_in = world.ingress.first().map(|packet| packet.0);
    let last_out = world.egress.last().map_or(i64::MIN, |packet| packet.0);
    let mut lost = Vec::new();
    for &(stamp_ns, id) in &world.ingress {
        let twice = world.ingress.iter().filter(|packet| packet.1 == id).count() == 2;
        let fate = if twice { Left::Twice } else { *left.get(&id).unwrap_or(&Left::Never) };
        let trimmed = stamp_ns <= trimmed_until_ns;
        let could_have_left = last_out.saturating_sub(stamp_ns);
        let certain = could_have_left >= window_ns || could_have_left > longest_ns;
        if fate == Left::Never && certain {
            lost.push(stamp_ns);
        }
        let undelivered = fate == Left::Beyond || fate == Left::Never && certain;
        naive.trimmed_lost += u64::from(trimmed && undelivered);
        match fate {
            Left::Matched => {}
            _ if trimmed => ingress.trimmed += 1,
            Left::Twice => ingress.duplicate += 1,
            Left::Beyond => ingress.beyond_window += 1,
            Left::Never if certain => ingress.lost += 1,
            Left::Never => ingress.cut += 1,
        }
    }
    for &(ingress_ns, egress_ns) in &pairs {
        if egress_ns <= trimmed_until_ns {
            ingress.trimmed += 1;
            egress.trimmed += 1;
        } else {
            ingress.matched += 1;
            egress.matched += 1;
            naive.samples.push((ingress_ns, egress_ns));
        }
    }
    for stamp_ns in unmatched {
        if stamp_ns <= trimmed_until_ns {
            egress.trimmed += 1;
        } else if first_in.is_none_or(|first_ns| stamp_ns - first_ns <= longest_ns) {
            egress.cut += 1;
        } else {
            egress.unmatched += 1;
        }
    }
    for stamp_ns in copies {
        *(if stamp_ns <= trimmed_until_ns { &mut egress.trimmed } else { &mut egress.copy }) += 1;
    }
    let gaps = |packets: &[(i64, u32)]| {
        let pairs = packets.windows(2).filter(|pair| pair[0].0 > trimmed_until_ns);
        Histogram::from_pairs(pairs.map(|pair| (pair[1].0 - pair[0].0, 1)))
    };
    naive.ingress_gaps = gaps(&world.ingress);
    naive.egress_gaps = gaps(&world.egress);

    let origin_ns = world.ingress.first().or(world.egress.first()).map_or(0, |packet| packet.0);
    let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
    let length = LONG as u64;
    let mut at = |stamp_ns: i64, change: &dyn Fn(&mut Second)| {
        let second = (stamp_ns - origin_ns).div_euclid(SECOND_NS);
        change(seconds.entry(second).or_insert(Second { second, ..Second::default() }));
    };
    for &(stamp_ns, _) in &world.ingress {
        at(stamp_ns, &|row| {
            row.ingress_packets += 1;
            row.ingress_bytes += length;
        });
    }
    for &(stamp_ns, _) in &world.egress {
        at(stamp_ns, &|row| {
            row.egress_packets += 1;
            row.egress_bytes += length;
        });
    }
    for &stamp_ns in &lost {
        at(stamp_ns, &|row| row.lost += 1);
    }
    for &(ingress_ns, egress_ns) in &naive.samples {
        at(ingress_ns, &|row| {
            row.samples += 1;
            row.max_latency_ns = row.max_latency_ns.max(Some(egress_ns - ingress_ns));
        });
    }
    naive.seconds = seconds.into_values().collect();
    naive
}

/// ⌈p·n⌉-th smallest, 1-based, nothing for ranks beyond the list.
fn at_quantile(sorted: &[i64], p: Probability, n: u64) -> Option<i64> {
    let rank = (u128::from(p.numerator()) * u128::from(n)).div_ceil(u128::from(p.denominator()));
    sorted.get(usize::try_from(rank).unwrap().checked_sub(1)?).copied()
}

fn spread_of(histogram: &Histogram) -> summary::Spread {
    let sorted: Vec<i64> = histogram
        .sorted()
        .into_iter()
        .flat_map(|(value, count)| std::iter::repeat_n(value, count as usize))
        .collect();
    let at = |p: &str| at_quantile(&sorted, p.parse().unwrap(), sorted.len() as u64);
    summary::Spread {
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

    // How the bytes arrive makes no difference.
    let text = serde_json::to_string(summary).unwrap();
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
    fn agrees_with_what_was_made(world in worlds()) {
        check(&world, &options());
    }

    #[test]
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
        // What else becomes of a packet depends on the order in which it is seen.
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

/// `count` packets every 100 µs, and the same 30 µs later.
fn steady(count: u32) -> (Vec<(i64, u32)>, Vec<(i64, u32)>) {
    let at = |id: u32| START_NS + i64::from(id) * 100 * US;
    let ingress: Vec<(i64, u32)> = (0..count).map(|id| (at(id), id)).collect();
    let egress = ingress.iter().map(|&(stamp_ns, id)| (stamp_ns + 30 * US, id)).collect();
    (ingress, egress)
}

#[test]
fn the_trim_ends_a_second_after_the_first_match() {
    let (ingress, egress) = steady(30_000);
    let options = Options { window: Window::default(), ..Options::default() };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options);
    // Those that left up to and including exactly one second after the first one.
    assert_eq!(analysis.summary.ingress.trimmed, 10_001);
    assert_eq!(analysis.summary.egress.trimmed, 10_001);
    assert_eq!(analysis.summary.samples, 19_999);
    // Gaps that begin at or before the end of the trim do not count: 30 µs lie between the taps.
    assert_eq!(analysis.egress_gaps.sorted(), [(100 * US, 19_998)]);
    assert_eq!(analysis.ingress_gaps.sorted(), [(100 * US, 19_998)]);
    assert_eq!(analysis.summary.warnings, []);
    let without = Options { trim_ns: 0, ..options };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &without);
    assert_eq!((analysis.summary.samples, analysis.summary.ingress.trimmed), (30_000, 0));
    assert_eq!(analysis.ingress_gaps.sorted(), [(100 * US, 29_999)]);
}

#[test]
fn packets_after_the_end_of_the_egress_capture_are_cut_however_many() {
    // More than the matcher remembers, and for much longer than twice the window.
    let (ingress, mut egress) = steady(60_000);
    egress.truncate(1_000);
    for trim_ns in [0, MS] {
        let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { trim_ns, ..options() });
        let outcomes = analysis.summary.ingress;
        let trimmed = if trim_ns > 0 { 11 } else { 0 };
        assert_eq!((outcomes.lost, outcomes.cut), (0, 59_000));
        assert_eq!((outcomes.matched, outcomes.trimmed), (1_000 - trimmed, trimmed));
        assert!(analysis.seconds.iter().all(|second| second.lost == 0));
    }
}

#[test]
fn egress_packets_before_the_first_ingress_packet_are_cut() {
    let (mut ingress, egress) = steady(1_000);
    ingress.drain(..300);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(analysis.summary.egress.cut, 300);
    assert_eq!(analysis.summary.egress.unmatched, 0);
    assert_eq!(analysis.summary.samples, 700);
}

#[test]
fn an_egress_packet_is_cut_up_to_the_longest_latency_after_the_first_ingress_stamp() {
    // Every packet takes 30 µs: one that left no later than that may have entered before the capture.
    for (after_ns, expected) in [(30 * US - 1, 1), (30 * US, 1), (30 * US + 1, 0)] {
        let (ingress, mut egress) = steady(400);
        egress.push((START_NS + after_ns, 9_999));
        egress.sort_by_key(|packet| packet.0);
        let outcomes = run(&pcap(&ingress), &pcap(&egress), &options()).summary.egress;
        assert_eq!((outcomes.cut, outcomes.unmatched), (expected, 1 - expected), "{after_ns} ns");
    }
}

#[test]
fn unmatched_packets_of_the_first_moments_are_not_cut_when_they_cannot_have_entered_before() {
    // Duplicates enter and leave; what leaves is unmatched at once.
    let (mut ingress, mut egress) = steady(400);
    ingress.splice(50..50, [(START_NS + 4_950 * US, 7_000), (START_NS + 4_960 * US, 7_000)]);
    egress.splice(50..50, [(START_NS + 4_980 * US, 7_000), (START_NS + 4_990 * US, 7_000)]);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(analysis.summary.ingress.duplicate, 2);
    assert_eq!((analysis.summary.egress.unmatched, analysis.summary.egress.cut), (2, 0));
}

#[test]
fn without_a_match_there_is_no_trim() {
    let (ingress, _) = steady(300);
    let (_, mut egress) = steady(200);
    for packet in &mut egress {
        packet.1 += 10_000;
    }
    for trim_ns in [0, SECOND_NS] {
        let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { trim_ns, ..options() });
        let summary = &analysis.summary;
        // What entered before the last egress packet did not leave; of the others nobody knows.
        assert_eq!((summary.ingress.lost, summary.ingress.cut), (200, 100), "trim {trim_ns}");
        assert_eq!(summary.egress.unmatched, 200);
        assert_eq!(summary.samples, 0);
        assert_eq!(summary.latency_ns.quantiles[0].value, None);
        assert_eq!(summary.delivery_adjusted_ns[0].value, None);
        assert_eq!(
            summary.warnings,
            [Warning {
                code: "no_samples",
                count: 300,
                text: "no packet of the ingress capture was found in the egress capture: does the device under test \
                       rewrite more than MAC addresses, VLAN tags, TTL and checksums (--mask), or is the signature wrong \
                       (--signature)?"
                    .to_owned(),
            }]
        );
    }
}

#[test]
fn captures_that_do_not_overlap() {
    let (ingress, mut egress) = steady(10);
    for packet in &mut egress {
        packet.0 += 3_600 * SECOND_NS;
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(
        analysis.summary.warnings,
        [Warning {
            code: "no_samples",
            count: 10,
            text: "the captures do not overlap in time, so nothing can match: are their clocks synchronised?"
                .to_owned(),
        }]
    );
}

#[test]
fn empty_captures_have_an_empty_result() {
    let (ingress, egress) = steady(20);
    let (ingress, egress, none) = (pcap(&ingress), pcap(&egress), pcap(&[]));
    for trim_ns in [0, SECOND_NS] {
        let options = Options { trim_ns, ..options() };
        let analysis = run(&none, &none, &options);
        assert_eq!(analysis.summary.ingress, summary::Ingress::default());
        assert_eq!(analysis.summary.egress, summary::Egress::default());
        assert_eq!(analysis.summary.taps.ingress.first_ns, None);
        assert_eq!(analysis.seconds, []);
        assert_eq!(analysis.summary.warnings, []);
        // An egress capture without a packet says nothing about losses.
        let analysis = run(&ingress, &none, &options);
        assert_eq!((analysis.summary.ingress.cut, analysis.summary.ingress.lost), (20, 0));
        let analysis = run(&none, &egress, &options);
        assert_eq!(analysis.summary.egress.packets, 20);
        assert_eq!(analysis.summary.egress.cut + analysis.summary.egress.unmatched, 20);
    }
}

#[test]
fn among_equal_latencies_the_earlier_are_the_worst() {
    let latencies = [5, 9, 9, 1, 9, 5, 9, 5];
    let (ingress, mut egress) = steady(8);
    for (packet, latency) in egress.iter_mut().zip(latencies) {
        packet.0 += latency * US;
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { worst: 6, ..options() });
    let worst: Vec<(i64, u64)> = analysis
        .worst
        .iter()
        .map(|worst| ((worst.sample.latency_ns() - 30 * US) / US, worst.index))
        .collect();
    assert_eq!(worst, [(9, 1), (9, 2), (9, 4), (9, 6), (5, 0), (5, 5)]);
    assert_eq!(analysis.summary.worst.count, 6);
    // 0 to 2, 4 to 6.
    assert_eq!(analysis.summary.worst.clusters, 2);
    assert_eq!(analysis.summary.worst.from_ns, Some(35 * US));
}

#[test]
fn lost_packets_are_infinitely_late() {
    let (ingress, mut egress) = steady(1_000);
    // Two in a hundred get lost, and one is too late.
    egress.retain(|packet| !packet.1.is_multiple_of(50));
    egress[100].0 += 60 * MS;
    egress.sort_by_key(|packet| packet.0);
    let options = Options { quantiles: vec!["0.975".parse().unwrap()], ..options() };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options);
    let summary = &analysis.summary;
    assert_eq!((summary.ingress.lost, summary.ingress.beyond_window), (20, 1));
    let value = |quantiles: &[summary::Quantile], p: &str| {
        let p = p.parse().unwrap();
        quantiles.iter().find(|quantile| quantile.p == p).unwrap().value
    };
    for p in ["0.5", "0.9", "0.975", "0.99", "0.999999"] {
        assert_eq!(value(&summary.latency_ns.quantiles, p), Some(30 * US));
    }
    let adjusted = &summary.delivery_adjusted_ns;
    assert_eq!(value(adjusted, "0.975"), Some(30 * US));
    assert_eq!(value(adjusted, "0.99"), None);
    assert_eq!(value(adjusted, "0.999"), None);
}

#[test]
fn positions_in_bursts() {
    // Bursts of 5 frames 1 µs apart every 100 µs; the n-th waits n · 2 µs longer.
    let (mut ingress, mut egress) = (Vec::new(), Vec::new());
    for id in 0..1_000_u32 {
        let at = START_NS + i64::from(id / 5) * 100 * US + i64::from(id % 5) * US;
        ingress.push((at, id));
        egress.push((at + 30 * US + i64::from(id % 5) * 2 * US, id));
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    let bursts = analysis.summary.bursts.unwrap();
    assert!((US..95 * US).contains(&bursts.gap_ns), "{}", bursts.gap_ns);
    assert_eq!(bursts.positions.len(), 5);
    for (position, index) in bursts.positions.iter().zip(0..) {
        assert_eq!((position.position, position.samples), (index + 1, 200));
        let latency_ns = Some(30 * US + index as i64 * 2 * US);
        assert_eq!((position.latency_ns.min, position.latency_ns.max), (latency_ns, latency_ns));
    }
    // Without bursts there is no table of them.
    let (ingress, egress) = steady(1_000);
    assert!(run(&pcap(&ingress), &pcap(&egress), &options()).summary.bursts.is_none());
}

#[test]
fn late_positions_share_the_last_histogram() {
    let (mut ingress, mut egress) = (Vec::new(), Vec::new());
    for id in 0..1_800_u32 {
        let at = START_NS + i64::from(id / 50) * 10 * MS + i64::from(id % 50) * US;
        ingress.push((at, id));
        egress.push((at + 30 * US, id));
    }
    // Bursts of 50 frames, and at the end one of 600.
    for id in 1_800..2_400_u32 {
        let at = START_NS + 400 * MS + i64::from(id) * US;
        ingress.push((at, id));
        egress.push((at + 30 * US, id));
    }
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    let bursts = analysis.summary.bursts.unwrap();
    assert_eq!(bursts.positions.len(), POSITIONS);
    assert_eq!(bursts.positions[0].samples, 37);
    assert_eq!(bursts.positions[254].samples, 1);
    assert_eq!(bursts.positions[255].samples, 600 - 255);
}

#[test]
fn negative_latencies_are_reported_not_hidden() {
    let (ingress, mut egress) = steady(100);
    for packet in &mut egress {
        packet.0 -= 30 * US + 70 * US * i64::from(packet.1 % 2);
    }
    egress.sort_by_key(|packet| packet.0);
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options());
    assert_eq!(analysis.latencies.entries(), [(-70 * US, 50), (0, 50)]);
    assert_eq!(analysis.summary.latency_ns.min, Some(-70 * US));
    assert_eq!(
        analysis.summary.warnings,
        [Warning {
            code: "not_positive",
            count: 100,
            text: "100 of 100 latencies are not positive: the taps' clocks disagree, or ingress and egress are swapped"
                .to_owned(),
        }]
    );
}

#[test]
fn warnings_about_what_the_taps_did() {
    let frame = |id: u32| probe(id);
    let mut ingress = Pcapng::new(Order::Little);
    ingress.interface(1, Some(9), None).simple_packet(&frame(0), 64).packet(0, 5_000, &frame(1));
    ingress.packet(0, 4_000, &frame(2)).statistics(0, 2, 1);
    let mut egress = Pcapng::new(Order::Little);
    egress.interface(1, Some(9), None).packet(0, 6_000, &frame(1)).packet(0, 7_000, &frame(2));
    egress.simple_packet(&frame(0), 64).statistics(0, 4, 0);
    egress.bytes.extend([1, 2, 3]);
    let how = How::SALVAGE;
    let options = Options { trim_ns: 0, ..Options::default() };
    let files = (ingress.bytes.as_slice(), egress.bytes.as_slice());
    let (analysis, _) = try_run(files, how, Arrival::Mapped, &options).unwrap();
    let summary = &analysis.summary;
    assert_eq!((summary.ingress.unstamped, summary.egress.unstamped), (1, 1));
    assert_eq!(analysis.latencies.entries(), [(1_000, 1), (3_000, 1)]);
    let warning = |code, count, text: &str| Warning { code, count, text: text.to_owned() };
    let damage = format!(
        "out: byte {}: the capture ends inside a block, 3 bytes into it, expected a whole block",
        egress.bytes.len() - 3
    );
    assert_eq!(summary.taps.egress.damage.as_ref(), Some(&damage));
    assert_eq!(
        summary.warnings,
        [
            warning(
                "tap_drops",
                3,
                "the ingress tap missed 3 frames: as many packets may be counted lost or unmatched that the device \
                 under test did not lose"
            ),
            warning("unstamped", 1, "1 ingress packets have no stamp and take no part"),
            warning(
                "out_of_order",
                1,
                "1 ingress stamps lie before an earlier one; gaps and matches account for it"
            ),
            warning("damaged", 1, &format!("{damage}; 3 packets before it were used")),
            warning(
                "tap_drops",
                4,
                "the egress tap missed 4 frames: as many packets may be counted lost or unmatched that the device \
                 under test did not lose"
            ),
            warning("unstamped", 1, "1 egress packets have no stamp and take no part"),
        ]
    );
}

#[test]
fn warnings_about_packets() {
    let (mut ingress, mut egress) = steady(2_000);
    // Within the trim one is lost and one comes too late; later two look the same.
    egress.remove(20);
    egress[20].0 += 60 * MS;
    let at = START_NS + 150 * MS;
    ingress.extend([(at + 10, 9_999), (at + 20, 9_999)]);
    ingress.sort_by_key(|packet| packet.0);
    egress.sort_by_key(|packet| packet.0);
    let options = Options { trim_ns: 10 * MS, ..options() };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &options);
    let warning = |code, count, text: &str| Warning { code, count, text: text.to_owned() };
    assert_eq!(
        analysis.summary.warnings,
        [
            warning(
                "duplicate",
                2,
                "2 ingress packets carry the signature of another one in flight; name bytes that differ with \
                 --signature, or shorten --window"
            ),
            warning(
                "trimmed_lost",
                2,
                "2 packets were lost within the trim and do not count; see them with --trim 0"
            ),
        ]
    );
}

#[test]
fn frames_too_far_out_of_order_have_no_gaps() {
    // Number 300 was stamped before everything that is still known.
    let mut packets: Vec<(i64, u32)> = (1..=300).map(|id| (START_NS + i64::from(id), id)).collect();
    packets.push((START_NS, 0));
    let bytes = pcap(&packets);
    let analysis = run(&bytes, &bytes, &options());
    assert_eq!(analysis.summary.taps.ingress.misplaced, 1);
    assert_eq!(analysis.ingress_gaps.sorted(), [(1, 299)]);
    let texts: Vec<&str> =
        analysis.summary.warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert_eq!(
        texts[..4],
        [
            "1 ingress stamps lie before an earlier one; gaps and matches account for it",
            "1 ingress packets are too far out of order for their gaps to be counted",
            "1 egress stamps lie before an earlier one; gaps and matches account for it",
            "1 egress packets are too far out of order for their gaps to be counted",
        ]
    );
}

#[test]
fn captures_of_different_snap_lengths_match() {
    let payload = |id: u32| [&id.to_be_bytes()[..], &[7; 60]].concat();
    let frame = |id: u32| Ipv4::new(UDP, udp(1, 2, 3, &payload(id))).frame();
    let (mut ingress, mut egress) = (Pcap::ethernet(), Pcap::ethernet());
    for id in 0..100 {
        let stamp_ns = START_NS + i64::from(id) * MS;
        ingress.frame(stamp_ns, &frame(id));
        egress.cut_frame(stamp_ns + 1, &frame(id)[..50], frame(id).len() as u32);
    }
    let analysis = run(&ingress.bytes, &egress.bytes, &options());
    assert_eq!(analysis.summary.samples, 100);
    assert_eq!(analysis.summary.signature.bytes, 36);
    assert_eq!(analysis.summary.taps.egress.cut_frames, 100);
    assert_eq!(analysis.summary.taps.egress.short_signatures, 0);
    // A selection is what it is.
    let selection: Selection = "42:4,49:2".parse().unwrap();
    let options = Options { selection: Some(selection), ..options() };
    let analysis = run(&ingress.bytes, &egress.bytes, &options);
    assert_eq!(analysis.summary.samples, 0);
    assert_eq!(analysis.summary.signature.selection.as_deref(), Some("42:4,49:2"));
    assert_eq!(analysis.summary.taps.egress.short_signatures, 100);
    assert_eq!(
        analysis.summary.warnings[0],
        Warning {
            code: "short_signature",
            count: 100,
            text: "100 egress frames were cut so short that they may not match; record with a longer snap length"
                .to_owned(),
        }
    );
}

#[test]
fn what_identified_the_packets_is_told() {
    let (ingress, egress) = steady(3);
    let rewrites = Rewrites { nat: true, tos: true, tunnel: true };
    let analysis = run(&pcap(&ingress), &pcap(&egress), &Options { rewrites, ..options() });
    let expected =
        summary::Signature { selection: None, bytes: 64, masks: vec!["nat", "tos", "tunnel"] };
    assert_eq!(analysis.summary.signature, expected);
    assert_eq!(analysis.summary.samples, 3);
    assert_eq!(analysis.summary.schema, "tailtrim.summary/1");
}

#[test]
fn moonsniff_captures_are_a_whole_number_of_wraps_apart() {
    const WRAP: u64 = 1 << 32;
    let run = |ingress: &[(u64, u32)], egress: &[(u64, u32)]| {
        let files = (mscap(ingress), mscap(egress));
        let files = (files.0.as_slice(), files.1.as_slice());
        try_run(files, How::MOONSNIFF, Arrival::Mapped, &options()).unwrap().0
    };
    let at = |id: u32| u64::from(id) * 50_000_000;
    // The egress capture begins just after the wrap.
    let ingress: Vec<(u64, u32)> =
        (0..200).map(|id| ((WRAP - 1_000 + at(id)) % WRAP, id)).collect();
    let egress: Vec<(u64, u32)> = (0..200).map(|id| ((WRAP + 1_000 + at(id)) % WRAP, id)).collect();
    let analysis = run(&ingress, &egress);
    assert_eq!(analysis.latencies.entries(), [(2_000, 200)]);
    // Stamps of full width mean what they say, however far the captures begin apart.
    let ingress: Vec<(u64, u32)> = (0..200).map(|id| (10_000_000_000 + at(id), id)).collect();
    let egress: Vec<(u64, u32)> = (80..200).map(|id| (10_000_002_000 + at(id), id)).collect();
    let analysis = run(&ingress, &egress);
    assert_eq!(analysis.latencies.entries(), [(2_000, 120)]);
    assert_eq!(analysis.summary.ingress.lost, 80);
}

#[test]
fn trailers_are_the_clock() {
    let (mut ingress, mut egress) = (Pcap::ethernet(), Pcap::ethernet());
    for id in 0..10 {
        ingress.frame(i64::from(id), &x552(&probe(id), id * 1_000, 5));
        egress.frame(99, &x552(&probe(id), id * 1_000 + 17, 5));
    }
    let files = (ingress.bytes.as_slice(), egress.bytes.as_slice());
    let (analysis, _) = try_run(files, How::X552, Arrival::Piped, &options()).unwrap();
    assert_eq!(analysis.latencies.entries(), [(17, 10)]);
    assert_eq!(analysis.summary.taps.ingress.bytes, 10 * probe(0).len() as u64);
}

#[test]
fn a_clock_that_was_set_back_ends_the_analysis() {
    let disorder = |ingress: &[u8], egress: &[u8]| {
        let options = Options { trim_ns: 0, ..Options::default() };
        let error =
            try_run((ingress, egress), How::SALVAGE, Arrival::Mapped, &options).err().unwrap();
        let AnalysisError::Capture(error) = error else { panic!("{error}") };
        assert!(matches!(error, CaptureError::Disorder { .. }));
        assert!(error.hint().is_some());
        error.to_string()
    };
    let (ingress, egress) = steady(300);
    let mut back = ingress.clone();
    back[200].0 -= 2 * SECOND_NS;
    let back_ns = 2 * SECOND_NS - 100 * US;
    assert_eq!(
        disorder(&pcap(&back), &pcap(&egress)),
        format!(
            "in: packet 201: its stamp is {back_ns} ns before an earlier one, expected stamps in order within 1 s"
        )
    );
    // Packets without a stamp are counted, too.
    let mut file = Pcapng::new(Order::Little);
    file.interface(1, Some(9), None).simple_packet(&probe(0), 64).packet(0, 1 << 40, &probe(1));
    file.simple_packet(&probe(2), 64).packet(0, 77, &probe(3)).simple_packet(&probe(4), 64);
    assert_eq!(
        disorder(&pcap(&ingress), &file.bytes),
        format!(
            "out: packet 4: its stamp is {} ns before an earlier one, expected stamps in order within 1 s",
            (1_i64 << 40) - 77
        )
    );
    // Just within a second is no error.
    let mut back = ingress.clone();
    back[200].0 -= SECOND_NS - 1 + 100 * US - 200 * US;
    run(&pcap(&back), &pcap(&egress), &options());
}

#[test]
fn damage_ends_the_analysis_unless_salvaged() {
    let (ingress, egress) = steady(100);
    let (ingress, mut egress) = (pcap(&ingress), pcap(&egress));
    egress.truncate(24 + 50 * 80 + 7);
    let files = (ingress.as_slice(), egress.as_slice());
    let error = try_run(files, How::default(), Arrival::Mapped, &options()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "out: byte 4024: the capture ends 7 bytes into a record header, expected 16 bytes"
    );
    for arrival in [Arrival::Mapped, Arrival::Piped] {
        let (analysis, _) = try_run(files, How::SALVAGE, arrival, &options()).unwrap();
        assert_eq!((analysis.summary.samples, analysis.summary.ingress.cut), (50, 50));
    }
}

#[test]
fn a_sink_that_cannot_take_a_sample_ends_the_analysis() {
    struct Full;
    impl Sink for Full {
        fn sample(&mut self, _: &Sample) -> io::Result<()> {
            Err(io::Error::other("disk full"))
        }
    }
    let (ingress, egress) = steady(3);
    let mut ingress = open("in", &pcap(&ingress), How::default(), Arrival::Mapped);
    let mut egress = open("out", &pcap(&egress), How::default(), Arrival::Mapped);
    let progress = |_, _| ControlFlow::Continue(());
    let error = analyze(&mut ingress, &mut egress, &options(), &mut Full, progress).err().unwrap();
    assert!(matches!(error, AnalysisError::Sink(_)));
    assert_eq!(error.to_string(), "samples cannot be kept: disk full");
}

#[test]
fn progress_is_told_and_may_stop() {
    // Called once in about a million packets.
    let records: Vec<(u64, u32)> = (0..600_000).map(|id| (u64::from(id) * 1_000, id)).collect();
    let bytes = mscap(&records);
    let open = |name| open(name, &bytes, How::MOONSNIFF, Arrival::Mapped);
    let (mut ingress, mut egress) = (open("in"), open("out"));
    let mut told = Vec::new();
    let error = analyze(&mut ingress, &mut egress, &options(), &mut (), |entered, left| {
        told.push((entered, left));
        ControlFlow::Break(())
    });
    assert_eq!(error.err().unwrap().to_string(), "stopped on request");
    assert_eq!(told.len(), 1);
    let expected = 12 * 500_000..bytes.len() as u64;
    assert!(expected.contains(&told[0].0) && expected.contains(&told[0].1), "{told:?}");
}

/// Found by fuzzing: differences of such stamps overflowed.
#[test]
fn stamps_at_both_ends_of_time() {
    const HALF: i64 = 1 << 62;
    let offset_s = -HALF / SECOND_NS;
    let mut file = Pcapng::new(Order::Big);
    file.interface(1, Some(9), Some(offset_s));
    let last = ((HALF - 1) - offset_s * SECOND_NS) as u64;
    file.packet(0, 0, &probe(0)).packet(0, last, &probe(1));
    let analysis = run(&file.bytes, &file.bytes, &options());
    assert_eq!(analysis.latencies.entries(), [(0, 2)]);
    assert_eq!(analysis.ingress_gaps.sorted(), [(last as i64, 1)]);
    assert_eq!(analysis.seconds.len(), 2);
    // A little later is no time any more.
    file.packet(0, last + 1, &probe(2));
    let files = (file.bytes.as_slice(), file.bytes.as_slice());
    let (analysis, _) = try_run(files, How::SALVAGE, Arrival::Mapped, &options()).unwrap();
    assert_eq!(analysis.summary.samples, 2);
    assert!(analysis.summary.taps.ingress.damage.is_some());
}

#[test]
fn a_pipe_reports_where_it_broke() {
    let (ingress, egress) = steady(10);
    let whole = pcap(&egress);
    let broken = Box::new(Streamed::new(support::Failing(whole[..24 + 3 * 80].to_vec())));
    let mut ingress = open("in", &pcap(&ingress), How::default(), Arrival::Mapped);
    let mut egress = Capture::open("out", broken, StampSource::Header, false, true).unwrap();
    let progress = |_, _| ControlFlow::Continue(());
    let analysis = analyze(&mut ingress, &mut egress, &options(), &mut (), progress).unwrap();
    assert_eq!((analysis.summary.samples, analysis.summary.ingress.cut), (3, 7));
    assert_eq!(
        analysis.summary.taps.egress.damage.as_deref(),
        Some("out: reading failed after byte 264: the cable is cut")
    );
}
