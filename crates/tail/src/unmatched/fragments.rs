//! Packets that are whole on one side and fragments on the other, also behind NAT or in a tunnel.

use super::content::carried;
use super::{FEWEST, Frame, Sides, agreeing, maskings};
use crate::analysis::Options;
use crate::summary::{Warning, counted};
use std::cmp::Ordering;
use std::collections::HashSet;
use tailtrim_wire::frame::{Layers, Walk};

/// Bytes behind its ports by which a packet and its first fragment are known.
const BEGIN: usize = 24;

/// Fields that all fragments of a packet have in common: identification (of IPv4), addresses, protocol.
type Origin = (Vec<u8>, u8);

/// A fragment, maybe in a tunnel.
struct Part<'a> {
    frame: &'a Frame,
    layers: Layers,
    origin: Origin,
}

/// Says which side has fragments of the packets of the other one, if one has.
pub(super) fn warning(sides: Sides<'_>, options: &Options) -> Option<Warning> {
    let (entered, left) = (fragments(sides.lost), fragments(sides.unmatched));
    let (parts, whole, there, here, because) = match left.len().cmp(&entered.len()) {
        Ordering::Greater => (left, sides.lost, "egress", "ingress", "the device fragments them"),
        Ordering::Less => {
            (entered, sides.unmatched, "ingress", "egress", "the device puts them together")
        }
        Ordering::Equal => return None,
    };
    let origins: HashSet<&Origin> = parts.iter().map(|part| &part.origin).collect();
    let first = || parts.iter().filter(|part| !part.layers.later_fragment);
    let begins: HashSet<_> = first().filter_map(|part| begin(part.frame)).collect();
    let is_one = |frame: &&Frame| {
        let mut common = whole_origins(frame).filter(|origin| origins.contains(origin));
        // Addresses alone count where a packet has no identification, and too little of it is there.
        match begin(frame) {
            Some(begin) => begins.contains(&begin) || common.any(|origin| is_telling(&origin)),
            None => common.next().is_some(),
        }
    };
    let is_whole = |frame: &&Frame| fragment(frame).is_none();
    let packets: Vec<Frame> = whole.iter().filter(is_whole).filter(is_one).cloned().collect();
    let certain =
        |frame: &Frame| begin(frame).is_some() || whole_origins(frame).any(|one| is_telling(&one));
    if packets.len() < FEWEST && !packets.iter().any(certain) {
        return None;
    }
    let of_packets: HashSet<_> = packets.iter().filter_map(begin).collect();
    let is_theirs =
        |part: &&Part<'_>| begin(part.frame).is_some_and(|one| of_packets.contains(&one));
    let mut theirs: HashSet<Origin> = packets.iter().flat_map(whole_origins).collect();
    theirs.extend(first().filter(is_theirs).map(|part| part.origin.clone()));
    let count = parts.iter().filter(|part| theirs.contains(&part.origin)).count();
    let first: Vec<Frame> = first().map(|part| part.frame.clone()).collect();
    let (lost, unmatched) = if there == "egress" { (&packets, &first) } else { (&first, &packets) };
    let text = format!(
        "{} fragments of {}, and no fragment was matched: {because}; {}",
        are(count, &format!("{there} packet")),
        counted(packets.len() as u64, &format!("{here} packet")),
        remedy(Sides { lost, unmatched }, options),
    );
    Some(super::warning("fragments", packets.len(), text))
}

fn are(count: usize, name: &str) -> String {
    format!("{} {}", counted(count as u64, name), if count == 1 { "is one of the" } else { "are" })
}

/// Names what matches packets with their first fragments.
fn remedy(sides: Sides<'_>, options: &Options) -> String {
    let masks = maskings::rewrites(sides, options).into_iter().find(|candidate| {
        let found = sides.pairs(&candidate.signer, options.window);
        let fewer = sides.lost.len().min(sides.unmatched.len());
        fewer > 0 && found.pairs.len() * 10 >= fewer * 9
    });
    let selection = || {
        let found = agreeing::bytes(sides, options.window, &[Vec::new(), Vec::new()])?;
        Some(format!("--signature {}", found.selection))
    };
    masks.map(|masks| masks.typed).or_else(selection).map_or_else(
        || "raise the MTU".to_owned(),
        |typed| format!("{typed} matches the first fragment, or raise the MTU"),
    )
}

fn fragments(frames: &[Frame]) -> Vec<Part<'_>> {
    frames.iter().filter_map(fragment).collect()
}

/// The innermost packet of a frame that is a fragment.
fn fragment(frame: &Frame) -> Option<Part<'_>> {
    let places = packets(frame).filter(|(_, layers)| layers.fragment);
    let (start, layers) = places.last()?;
    Some(Part { frame, layers, origin: origin(&frame.head[start..], &layers)? })
}

/// The packets in a frame, from the outermost to the innermost.
fn packets(frame: &Frame) -> impl Iterator<Item = (usize, Layers)> {
    let places = Walk::new(frame.link, &frame.head);
    places.filter_map(|place| Some((place.start, place.layers?)))
}

fn whole_origins(frame: &Frame) -> impl Iterator<Item = Origin> {
    packets(frame).filter_map(|(start, layers)| origin(&frame.head[start..], &layers))
}

fn origin(packet: &[u8], layers: &Layers) -> Option<Origin> {
    // A whole IPv6 packet carries no identification.
    let identity = if layers.v6 {
        packet.get(8..40)?.to_vec()
    } else {
        [packet.get(4..6)?, packet.get(12..20)?].concat()
    };
    Some((identity, layers.protocol))
}

/// Whether it has an identification, which tells its packet from others: it is 0 if hosts give none.
fn is_telling((identity, _): &Origin) -> bool {
    identity.len() == 10 && identity[..2] != [0, 0]
}

/// The protocol of the innermost packet and its first bytes behind the ports: NAT and tunnels leave them.
fn begin(frame: &Frame) -> Option<(u8, Vec<u8>)> {
    let (start, end, layers) = frame.innermost().filter(|(.., layers)| !layers.later_fragment)?;
    let carried = carried(&frame.head[start..end], &layers)?;
    Some((layers.protocol, carried.get(..BEGIN)?.to_vec()))
}
