//! Two directions in each capture, as a program leaves them that captures on both sides of a device: packets that enter it,
//! and packets that come back.
//!
//! Latency is no sign of the direction: by clocks that are apart, packets of both directions may take long, or no time. But a
//! packet that comes back went the other way than those whose reply it is, so two things tell them apart:
//!
//! * A router leaves a packet with a smaller TTL than it had.
//! * By the clocks, a packet that goes forward takes the difference of the clocks and its latency, one that comes back the
//!   difference *less* its latency. So the difference of the clocks lies between the two. Between packets of one direction no
//!   point does: two draws from one distribution lie on both sides of a point with a chance of a half at most. A longer packet
//!   takes longer, so one is compared with its reply if both are of one length, or if the longer one takes less by the clocks.
//!
//! Which way a packet went that is on one side only, since it was lost, shows in what it has in common with others: its
//! addresses. So addresses are looked for that go one way only: [`Keys`] from the coarsest on. The order of two addresses as
//! numbers would do without this for two hosts, but of many some are smaller and some larger than their counterparts.

use crate::clock::{Joined, SampledSide, join};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use tailtrim_wire::flow::Flow;
use tailtrim_wire::frame::{Link, Walk};

/// Fewest packets of a direction, and fewest replies that tell of the clocks.
const FEWEST: usize = 3;

/// Addresses of so many packets or more say whether they go one way.
const OFTEN: u64 = 4;

/// At most one in so many packets of the rarer direction may go the other way than the others of its addresses, and at
/// most one in so many replies be on the same side of the clocks as the packet that it answers.
const EXCEPTIONS: usize = 20;

/// Replies before and behind a packet by which the difference of the clocks is known at that time: enough that half of
/// them do not wait in a queue.
const AROUND: usize = 4;

/// Bytes of a frame that tell of its direction.
pub const HEADERS: usize = 256;

/// Direction of packets through the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// They pass the ingress tap first.
    Forward,
    /// They pass the egress tap first.
    Reverse,
}

/// Hashes by which the direction of a packet may be known, from the coarsest on: of the MAC addresses, the source's address,
/// both addresses, the flow. Without IP the MAC addresses are all there is.
type Marks = [u64; 4];

/// Marks of a packet, of the innermost one in tunnels, and what else tells its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    marks: Marks,
    /// That of the receiver's address.
    destination: u64,
    /// Hash of the addresses, which differs in the last bit only from that of a reply.
    exchange: u64,
    /// Bytes on the wire.
    length: u32,
    /// 0 without IP.
    ttl: u8,
}

impl Keys {
    /// Those of a frame that was so long on the wire.
    #[must_use]
    pub fn of(link: Link, frame: &[u8], length: u32) -> Self {
        let frame = frame.get(..HEADERS).unwrap_or(frame);
        let macs = if link == Link::Ethernet { frame.get(..12) } else { None }.unwrap_or_default();
        let (to, from) = macs.split_at(macs.len() / 2);
        let packets = Walk::new(link, frame)
            .filter_map(|place| Some((place.layers?, frame.get(place.start..place.end)?)));
        let innermost = packets.last().and_then(|(layers, packet)| {
            let ttl = packet.get(if layers.v6 { 7 } else { 8 })?;
            Some((Flow::of_packet(&layers, packet)?, *ttl))
        });
        let Some((flow, ttl)) = innermost else {
            let [macs, source, destination] = [hash(macs), hash(from), hash(to)];
            let both = hash([source, destination]);
            let exchange = exchange([from, to]);
            let marks = [macs, source, both, both];
            return Self { marks, destination, exchange, length, ttl: 0 };
        };
        let [macs, source, destination] = [hash(macs), hash(flow.source), hash(flow.destination)];
        let marks = [macs, source, hash([source, destination]), hash(flow)];
        let exchange = exchange([flow.source, flow.destination]);
        Self { marks, destination, exchange, length, ttl }
    }

    fn source(&self) -> u64 {
        self.marks[1]
    }
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn exchange<T: Ord + Hash>([source, destination]: [T; 2]) -> u64 {
    let ascend = source <= destination;
    let ends = if ascend { [source, destination] } else { [destination, source] };
    hash(ends) & !1 | u64::from(ascend)
}

/// Whether some packets of the ingress capture go to where others come from. Without, none comes back.
#[must_use]
pub fn has_replies(ingress: &SampledSide<Keys>) -> bool {
    let sources: HashSet<u64> = ingress.marks().map(|keys| keys.source()).collect();
    ingress.marks().any(|keys| sources.contains(&keys.destination))
}

/// The directions of packets that are on both sides, in the order of the egress capture; `None` where it is not known.
fn known(passed: &[Joined<Keys>]) -> Vec<Option<Direction>> {
    let hops = |packet: &Joined<Keys>| {
        let [before, after] = packet.marks.map(|keys| i16::from(keys.ttl));
        before - after
    };
    let routed = passed.iter().filter(|packet| hops(packet) != 0).count() * 2 > passed.len();
    let clocks = if routed { Vec::new() } else { clocks(passed) };
    let direction = |(index, packet): (usize, &Joined<Keys>)| {
        let forward = if routed {
            i64::from(hops(packet))
        } else {
            packet.apart_ns().saturating_sub(clocks.get(index).copied().unwrap_or(0))
        };
        match forward.signum() {
            1 => Some(Direction::Forward),
            -1 => Some(Direction::Reverse),
            _ => None,
        }
    };
    passed.iter().enumerate().map(direction).collect()
}

/// The difference of the clocks when each packet passed, from packets and replies to them. None if these do not tell.
fn clocks(passed: &[Joined<Keys>]) -> Vec<i64> {
    // The last packets of an exchange that go one way, of a length and of any.
    let mut last: HashMap<(u64, Option<u32>), (u32, i64)> = HashMap::new();
    let mut spans: Vec<(usize, [i64; 2])> = Vec::new();
    let (mut alike, mut longer_less, mut longer_more) = (Vec::new(), 0, 0);
    for (index, packet) in passed.iter().enumerate() {
        let (Keys { exchange, length, .. }, apart_ns) = (packet.marks[0], packet.apart_ns());
        let other = |of| last.get(&(exchange ^ 1, of)).copied();
        if let Some((other_length, other_ns)) = other(Some(length)).or_else(|| other(None)) {
            let span = (index, [apart_ns.min(other_ns), apart_ns.max(other_ns)]);
            if length == other_length {
                alike.push(span);
                spans.push(span);
            } else if (length > other_length) == (apart_ns < other_ns) {
                longer_less += 1;
                spans.push(span);
            } else {
                longer_more += 1;
            }
        }
        for of in [Some(length), None] {
            last.insert((exchange, of), (length, apart_ns));
        }
    }
    // Some longer packets take less by chance.
    if longer_less <= longer_more {
        spans = alike;
    }
    let middle = |at: usize| {
        let near = at.saturating_sub(AROUND)..(at + AROUND + 1).min(spans.len());
        let middles = spans[near].iter().map(|(_, [low, high])| low.midpoint(*high));
        let mut middles: Vec<i64> = middles.collect();
        middles.sort_unstable();
        middles[middles.len() / 2]
    };
    let middles: Vec<i64> = (0..spans.len()).map(middle).collect();
    let outside = spans
        .iter()
        .zip(&middles)
        .filter(|((_, [low, high]), middle)| !(low..=high).contains(middle) || low == high);
    if spans.len() < FEWEST || outside.count() * EXCEPTIONS > spans.len() {
        return Vec::new();
    }
    let at = |index: usize| {
        let next = spans.partition_point(|(at, _)| *at < index);
        middles[next.min(spans.len() - 1)]
    };
    (0..passed.len()).map(at).collect()
}

/// A packet that is on both sides.
struct Passed {
    direction: Direction,
    /// At ingress and at egress.
    keys: [Keys; 2],
    apart_ns: i64,
}

/// Directions of the packets at a tap, by marks of a level.
#[derive(Debug)]
struct Ways {
    level: usize,
    known: HashMap<u64, Direction>,
}

impl Ways {
    /// Ways by the level at which packets of the same marks go one way and that tells of most packets of the side; by the coarsest
    /// of several: a mirror port behind the device may have other MAC addresses than those that are matched.
    fn at(passed: &[Passed], side: usize, rarer: usize, all: &SampledSide<Keys>) -> Option<Self> {
        let told = |ways: &Self| all.marks().filter(|keys| ways.way(keys).is_some()).count();
        let levels = (0..Marks::default().len()).rev();
        levels.filter_map(|level| Self::of(passed, side, level, rarer)).max_by_key(told)
    }

    fn of(passed: &[Passed], side: usize, level: usize, rarer: usize) -> Option<Self> {
        let mut votes: HashMap<u64, [u64; 2]> = HashMap::new();
        for Passed { direction, keys, .. } in passed {
            votes.entry(keys[side].marks[level]).or_default()[*direction as usize] += 1;
        }
        let exceptions: u64 = votes.values().map(|[forward, reverse]| forward.min(reverse)).sum();
        let often: u64 = votes
            .values()
            .map(|[forward, reverse]| forward + reverse)
            .filter(|all| *all >= OFTEN)
            .sum();
        if exceptions as usize * EXCEPTIONS > rarer || often as usize * 2 < passed.len() {
            return None;
        }
        let way = |[forward, reverse]: [u64; 2]| {
            if forward >= reverse { Direction::Forward } else { Direction::Reverse }
        };
        Some(Self {
            level,
            known: votes.into_iter().map(|(mark, votes)| (mark, way(votes))).collect(),
        })
    }

    fn way(&self, keys: &Keys) -> Option<Direction> {
        self.known.get(&keys.marks[self.level]).copied()
    }
}

/// Two directions in each of two captures.
#[derive(Debug)]
pub struct Directions {
    /// Packets that went forward and back, among those that were looked at.
    pub counts: [u64; 2],
    /// The smallest latencies of both, by the clocks.
    pub fastest_ns: [i64; 2],
    ways: [Ways; 2],
}

impl Directions {
    /// The two directions of packets in the captures, where there are two.
    #[must_use]
    pub fn of(ingress: &SampledSide<Keys>, egress: &SampledSide<Keys>) -> Option<Self> {
        let (joined, each) = join(ingress, egress);
        let passed = joined.iter().zip(known(&joined)).filter_map(|(packet, direction)| {
            let (keys, apart_ns) = (packet.marks, packet.apart_ns());
            Some(Passed { direction: direction?, keys, apart_ns })
        });
        let passed: Vec<Passed> = passed.collect();
        let going = |way| passed.iter().filter(move |one: &&Passed| one.direction == way);
        let mut ways = [Direction::Forward, Direction::Reverse];
        let counts = ways.map(|way| going(way).count());
        ways.sort_by_key(|way| counts[*way as usize]);
        let [rare, others] = ways;
        let rarer = counts[rare as usize];
        if rarer < FEWEST {
            return None;
        }
        // Packets that come back go to where the others came from, or come from where they went.
        let answer = |side: usize| {
            let keys = || going(others).map(move |one| one.keys[side]);
            let sources: HashSet<u64> = keys().map(|keys| keys.source()).collect();
            let goals: HashSet<u64> = keys().map(|keys| keys.destination).collect();
            let answers =
                |keys: &Keys| goals.contains(&keys.source()) || sources.contains(&keys.destination);
            going(rare).filter(|one| answers(&one.keys[side])).count()
        };
        if answer(0).max(answer(1)) * 2 < rarer {
            return None;
        }
        let ways = [Ways::at(&passed, 0, rarer, ingress)?, Ways::at(&passed, 1, rarer, egress)?];
        let mut fastest_ns = [i64::MAX; 2];
        for Passed { direction, keys, apart_ns } in &passed {
            if [0, 1].iter().all(|&side| ways[side].way(&keys[side]) == Some(*direction)) {
                let forward = *direction == Direction::Forward;
                let latency_ns = if forward { *apart_ns } else { apart_ns.saturating_neg() };
                let fastest_ns = &mut fastest_ns[*direction as usize];
                *fastest_ns = latency_ns.min(*fastest_ns);
            }
        }
        Some(Self { counts: counts.map(|count| count as u64 * each), fastest_ns, ways })
    }

    /// Whether a frame of the ingress (0) or egress (1) capture goes that way. One of unknown addresses comes from the side
    /// on which it was seen: had it passed, it would be known.
    #[must_use]
    pub fn has(&self, direction: Direction, side: usize, link: Link, frame: &[u8]) -> bool {
        let unknown = if side == 0 { Direction::Forward } else { Direction::Reverse };
        self.ways[side].way(&Keys::of(link, frame, 0)).unwrap_or(unknown) == direction
    }
}
