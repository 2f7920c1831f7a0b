//! Two directions in each capture, as a program leaves them that captures on both sides of a device: packets that enter it,
//! and packets that come back.
//!
//! A packet that comes back is in the egress capture first, so its latency is negative. Which way a packet went that is on
//! one side only, since it was lost, shows in what it has in common with others: its addresses. So the first packets on
//! both sides are matched, and addresses are looked for that go one way only: [`Keys`] from the coarsest on. Clocks that
//! disagree shift packets of all addresses alike, and make no two directions.
//!
//! The order of two addresses as numbers would do without this for two hosts, but of many some are smaller and some larger
//! than their counterparts.

use crate::matching::Window;
use crate::signature::Signature;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use tailtrim_wire::flow::Flow;
use tailtrim_wire::frame::Link;

/// Fewest packets of a direction, and its least part of all: clocks and errors leave fewer.
const FEWEST: usize = 10;
const LEAST: usize = 100;

/// Addresses of so many packets or more say whether they go one way.
const OFTEN: u64 = 4;

/// At most one in so many packets may go the other way than the others of its addresses.
const EXCEPTIONS: u64 = 200;

/// Packets of the ingress capture that are looked at, and twice as many of the egress capture.
pub const LOOKED_AT: usize = 200_000;

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

/// Marks of a packet, and that of the receiver's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    marks: Marks,
    destination: u64,
}

impl Keys {
    /// Marks of a frame.
    #[must_use]
    pub fn of(link: Link, frame: &[u8]) -> Self {
        let macs = if link == Link::Ethernet { frame.get(..12) } else { None }.unwrap_or_default();
        let flow = Flow::of_frame(link, frame);
        let (to, from) = macs.split_at(macs.len() / 2);
        let [source, destination] = flow.map_or_else(
            || [hash(from), hash(to)],
            |flow| [hash(flow.source), hash(flow.destination)],
        );
        let [macs, both] = [hash(macs), hash([source, destination])];
        Self { marks: [macs, source, both, flow.map_or(both, hash)], destination }
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

/// A packet that is on both sides.
struct Passed {
    direction: Direction,
    /// At ingress and at egress.
    keys: [Keys; 2],
}

/// The first packets of two captures.
#[derive(Default)]
pub struct FirstPackets {
    /// [`None`] of a signature that comes again.
    entered: HashMap<Signature, Option<(i64, Keys)>>,
    passed: Vec<Passed>,
}

impl FirstPackets {
    /// A packet of the ingress capture. All of these come before those of the egress capture.
    pub fn enters(&mut self, signature: Signature, stamp_ns: i64, keys: Keys) {
        let entry = self.entered.entry(signature);
        entry.and_modify(|known| *known = None).or_insert(Some((stamp_ns, keys)));
    }

    /// A packet of the egress capture.
    pub fn leaves(&mut self, signature: Signature, stamp_ns: i64, keys: Keys, window: Window) {
        let Some(known) = self.entered.get_mut(&signature) else { return };
        let Some((entered_ns, before)) = known.take() else { return };
        let latency_ns = stamp_ns.saturating_sub(entered_ns);
        let direction = if latency_ns < 0 { Direction::Reverse } else { Direction::Forward };
        // Packets that come back may take as long as others.
        if window.matches(latency_ns.abs()) {
            self.passed.push(Passed { direction, keys: [before, keys] });
        }
    }

    /// The two directions, where there are two.
    #[must_use]
    pub fn directions(self) -> Option<Directions> {
        let passed = self.passed;
        let of = |direction| passed.iter().filter(move |one: &&Passed| one.direction == direction);
        let counts = [of(Direction::Forward).count(), of(Direction::Reverse).count()];
        if counts.iter().any(|count| *count < FEWEST || count * LEAST < passed.len()) {
            return None;
        }
        // Packets that come back go to where the others came from, or come from where they went.
        let ends = |side: usize| {
            let sources: HashSet<u64> =
                of(Direction::Forward).map(|one| one.keys[side].source()).collect();
            let goals: HashSet<u64> =
                of(Direction::Forward).map(|one| one.keys[side].destination).collect();
            of(Direction::Reverse)
                .filter(|one| {
                    let keys = one.keys[side];
                    goals.contains(&keys.source()) || sources.contains(&keys.destination)
                })
                .count()
        };
        if (ends(0).max(ends(1))) * 2 < counts[1] {
            return None;
        }
        let levels = 0..Marks::default().len();
        let ways = levels
            .filter_map(|level| Some([Ways::of(&passed, 0, level)?, Ways::of(&passed, 1, level)?]));
        ways.take(1)
            .next()
            .map(|ways| Directions { counts: counts.map(|count| count as u64), ways })
    }
}

/// Directions of the packets at a tap, by marks of a level.
#[derive(Debug)]
struct Ways {
    level: usize,
    known: HashMap<u64, Direction>,
}

impl Ways {
    /// `None` where packets of the same marks go both ways.
    fn of(passed: &[Passed], side: usize, level: usize) -> Option<Self> {
        let mut votes: HashMap<u64, [u64; 2]> = HashMap::new();
        for Passed { direction, keys } in passed {
            votes.entry(keys[side].marks[level]).or_default()[*direction as usize] += 1;
        }
        let exceptions: u64 = votes.values().map(|[forward, reverse]| forward.min(reverse)).sum();
        let often: u64 = votes
            .values()
            .map(|[forward, reverse]| forward + reverse)
            .filter(|all| *all >= OFTEN)
            .sum();
        let all = passed.len() as u64;
        if exceptions * EXCEPTIONS > all || often * 2 < all {
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
}

/// Two directions in each of two captures.
#[derive(Debug)]
pub struct Directions {
    /// Packets that went forward and back, among those that were looked at.
    pub counts: [u64; 2],
    ways: [Ways; 2],
}

impl Directions {
    /// Whether a frame of the ingress (0) or egress (1) capture goes that way. One of unknown addresses comes from the side
    /// on which it was seen: had it passed, it would be known.
    #[must_use]
    pub fn has(&self, direction: Direction, side: usize, link: Link, frame: &[u8]) -> bool {
        let Ways { level, known } = &self.ways[side];
        let unknown = if side == 0 { Direction::Forward } else { Direction::Reverse };
        let mark = Keys::of(link, frame).marks[*level];
        known.get(&mark).copied().unwrap_or(unknown) == direction
    }
}
