//! Captures that are cut anywhere and analysed stretch by stretch give the bytes of the uncut ones.

use super::worlds::{World, worlds_of};
use super::{Arrival, MS, START_NS, US, open, options, pcap, steady};
use crate::support::{How, SECOND_NS};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use tailtrim_tail::analysis::{
    Analysis, Counts, Ongoing, Opened, Options, Order, Sample, Stretch, Terms,
};
use tailtrim_tail::matching::Window;

/// Packets that the matcher keeps at hand: so few that the worlds are longer.
const SMALL: usize = 512;

/// Packets of a side: stamps and identifiers.
type Packets = [(i64, u32)];

/// The index of the first packet from a time on.
fn cut(packets: &Packets, at_ns: i64) -> usize {
    packets.iter().position(|packet| packet.0 >= at_ns).unwrap_or(packets.len())
}

/// Both sides between two times.
fn between(world: &World, times_ns: Range<i64>) -> [Opened; 2] {
    [("in", &world.ingress), ("out", &world.egress)].map(|(name, packets)| {
        let packets = &packets[cut(packets, times_ns.start)..cut(packets, times_ns.end)];
        let bytes = pcap(packets);
        Box::new(open(name, &bytes, How::default(), Arrival::Mapped)) as Opened
    })
}

/// Everything that an analysis says.
pub(crate) fn said(analysis: &Analysis, samples: &[Sample]) -> String {
    let bursts = analysis.bursts.as_ref().map(|bursts| {
        let positions = bursts.positions.iter().map(tailtrim_stats::Histogram::sorted);
        (bursts.gap_ns, positions.collect::<Vec<_>>())
    });
    format!(
        "{}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{bursts:?}\n{samples:?}",
        serde_json::to_string_pretty(&analysis.summary).unwrap(),
        analysis.latencies.entries(),
        analysis.curve,
        analysis.ingress_gaps.sorted(),
        analysis.egress_gaps.sorted(),
        analysis.delay_variation.sorted(),
        analysis.worst,
        analysis.seconds,
    )
}

/// Analyses stretch by stretch; each begins so many cuts before its own. Returns what is said, and how many stretches
/// were joined.
pub(super) fn by_stretches<const N: usize>(
    world: &World,
    options: &Options,
    (cuts_ns, earlier): (&[i64], usize),
) -> (String, usize) {
    let [mut ingress, mut egress] = between(world, i64::MIN..i64::MAX);
    let terms = Terms::of(&mut *ingress, &mut *egress, options).unwrap();
    let mut borders = vec![i64::MIN];
    borders.extend(cuts_ns);
    borders.push(i64::MAX);
    let go_on = |_, _| ControlFlow::Continue(());
    let (mut counted, mut joined) = (None, 0);
    let next =
        |cut: i64| Some(cut).filter(|at_ns| self::cut(&world.egress, *at_ns) < world.egress.len());
    let [ingress, egress] = between(world, borders[0]..borders[1]);
    let mut ongoing: Ongoing<'_, Opened, N> = Ongoing::new(ingress, egress, &terms, options);
    ongoing.run(next(borders[1]), &mut (), go_on).unwrap();
    for (index, times) in borders.windows(2).enumerate().skip(1) {
        let before = between(world, borders[index.saturating_sub(earlier)]..times[0]);
        let own = || between(world, times[0]..times[1]);
        // Every other one is counted in the order that it has if no packet waits.
        let expected = ongoing.expected(0).filter(|_| index % 2 == 0);
        let (order, read) = ((ongoing.begin(), expected.as_ref()), (&terms, options));
        let stretch = Stretch::matched(before, own(), read, order, counted.take()).unwrap();
        counted = ongoing.join(stretch, next(times[1]));
        if counted.is_some() {
            joined += 1;
            continue;
        }
        let [ingress, egress] = own();
        ongoing.go_on(ingress, egress);
        ongoing.run(next(times[1]), &mut (), go_on).unwrap();
    }
    (said(&ongoing.finish(), &[]), joined)
}

/// Sends a value to another host, or back from it: the copy that arrives.
fn sent<T: Serialize + DeserializeOwned>(value: &T) -> T {
    postcard::from_bytes(&postcard::to_allocvec(value).unwrap()).unwrap()
}

/// A stretch that is joined and not added: how its pairs are to be counted, and the counts if they are.
type Outstanding = (usize, Order, Option<Counts>);

/// Analyses stretch by stretch, each of them on another host. Returns what is said, and how many were joined; `None`
/// where the counts show that one should not have been.
fn by_hosts<const N: usize>(
    world: &World,
    options: &Options,
    (cuts_ns, earlier): (&[i64], usize),
) -> Option<(String, usize)> {
    let [mut ingress, mut egress] = between(world, i64::MIN..i64::MAX);
    let terms = Terms::of(&mut *ingress, &mut *egress, options).unwrap();
    let mut borders = vec![i64::MIN];
    borders.extend(cuts_ns);
    borders.push(i64::MAX);
    let go_on = |_, _| ControlFlow::Continue(());
    let next =
        |cut: i64| Some(cut).filter(|at_ns| self::cut(&world.egress, *at_ns) < world.egress.len());
    let [ingress, egress] = between(world, borders[0]..borders[1]);
    let mut ongoing: Ongoing<'_, Opened, N> = Ongoing::new(ingress, egress, &terms, options);
    let (mut outstanding, mut joined) = (Vec::new(), 0);
    ongoing.run(next(borders[1]), &mut (), go_on).unwrap();
    let own = |index: usize| {
        let times = borders[index]..borders[index + 1];
        let before = between(world, borders[index.saturating_sub(earlier)]..times.start);
        (before, between(world, times))
    };
    let trimmed_until_ns = ongoing.begin().trimmed_until_ns();
    let expected = |index: usize, ongoing: &Ongoing<'_, Opened, N>| {
        let from = cut(&world.egress, borders[1].max(trimmed_until_ns.saturating_add(1)));
        ongoing.expected(cut(&world.egress, borders[index]).saturating_sub(from) as u64)
    };
    let expected: Vec<_> =
        (0..borders.len()).map(|index| expected(index.max(1), &ongoing)).collect();
    let count = |ongoing: &mut Ongoing<'_, Opened, N>, outstanding: &mut Vec<Outstanding>| {
        outstanding.drain(..).all(|(index, order, counts)| {
            let ((before, sources), order) = (own(index), sent(&order));
            let again =
                || Stretch::<N>::counted(before, sources, (&terms, options), &order).unwrap();
            counts.or_else(again).map(|counts| ongoing.add_counts(sent(&counts))).is_some()
        })
    };
    for index in 1..borders.len() - 1 {
        let (before, sources) = own(index);
        let expected = expected[index].as_ref();
        let (outline, counts) =
            Stretch::<N>::outline(before, sources, (&terms, options), ongoing.begin(), expected)
                .unwrap();
        let outline = sent(&outline);
        let next_ns = next(borders[index + 1]);
        if let Some(order) = ongoing.join_outline(outline, ["in", "out"], &terms, options, next_ns)
        {
            // As expected in most worlds in which nothing is added behind the ingress.
            let counts = counts.filter(|_| expected == Some(&order));
            outstanding.push((index, order, counts));
            joined += 1;
            continue;
        }
        if !count(&mut ongoing, &mut outstanding) {
            return None;
        }
        let [ingress, egress] = between(world, borders[index]..borders[index + 1]);
        ongoing.go_on(ingress, egress);
        ongoing.run(next_ns, &mut (), go_on).unwrap();
    }
    count(&mut ongoing, &mut outstanding).then(|| (said(&ongoing.finish(), &[]), joined))
}

/// The first lines that differ.
fn differing(parts: &str, whole: &str) -> String {
    let different = parts.lines().zip(whole.lines()).find(|(part, whole)| part != whole);
    let (part, whole) = different.unwrap_or_default();
    format!("{part:.200}, expected {whole:.200}")
}

fn check<const N: usize>(
    world: &World,
    options: &Options,
    cuts_ns: &[i64],
    earlier: usize,
) -> usize {
    let (whole, _) = by_stretches::<N>(world, options, (&[], 1));
    let (parts, joined) = by_stretches::<N>(world, options, (cuts_ns, earlier));
    assert!(parts == whole, "{cuts_ns:?}: {}", differing(&parts, &whole));
    if let Some((parts, joined_of_hosts)) = by_hosts::<N>(world, options, (cuts_ns, earlier)) {
        assert!(parts == whole, "{cuts_ns:?}: {}", differing(&parts, &whole));
        assert!(joined_of_hosts >= joined);
    }
    joined
}

#[test]
fn stretches_of_steady_traffic_are_joined() {
    let (ingress, egress) = steady(6_000);
    let world = World { ingress, egress, ..World::default() };
    let cuts: Vec<i64> = (1..12).map(|cut| START_NS + cut * 50 * MS + 30 * US).collect();
    // Of 500 packets a stretch, two are more than the matcher keeps at hand.
    assert_eq!(check::<SMALL>(&world, &options(), &cuts, 2), 11);
    let trimmed = Options { trim_ns: 120 * MS, ..options() };
    // Also those before the end of the trim.
    assert_eq!(check::<SMALL>(&world, &trimmed, &cuts, 2), 11);
    // Egress packets from the beginning of the matching, whose ingress packets are not known, make no difference.
    let early =
        Options { window: Window { window_ns: SECOND_NS, early_ns: SECOND_NS }, ..options() };
    assert_eq!(check::<SMALL>(&world, &early, &cuts, 2), 11);
    // One is not.
    assert_eq!(check::<SMALL>(&world, &options(), &cuts, 1), 1);
}

#[test]
fn a_burst_longer_than_what_is_matched_before_a_stretch() {
    // Bursts of four, and one of 3,000.
    let gap_ns =
        |index: i64| if index > 2_000 && index < 5_000 || index % 4 > 0 { US } else { 400 * US };
    let mut now_ns = START_NS;
    let mut enter = |index: u32| {
        now_ns += gap_ns(i64::from(index));
        (now_ns, index)
    };
    let ingress: Vec<(i64, u32)> = (0..6_000).map(&mut enter).collect();
    let egress = ingress.iter().map(|&(stamp_ns, id)| (stamp_ns + 30 * US, id)).collect();
    let cuts: Vec<i64> = (1..12).map(|cut| ingress[500 * cut].0).collect();
    let world = World { ingress, egress, ..World::default() };
    // In the middle of the long burst, and as long as packets from there are remembered, their places are not known.
    assert_eq!(check::<SMALL>(&world, &options(), &cuts, 2), 6);
}

#[test]
fn what_waits_longer_than_the_matcher_keeps_at_hand_is_handed_on() {
    let (ingress, mut egress) = steady(6_000);
    // One lost packet, and one whose signature comes again three stretches later.
    let again = egress.remove(700);
    egress.remove(40);
    let mut world = World { ingress, egress, ..World::default() };
    let cuts: Vec<i64> = (1..12).map(|cut| START_NS + cut * 20 * MS * 2 + 30 * US).collect();
    assert_eq!(check::<SMALL>(&world, &options(), &cuts, 3), 11);
    let entered = world.ingress[2_000].0 + 10 * US;
    world.ingress.insert(2_001, (entered, again.1));
    world.egress.insert(cut(&world.egress, entered + 40 * US), (entered + 40 * US, again.1));
    let wide = Options { window: Window { window_ns: 300 * MS, early_ns: MS }, ..options() };
    assert!(check::<SMALL>(&world, &wide, &cuts, 2) < 11);
}

/// Times to cut at, since the begin, and how many cuts before each stretch to begin.
fn cuts() -> impl Strategy<Value = (Vec<i64>, usize)> {
    // A world of 3,000 packets takes about 8 s.
    let times = prop::collection::btree_set(0..8_000 * MS, 2..9);
    let times = times.prop_map(|times| times.into_iter().map(|at| START_NS + at).collect());
    (times, 1..5_usize)
}

/// Windows in which fewer packets pass than the matcher keeps at hand, and more.
fn windows() -> impl Strategy<Value = Window> {
    let window =
        |(window_ms, early_ms)| Window { window_ns: window_ms * MS, early_ns: early_ms * MS };
    prop_oneof![Just((50, 1)), Just((1_000, 1)), Just((2_000, 300))].prop_map(window)
}

/// Checks worlds by chance. So many of a hundred stretches must be joined at least, or the check says little.
fn check_by_chance<W: Strategy<Value = World>>(worlds: W, least_joined: usize) {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) };
    let (stretches, joined) = (Cell::new(0), Cell::new(0));
    let checked = TestRunner::new(config).run(
        &(worlds, cuts(), prop_oneof![Just(0), 100..2_000_i64], windows()),
        |(world, (cuts_ns, earlier), trim_ms, window)| {
            let options = Options { trim_ns: trim_ms * MS, window, ..options() };
            joined.set(joined.get() + check::<SMALL>(&world, &options, &cuts_ns, earlier));
            stretches.set(stretches.get() + cuts_ns.len());
            Ok(())
        },
    );
    checked.unwrap();
    let (stretches, joined) = (stretches.get(), joined.get());
    assert!(
        100 * joined >= least_joined * stretches,
        "{joined} of {stretches} stretches were joined"
    );
}

#[test]
fn any_cut_gives_the_same() {
    check_by_chance(worlds_of(2_000..4_000), 20);
}

/// A device that is dead for seconds, or from some time on.
#[test]
fn any_cut_gives_the_same_where_nothing_leaves_for_a_while() {
    let silence = (0..8_000 * MS, prop_oneof![500..4_000 * MS, Just(i64::MAX / 2)]);
    let dead = (worlds_of(2_000..4_000), 100..4_000_u32, silence);
    let dead = dead.prop_map(|(mut world, ids, (from_ns, length_ns))| {
        let from_ns = START_NS + from_ns;
        world.egress.retain(|packet| packet.0 < from_ns || packet.0 > from_ns + length_ns);
        for packets in [&mut world.ingress, &mut world.egress] {
            packets.iter_mut().for_each(|packet| packet.1 %= ids);
        }
        world
    });
    check_by_chance(dead, 10);
}

#[test]
fn any_cut_gives_the_same_where_signatures_repeat_and_stamps_run_back() {
    let back = prop::collection::vec((any::<prop::sample::Index>(), 0..30 * MS), 0..400);
    let hostile =
        (worlds_of(1_000..4_000), 1..3_000_u32, back).prop_map(|(mut world, ids, back)| {
            for packets in [&mut world.ingress, &mut world.egress] {
                for packet in packets.iter_mut() {
                    packet.1 %= ids;
                }
                for (index, back_ns) in &back {
                    index.get_mut(packets).0 -= back_ns;
                }
            }
            world
        });
    check_by_chance(hostile, 5);
}
