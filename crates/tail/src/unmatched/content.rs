//! The content of packets behind the fields that devices rewrite, and whether it makes even one lost and one unmatched packet
//! the same.

use super::pairing::Pairs;
use super::{Frame, HEAD, Sides};
use crate::matching::Window;
use crate::signature::{Rewrites, Signature};
use std::collections::{HashMap, HashSet};
use tailtrim_wire::frame::{Layers, Transport};

/// Different bytes of a packet that chance does not repeat: a random number of 64 bits has about as many. A counter of as many
/// bytes, a request without arguments and padding have fewer; words do not count.
const TELLING: usize = 8;

/// Pairs that are looked at, of more every so many: none of these may be different packets.
const FEW: usize = 32;

/// Pairs that chance makes with a probability above this are not told.
const CHANCE: f64 = 0.01;

/// Of packets that do not agree, as many as these may do so all the same (rule of three, 95 %).
const UNSEEN: f64 = 3.0;

/// Properties that packets of one kind have in common: version, protocol, length behind the headers.
type Kind = (bool, u8, usize);

/// The same of packets of one flow, with addresses and ports.
type Flow = (Kind, Vec<u8>);

/// The content of a packet.
struct Content {
    kind: Kind,
    /// All behind the ports but the checksum.
    bytes: Vec<u8>,
    /// Numbers that hosts count up from a random one: identification of IPv4, or those of TCP; 0 without.
    number: u64,
    /// It goes to a group or to all.
    to_many: bool,
}

impl Content {
    /// Of the innermost packet, or of the one behind the L2 header.
    fn of(frame: &Frame, innermost: bool) -> Option<Self> {
        let (packet, layers) = packet(frame, innermost)?;
        let destination = *packet.get(if layers.v6 { 24 } else { 16 })?;
        let to_many = destination >= if layers.v6 { 0xff } else { 224 };
        let bytes = carried(packet, &layers)?;
        let number = match (layers.transport, bytes.first_chunk()) {
            (Some(Transport::Tcp), Some(numbers)) => u64::from_be_bytes(*numbers),
            _ if layers.v6 => 0,
            _ => u64::from(u16::from_be_bytes(*packet.get(4..)?.first_chunk()?)),
        };
        Some(Self { kind: kind(&layers), bytes, number, to_many })
    }

    /// Whether it says of its own which packet it is. Hosts may say the same words, but not with one number.
    fn is_telling(&self, other: &Self) -> bool {
        let numbered = self.number != 0 && self.number == other.number;
        let words = |byte: &&u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let bytes = self.bytes.iter().filter(|byte| numbered || !words(byte));
        !self.to_many && bytes.collect::<HashSet<_>>().len() >= TELLING
    }

    /// Whether both are the same, as far as both captures have them.
    fn is(&self, other: &Self) -> bool {
        let both = self.bytes.len().min(other.bytes.len());
        self.kind == other.kind && self.bytes[..both] == other.bytes[..both]
    }
}

/// The bytes of a packet, and its layers.
fn packet(frame: &Frame, innermost: bool) -> Option<(&[u8], Layers)> {
    let (start, end, layers) = if innermost {
        frame.innermost()?
    } else {
        let (start, layers) = frame.packet()?;
        (start, frame.head.len(), layers)
    };
    // Of the first frames more is there.
    let end = end.min(start.saturating_add(layers.end)).min(HEAD);
    Some((frame.head.get(start..end)?, layers))
}

fn kind(layers: &Layers) -> Kind {
    (layers.v6, layers.protocol, layers.end.saturating_sub(layers.payload))
}

fn flow(frame: &Frame, innermost: bool) -> Option<Flow> {
    let (packet, layers) = packet(frame, innermost)?;
    let addresses = packet.get(if layers.v6 { 8..40 } else { 12..20 })?;
    let ports = layers.transport.and_then(|_| packet.get(layers.payload..layers.payload + 4));
    Some((kind(&layers), [addresses, ports.unwrap_or_default()].concat()))
}

/// The content of a packet behind its ports, without the checksum.
pub(super) fn carried(packet: &[u8], layers: &Layers) -> Option<Vec<u8>> {
    let segment = packet.get(layers.payload..)?;
    Some(match layers.transport {
        Some(Transport::Udp) => segment.get(8..)?.to_vec(),
        Some(Transport::Tcp) => [segment.get(4..16)?, segment.get(18..)?].concat(),
        None => segment.to_vec(),
    })
}

impl Sides<'_> {
    /// The pairs of packets that carry the same, in whatever headers.
    pub(super) fn carrying(&self, window: Window, first: &[Vec<Frame>; 2]) -> Option<Pairs> {
        let key = |frame: &Frame| {
            let content = Content::of(frame, false);
            Signature::of_bytes(
                content.as_ref().map_or(&*frame.head, |content| content.bytes.as_slice()),
            )
        };
        let [lost, unmatched] = [self.lost, self.unmatched].map(|side| side.iter().map(key));
        let found = self.pairs_of(lost, unmatched, window);
        let rewrites = Rewrites { nat: true, ..Rewrites::default() };
        self.are_same(&found, key, rewrites, first).then_some(found)
    }

    /// Whether each of some pairs is one packet by what it carries, and not by chance. They agree in `key`.
    ///
    /// If addresses and ports agree, the whole packet does. Without them two hosts may say the same: a packet that tells them
    /// apart has a content of its own ([`TELLING`]), or is of a flow of which nearly no two agree. If k of n(n−1)/2 couples do,
    /// then of L lost packets of that flow and U unmatched ones of their kind (k + 3)·2/n²·L·U by chance.
    pub(super) fn are_same(
        &self,
        found: &Pairs,
        key: impl Fn(&Frame) -> Signature,
        rewrites: Rewrites,
        first: &[Vec<Frame>; 2],
    ) -> bool {
        if found.pairs.is_empty() {
            return false;
        }
        let content = |frame: &Frame| Content::of(frame, rewrites.tunnel);
        let (mut known, mut flows) = (HashMap::new(), HashMap::new());
        let known_frames = first.iter().enumerate().filter(|_| rewrites.nat);
        for (side, frame) in
            known_frames.flat_map(|(side, frames)| frames.iter().map(move |one| (side, one)))
        {
            let key = key(frame);
            known.entry(key).or_insert_with(Vec::new).push(frame.stamp_ns);
            if let Some(flow) = flow(frame, rewrites.tunnel).filter(|_| side == 0) {
                flows.entry(flow).or_insert_with(Vec::new).push(key);
            }
        }
        let by_chance = |entered: &Frame| {
            let Some(of) = flow(entered, rewrites.tunnel) else { return f64::INFINITY };
            let keys = flows.get(&of).map_or(&[][..], Vec::as_slice);
            let different = keys.iter().collect::<HashSet<_>>().len();
            let (all, alike) = (keys.len() as f64, (keys.len() - different) as f64);
            let agree = (alike + UNSEEN) * 2.0 / (all * all).max(1.0);
            let count = |frames: &[Frame], is: &dyn Fn(&Flow) -> bool| {
                let packets = frames.iter().filter_map(|frame| flow(frame, rewrites.tunnel));
                packets.filter(is).count() as f64
            };
            agree
                * count(self.lost, &|one| *one == of)
                * count(self.unmatched, &|one| one.0 == of.0)
        };
        let is_same = |&(lost, unmatched): &(usize, usize)| {
            let (entered, left) = (&self.lost[lost], &self.unmatched[unmatched]);
            let Some((one, other)) = content(entered).zip(content(left)) else { return false };
            let stamps = [entered.stamp_ns, left.stamp_ns];
            let mut others = known.get(&key(entered)).into_iter().flatten();
            let alone = others.all(|stamp_ns| stamps.contains(stamp_ns));
            let told = || one.is_telling(&other) || by_chance(entered) <= CHANCE;
            let later = self.latency_ns((lost, unmatched)) >= 0;
            later && one.is(&other) && (!rewrites.nat || (alone && told()))
        };
        found.pairs.iter().step_by(found.pairs.len().div_ceil(FEW)).all(is_same)
    }
}
