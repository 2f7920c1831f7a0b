//! The streaming matcher against a quadratic oracle that follows the rules of the module's documentation
//! word by word: it keeps every packet, forgets nothing and searches plain lists.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use tailtrim_model::matching::{DISORDER_NS, Fate, LOOKAHEAD, MEMORY, Matcher, Pair, Window};
use tailtrim_model::signature::Signature;

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

/// What became of all packets. Ingress packets that are lost and those in flight at the end differ only in
/// how long the matcher kept them, so they are held together.
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

mod oracle {
    use super::{Fate, Outcomes, Packet, Window};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum State {
        InFlight,
        Matched,
        Duplicate,
        Beyond,
        Lost,
    }

    #[derive(Debug)]
    pub(super) struct Oracle {
        window: Window,
        memory: usize,
        /// How far back the matcher can look at all, for packets written late.
        ring: usize,
        ingress: Vec<(Packet, State)>,
        /// Egress packets that nothing explains so far.
        waiting: Vec<Packet>,
        pub(super) outcomes: Outcomes,
        /// Stamps of those given up because their signature came again.
        pub(super) superseded: Vec<i64>,
    }

    impl Oracle {
        pub(super) fn new(window: Window, memory: usize) -> Self {
            let (ingress, waiting) = (Vec::new(), Vec::new());
            let outcomes = Outcomes::default();
            let superseded = Vec::new();
            let ring = if memory == super::MEMORY { 1 << 14 } else { super::SMALL };
            Self { window, memory, ring, ingress, waiting, outcomes, superseded }
        }

        /// Whether a packet that entered at `ingress_ns` and one that left at `egress_ns` may be one.
        fn fits(&self, ingress_ns: i64, egress_ns: i64) -> bool {
            let latency_ns = egress_ns - ingress_ns;
            latency_ns < self.window.window_ns && -latency_ns < self.window.early_ns
        }

        pub(super) fn ingress(&mut self, packet: Packet, tag: u16) {
            let mut state = State::InFlight;
            let mut same: Vec<&mut (Packet, State)> = self
                .ingress
                .iter_mut()
                .filter(|(earlier, _)| earlier.signature == packet.signature)
                .collect();
            // Only the last of its signature can be in flight: an earlier one became a duplicate or lost
            // when that one entered.
            if let Some((earlier, earlier_state)) = same.last_mut() {
                let near = packet.stamp_ns - earlier.stamp_ns < self.window.window_ns;
                match earlier_state {
                    State::InFlight if near => {
                        *earlier_state = State::Duplicate;
                        self.outcomes.fate(Fate::Duplicate, earlier.stamp_ns);
                        state = State::Duplicate;
                    }
                    State::InFlight => {
                        *earlier_state = State::Lost;
                        self.superseded.push(earlier.stamp_ns);
                        self.outcomes.fate(Fate::Lost, earlier.stamp_ns);
                    }
                    State::Duplicate if near => state = State::Duplicate,
                    State::Duplicate | State::Matched | State::Beyond | State::Lost => {}
                }
            }
            if state == State::Duplicate {
                self.outcomes.fate(Fate::Duplicate, packet.stamp_ns);
            } else {
                let waiting = self.waiting.iter().position(|egress| {
                    egress.signature == packet.signature
                        && self.fits(packet.stamp_ns, egress.stamp_ns)
                });
                if let Some(index) = waiting {
                    let egress = self.waiting.remove(index);
                    self.pair(packet, egress, tag);
                    state = State::Matched;
                }
            }
            self.ingress.push((packet, state));
        }

        pub(super) fn egress(&mut self, packet: Packet) {
            let Some(index) =
                self.ingress.iter().rposition(|(ingress, _)| ingress.signature == packet.signature)
            else {
                return self.wait(packet);
            };
            let (ingress, state) = self.ingress[index];
            // What entered after this one left does not push it out of the memory.
            let later = self.ingress[index + 1..].iter().rev();
            let later = later.take_while(|(later, _)| later.stamp_ns > packet.stamp_ns);
            let age = self.ingress.len() - index;
            let remembered = age <= self.ring && age - later.count() <= self.memory;
            let latency_ns = packet.stamp_ns - ingress.stamp_ns;
            let window_ns = self.window.window_ns;
            match state {
                State::InFlight if self.fits(ingress.stamp_ns, packet.stamp_ns) => {
                    self.ingress[index].1 = State::Matched;
                    self.pair(ingress, packet, index as u16);
                }
                State::InFlight if latency_ns >= window_ns && latency_ns < 2 * window_ns => {
                    self.ingress[index].1 = State::Beyond;
                    self.outcomes.fate(Fate::BeyondWindow, ingress.stamp_ns);
                    self.outcomes.fate(Fate::Unmatched, packet.stamp_ns);
                }
                State::Matched if remembered && latency_ns < window_ns => {
                    let fate = if latency_ns < 0 { Fate::Unmatched } else { Fate::Copy };
                    self.outcomes.fate(fate, packet.stamp_ns);
                }
                State::Duplicate if latency_ns < window_ns => {
                    self.outcomes.fate(Fate::Unmatched, packet.stamp_ns);
                }
                _ => self.wait(packet),
            }
        }

        /// One egress packet of a signature waits for its ingress packet; a further one that comes while
        /// it still may is unmatched.
        fn wait(&mut self, packet: Packet) {
            let waiting =
                self.waiting.iter().position(|egress| egress.signature == packet.signature);
            if let Some(index) = waiting {
                let earlier_ns = self.waiting[index].stamp_ns;
                if packet.stamp_ns - earlier_ns < self.window.early_ns {
                    return self.outcomes.fate(Fate::Unmatched, packet.stamp_ns);
                }
                self.waiting.remove(index);
                self.outcomes.fate(Fate::Unmatched, earlier_ns);
            }
            self.waiting.push(packet);
        }

        fn pair(&mut self, ingress: Packet, egress: Packet, tag: u16) {
            let pair = (tag, ingress.stamp_ns, egress.stamp_ns, ingress.signature);
            self.outcomes.pairs.push(pair);
        }

        pub(super) fn finish(&mut self) {
            for egress in std::mem::take(&mut self.waiting) {
                self.outcomes.fate(Fate::Unmatched, egress.stamp_ns);
            }
            for (ingress, state) in &self.ingress {
                if *state == State::InFlight {
                    self.outcomes.fate(Fate::Lost, ingress.stamp_ns);
                }
            }
        }
    }
}

/// What a packet that enters is made to do.
#[derive(Debug, Clone)]
struct Passage {
    /// Ticks after the packet before.
    step: i64,
    identifier: u64,
    /// Latencies in ticks of everything that leaves on its behalf: none when lost, several for copies.
    latencies: Vec<i64>,
    /// Ticks after which it enters once more.
    again: Option<i64>,
    /// How many other packets enter and leave with it.
    others: u64,
    /// By how many ticks it is written later than it was stamped, at ingress and at egress.
    delays: (i64, i64),
}

#[derive(Clone)]
struct Case {
    window: Window,
    memory: usize,
    ingress: Vec<Packet>,
    egress: Vec<Packet>,
    /// Decides after which packets to ask for decided fates.
    ask: u64,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |packets: &[Packet]| {
            let packets: Vec<String> = packets.iter().map(|packet| format!("{packet:?}")).collect();
            packets.join(" ")
        };
        let Window { window_ns, early_ns } = self.window;
        writeln!(
            f,
            "window {} early {} memory {} ask {}",
            window_ns / TICK_NS,
            early_ns / TICK_NS,
            self.memory,
            self.ask
        )?;
        writeln!(f, "ingress {}", list(&self.ingress))?;
        writeln!(f, "egress {}", list(&self.egress))
    }
}

fn passages(signatures: u64, disorder: i64) -> impl Strategy<Value = Vec<Passage>> {
    let step = prop_oneof![8 => 0..4_i64, 2 => 0..30_i64, 1 => 0..150_i64];
    let latency = prop_oneof![6 => 0..8_i64, 2 => -25..120_i64, 1 => -3..240_i64];
    let latencies = prop_oneof![
        6 => latency.clone().prop_map(|latency| vec![latency]),
        2 => Just(Vec::new()),
        1 => prop::collection::vec(latency, 2..4),
    ];
    let again = prop::option::weighted(0.1, prop_oneof![0..6_i64, 0..120_i64]);
    let delays = (0..=disorder, 0..=disorder);
    let others = prop_oneof![12 => Just(0_u64), 1 => 0..400_u64];
    let passage = (step, 0..signatures, latencies, again, delays, others);
    prop::collection::vec(
        passage.prop_map(|(step, identifier, latencies, again, delays, others)| Passage {
            step,
            identifier,
            latencies,
            again,
            others,
            delays,
        }),
        0..120,
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let ticks = |ticks: i64| ticks * TICK_NS;
    let window = (1..=100_i64, 0..=20_i64).prop_map(move |(window, early)| Window {
        window_ns: ticks(window),
        early_ns: ticks(early),
    });
    let memory = prop_oneof![Just(1), Just(8), Just(16), Just(MEMORY)];
    let signatures = prop_oneof![Just(1), Just(3), Just(12), Just(60), Just(1 << 40)];
    let disorder = prop_oneof![Just(0), Just(2), Just(DISORDER_TICKS - 1)];
    let passages = (signatures, disorder)
        .prop_flat_map(|(signatures, disorder)| passages(signatures, disorder));
    (window, memory, passages, any::<u64>()).prop_map(|(window, memory, passages, ask)| {
        let (mut ingress, mut egress) = (Vec::new(), Vec::new());
        let mut now = 0;
        for passage in &passages {
            now += passage.step;
            let signature = Signature::of_identifier(passage.identifier);
            let packet = |at: i64, delay: i64| {
                let stamp_ns = at * TICK_NS;
                (at + delay, Packet { stamp_ns, signature })
            };
            for other in 0..passage.others {
                let stamp_ns = now * TICK_NS;
                let signature =
                    Signature::of_identifier((-1 - ingress.len() as i64).cast_unsigned());
                let packet = Packet { stamp_ns, signature };
                ingress.push((now, packet));
                // A few are lost: they fall out of the memory in flight.
                if !other.is_multiple_of(16) {
                    egress.push((now, packet));
                }
            }
            ingress.push(packet(now, passage.delays.0));
            ingress.extend(passage.again.map(|again| packet(now + again, 0)));
            let latencies = passage.latencies.iter();
            egress.extend(latencies.map(|latency| packet(now + latency, passage.delays.1)));
        }
        Case { window, memory, ingress: as_written(ingress), egress: as_written(egress), ask }
    })
}

/// Packets in the order in which they were written.
fn as_written(mut packets: Vec<(i64, Packet)>) -> Vec<Packet> {
    packets.sort_by_key(|(written, _)| *written);
    packets.into_iter().map(|(_, packet)| packet).collect()
}

/// The order in which an analysis feeds a matcher: the earlier one of the two captures' next packets.
fn merge(case: &Case) -> Vec<(Side, Packet)> {
    let (mut ingress, mut egress) = (case.ingress.iter().peekable(), case.egress.iter().peekable());
    let mut merged = Vec::new();
    loop {
        let from_ingress = match (ingress.peek(), egress.peek()) {
            (Some(entering), Some(leaving)) => entering.stamp_ns <= leaving.stamp_ns,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        if from_ingress {
            merged.extend(ingress.next().map(|&packet| (Side::Ingress, packet)));
        } else {
            merged.extend(egress.next().map(|&packet| (Side::Egress, packet)));
        }
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

/// What the matcher says, `ask` deciding when it is asked, together with the stamps it gave out as lost
/// and the time at which it did.
fn run(case: &Case, ask: impl Fn(usize) -> bool) -> (Outcomes, Vec<(i64, i64)>) {
    if case.memory == MEMORY {
        feed(Matcher::new(case.window), case, ask)
    } else {
        let matcher: Matcher<SMALL> = Matcher::with_memory(case.window, case.memory);
        feed(matcher, case, ask)
    }
}

/// What is left of a capture, and how far it was read.
struct Reader<'a> {
    rest: &'a [Packet],
    batch: &'a [Packet],
    /// Whether the stamps of the batch ascend, from those before it on.
    ordered: bool,
    last_ns: i64,
}

impl<'a> Reader<'a> {
    fn new(packets: &'a [Packet]) -> Self {
        Self { rest: packets, batch: &[], ordered: true, last_ns: i64::MIN }
    }

    fn refill(&mut self, most: usize) {
        (self.batch, self.rest) = self.rest.split_at(most.min(self.rest.len()));
        self.ordered = true;
        for packet in self.batch {
            self.ordered &= self.last_ns <= packet.stamp_ns;
            self.last_ns = self.last_ns.max(packet.stamp_ns);
        }
    }
}

/// Feeds as an analysis does: a batch of each capture at a time, and the ingress packets ahead where they
/// make no difference.
fn run_in_batches<const N: usize>(
    mut matcher: Matcher<N>,
    case: &Case,
    sizes: &[usize],
) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let mut tag = 0;
    let mut next_tag = |_| {
        tag += 1;
        tag - 1
    };
    let (mut entering, mut leaving) = (Reader::new(&case.ingress), Reader::new(&case.egress));
    let mut sizes = sizes.iter().copied().cycle();
    let by_signature = |packet: &Packet| (packet.signature, packet.stamp_ns);
    loop {
        if entering.batch.is_empty() && !entering.rest.is_empty() {
            entering.refill(sizes.next().unwrap());
        } else if leaving.batch.is_empty() && !leaving.rest.is_empty() {
            leaving.refill(sizes.next().unwrap());
        }
        if entering.batch.is_empty() && leaving.batch.is_empty() {
            break;
        }
        let mut pairs = Vec::new();
        if let (Some(last_in), Some(last_out)) = (entering.batch.last(), leaving.batch.last())
            && entering.ordered
            && leaving.ordered
        {
            let until_ns = last_in.stamp_ns.min(last_out.stamp_ns);
            let ahead = entering.batch.partition_point(|packet| packet.stamp_ns <= until_ns);
            let packets = entering.batch[..ahead].iter().map(by_signature);
            let next_out_ns = leaving.batch[0].stamp_ns;
            let entered = matcher.ingress_ahead(packets, next_out_ns, &mut next_tag);
            let all = entered == entering.batch.len();
            entering.batch = &entering.batch[entered..];
            if entered == ahead {
                let before_ns = if all { last_in.stamp_ns } else { i64::MAX };
                let left = leaving.batch.partition_point(|packet| packet.stamp_ns < before_ns);
                let packets = leaving.batch[..left].iter().map(by_signature);
                matcher.egress_all(packets, &mut pairs);
                leaving.batch = &leaving.batch[left..];
            }
        }
        loop {
            let from_ingress = match (entering.batch.first(), leaving.batch.first()) {
                (Some(next), Some(other)) => next.stamp_ns <= other.stamp_ns,
                (Some(_), None) if leaving.rest.is_empty() => true,
                (None, Some(_)) if entering.rest.is_empty() => false,
                _ => break,
            };
            let reader = if from_ingress { &mut entering } else { &mut leaving };
            let (packet, rest) = reader.batch.split_first().unwrap();
            reader.batch = rest;
            pairs.extend(if from_ingress {
                matcher.ingress(packet.signature, packet.stamp_ns, next_tag(packet.stamp_ns))
            } else {
                matcher.egress(packet.signature, packet.stamp_ns)
            });
        }
        pairs.iter().for_each(|pair| outcomes.pair(pair));
    }
    let (open, fates) = matcher.finish();
    fates.into_iter().for_each(|(fate, stamp_ns)| outcomes.fate(fate, stamp_ns));
    open.into_iter().for_each(|stamp_ns| outcomes.fate(Fate::Lost, stamp_ns));
    outcomes
}

fn feed<const N: usize>(
    mut matcher: Matcher<N>,
    case: &Case,
    ask: impl Fn(usize) -> bool,
) -> (Outcomes, Vec<(i64, i64)>) {
    let mut outcomes = Outcomes::default();
    let mut lost = Vec::new();
    let mut now_ns = i64::MIN;
    let mut tag = 0;
    for (index, (side, packet)) in merge(case).into_iter().enumerate() {
        now_ns = now_ns.max(packet.stamp_ns);
        let pair = match side {
            Side::Ingress => {
                tag += 1;
                matcher.ingress(packet.signature, packet.stamp_ns, tag - 1)
            }
            Side::Egress => matcher.egress(packet.signature, packet.stamp_ns),
        };
        if let Some(pair) = pair {
            outcomes.pair(&pair);
        }
        if ask(index) {
            for (fate, stamp_ns) in matcher.decided(now_ns) {
                outcomes.fate(fate, stamp_ns);
                if fate == Fate::Lost {
                    lost.push((stamp_ns, now_ns));
                }
            }
        }
    }
    let (open, fates) = matcher.finish();
    for (fate, stamp_ns) in fates {
        outcomes.fate(fate, stamp_ns);
        if fate == Fate::Lost {
            lost.push((stamp_ns, now_ns));
        }
    }
    for stamp_ns in open {
        outcomes.fate(Fate::Lost, stamp_ns);
    }
    (outcomes, lost)
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

        // What was given out as lost could not come any more, or came again.
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
