//! The streaming matcher against a quadratic oracle that follows the rules of the module's documentation
//! word by word: it keeps every packet, forgets nothing and searches plain lists.

mod cases;
mod feeding;
mod oracle;

use cases::{cases, merge};
use feeding::{run, run_in_batches};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use tailtrim_tail::matching::{DISORDER_NS, Fate, LOOKAHEAD, MEMORY, Matcher, Pair, Window};
use tailtrim_tail::signature::Signature;

/// Stamps are multiples of this, so that every boundary is hit exactly now and then.
const TICK_NS: i64 = 50_000_000;

/// Stamps run back by less than this many ticks.
const DISORDER_TICKS: i64 = DISORDER_NS / TICK_NS;

/// A ring that overflows soon.
const SMALL: usize = 2 * LOOKAHEAD;

/// A packet at a tap: its stamp and what it carries.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packet {
    stamp_ns: i64,
    signature: Signature,
}

impl fmt::Debug for Packet {
    /// Ticks and identifier, negative for packets of no interest: counterexamples have hundreds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:x}", self.stamp_ns / TICK_NS, self.signature.low)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ingress,
    Egress,
}

/// Outcomes of all packets. Ingress packets that are lost and those in flight at the end differ only in the time for
/// which the matcher kept them, so both count as one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcomes {
    pairs: Vec<(u16, i64, i64, Signature)>,
    fates: BTreeMap<(Fate, i64), u64>,
}

impl Outcomes {
    fn pair(&mut self, pair: &Pair) {
        self.pairs.push((pair.tag, pair.ingress_ns, pair.egress_ns, pair.signature));
    }

    fn fate(&mut self, fate: Fate, stamp_ns: i64) {
        *self.fates.entry((fate, stamp_ns)).or_default() += 1;
    }

    /// All stamps of a side, those of the pairs included, in order.
    fn stamps(&self, side: Side) -> Vec<i64> {
        let paired = self.pairs.iter().map(|pair| match side {
            Side::Ingress => pair.1,
            Side::Egress => pair.2,
        });
        let fated = self.fates.iter().flat_map(|(&(fate, stamp_ns), &count)| {
            let of_side = match fate {
                Fate::Lost | Fate::Duplicate | Fate::BeyondWindow => Side::Ingress,
                Fate::Copy | Fate::Unmatched => Side::Egress,
            };
            std::iter::repeat_n(stamp_ns, if of_side == side { count as usize } else { 0 })
        });
        let mut stamps: Vec<i64> = paired.chain(fated).collect();
        stamps.sort_unstable();
        stamps
    }
}

/// Whether to do it after the packet `index`: about every tenth time, by chance.
fn now_and_then(seed: u64, index: usize) -> bool {
    let mixed = (seed ^ index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32).is_multiple_of(10)
}

fn sorted_stamps(packets: &[Packet]) -> Vec<i64> {
    let mut stamps: Vec<i64> = packets.iter().map(|packet| packet.stamp_ns).collect();
    stamps.sort_unstable();
    stamps
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streaming_agrees_with_the_rules(case in cases()) {
        let mut oracle = oracle::Oracle::new(case.window, case.memory);
        let mut tag = 0;
        for (side, packet) in merge(&case) {
            match side {
                Side::Ingress => {
                    oracle.ingress(packet, tag);
                    tag += 1;
                }
                Side::Egress => oracle.egress(packet),
            }
        }
        oracle.finish();
        let expected = &oracle.outcomes;

        let (outcomes, lost) = run(&case, |index| now_and_then(case.ask, index));
        prop_assert_eq!(&outcomes, expected);
        // Asked never or always, the outcomes are the same.
        prop_assert_eq!(&run(&case, |_| false).0, expected);
        prop_assert_eq!(&run(&case, |_| true).0, expected);

        // Packets given out as lost could not leave any more, or their signature came again.
        let mut superseded = oracle.superseded;
        for (stamp_ns, now_ns) in lost {
            if let Some(index) = superseded.iter().position(|&stamp| stamp == stamp_ns) {
                superseded.swap_remove(index);
            } else {
                prop_assert!(stamp_ns < now_ns - 2 * case.window.window_ns - DISORDER_NS);
            }
        }
    }

    #[test]
    fn entering_packets_ahead_makes_no_difference(
        case in cases(),
        sizes in prop::collection::vec(1..LOOKAHEAD, 1..10),
    ) {
        let sorted = |mut outcomes: Outcomes| {
            // Pairs are found in another order.
            outcomes.pairs.sort_unstable();
            outcomes
        };
        let (expected, _) = run(&case, |_| false);
        let outcomes = if case.memory == MEMORY {
            run_in_batches(Matcher::new(case.window), &case, &sizes)
        } else {
            let matcher: Matcher<SMALL> = Matcher::with_memory(case.window, case.memory);
            run_in_batches(matcher, &case, &sizes)
        };
        prop_assert_eq!(sorted(outcomes), sorted(expected));
    }

    #[test]
    fn every_packet_ends_in_exactly_one_outcome(case in cases()) {
        let (outcomes, _) = run(&case, |index| now_and_then(case.ask, index));
        prop_assert_eq!(outcomes.stamps(Side::Ingress), sorted_stamps(&case.ingress));
        prop_assert_eq!(outcomes.stamps(Side::Egress), sorted_stamps(&case.egress));
        let Window { window_ns, early_ns } = case.window;
        for &(tag, ingress_ns, egress_ns, signature) in &outcomes.pairs {
            let ingress = Packet { stamp_ns: ingress_ns, signature };
            prop_assert!(case.ingress[usize::from(tag)] == ingress);
            let egress = Packet { stamp_ns: egress_ns, signature };
            prop_assert!(case.egress.contains(&egress));
            prop_assert!(-early_ns < egress_ns - ingress_ns && egress_ns - ingress_ns < window_ns);
        }
    }

    #[test]
    fn extreme_stamps_and_windows_do_no_harm(
        window_ns in prop_oneof![any::<i64>(), 0..10_i64],
        early_ns in prop_oneof![0..i64::MAX, 0..10_i64],
        packets in prop::collection::vec(
            (any::<bool>(), 0..4_u64, prop_oneof![
                any::<i64>(), -5..5_i64, Just(i64::MIN), Just(i64::MAX),
            ], any::<bool>()),
            0..60,
        ),
    ) {
        let mut matcher: Matcher<SMALL> =
            Matcher::with_memory(Window { window_ns, early_ns }, 8);
        let mut counts = [0_usize; 2];
        let mut pairs = 0;
        let mut fates = Vec::new();
        for &(entering, identifier, stamp_ns, ask) in &packets {
            let signature = Signature::of_identifier(identifier);
            counts[usize::from(entering)] += 1;
            let pair = if entering {
                matcher.ingress(signature, stamp_ns, 0)
            } else {
                matcher.egress(signature, stamp_ns)
            };
            pairs += usize::from(pair.is_some());
            if ask {
                fates.extend(matcher.decided(stamp_ns));
            }
        }
        let (open, rest) = matcher.finish();
        fates.extend(rest);
        let of_egress = |fate: &Fate| matches!(fate, Fate::Copy | Fate::Unmatched);
        let leaving = fates.iter().filter(|(fate, _)| of_egress(fate)).count();
        prop_assert_eq!(counts[0], pairs + leaving);
        prop_assert_eq!(counts[1], pairs + open.len() + fates.len() - leaving);
    }
}

/// Feeds packets given as (side, identifier, stamp in ticks) and returns the outcomes.
fn outcomes_of(window: Window, memory: usize, packets: &[(Side, u64, i64)]) -> Outcomes {
    let mut matcher: Matcher<SMALL> = Matcher::with_memory(window, memory);
    let mut outcomes = Outcomes::default();
    for &(side, identifier, ticks) in packets {
        let signature = Signature::of_identifier(identifier);
        let pair = match side {
            Side::Ingress => matcher.ingress(signature, ticks * TICK_NS, 0),
            Side::Egress => matcher.egress(signature, ticks * TICK_NS),
        };
        if let Some(pair) = pair {
            outcomes.pair(&pair);
        }
    }
    let (open, fates) = matcher.finish();
    assert!(open.is_empty());
    for (fate, stamp_ns) in fates {
        outcomes.fate(fate, stamp_ns);
    }
    outcomes
}

const WINDOW: Window = Window { window_ns: 100 * TICK_NS, early_ns: 20 * TICK_NS };

#[test]
fn an_unexplained_packet_does_not_keep_a_later_one_from_its_early_match() {
    use Side::{Egress, Ingress};
    // The first one leaves without ever having entered; the second is stamped 2 ticks before it enters.
    let packets = [(Egress, 7, 0), (Egress, 7, 1_000), (Ingress, 7, 1_002)];
    let outcomes = outcomes_of(WINDOW, 8, &packets);
    let signature = Signature::of_identifier(7);
    assert_eq!(outcomes.pairs, [(0, 1_002 * TICK_NS, 1_000 * TICK_NS, signature)]);
    assert_eq!(outcomes.fates, BTreeMap::from([((Fate::Unmatched, 0), 1)]));
}

#[test]
fn a_matched_packet_is_known_for_as_many_packets_as_the_memory_holds() {
    use Side::{Egress, Ingress};
    for (between, expected) in [(7, Fate::Copy), (8, Fate::Unmatched)] {
        let mut packets = vec![(Ingress, 0, 0), (Egress, 0, 1)];
        for other in 1..=between {
            packets.extend([(Ingress, other, 2), (Egress, other, 2)]);
        }
        packets.push((Egress, 0, 3));
        let outcomes = outcomes_of(WINDOW, 8, &packets);
        assert_eq!(outcomes.fates, BTreeMap::from([((expected, 3 * TICK_NS), 1)]));
    }
}

#[test]
fn a_packet_that_falls_out_of_the_ring_stops_those_entered_ahead_of_its_namesake() {
    let by_number = |number: u64| (Signature::of_identifier(number), 0);
    let mut matcher: Matcher<SMALL> = Matcher::with_memory(WINDOW, 8);
    let mut pairs = Vec::new();
    // Only the first packet is in flight when the ring is full.
    for number in 0..SMALL as u64 {
        assert_eq!(matcher.ingress(by_number(number).0, 0, 0), None);
        matcher.egress_all([by_number(number)].into_iter().filter(|_| number > 0), &mut pairs);
    }
    assert_eq!(pairs.len(), SMALL - 1);
    // The next one pushes it out, so its namesake behind that one must not go ahead.
    let ahead = [SMALL as u64, 0].map(by_number);
    assert_eq!(matcher.ingress_ahead(ahead.into_iter(), 0, |_| 0), 1);
    assert_eq!(matcher.ingress(by_number(0).0, 0, 0), None);
    let fates: Vec<(Fate, i64)> = matcher.decided(0).collect();
    assert_eq!(fates, [(Fate::Duplicate, 0), (Fate::Duplicate, 0)]);
}
