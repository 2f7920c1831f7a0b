//! Packets that are whole on one side and fragments on the other.

use super::{FEWEST, Frame, Sides, agreeing};
use crate::analysis::Options;
use crate::summary::{Warning, grouped};
use std::collections::HashSet;

/// Fields that all fragments of an IPv4 packet have in common: identification, addresses, protocol.
type Origin = (Vec<u8>, u8);

/// Says which side has fragments of the packets of the other one, if one has.
pub(super) fn warning(sides: Sides<'_>, options: &Options) -> Option<Warning> {
    let (lost, unmatched) = (sides.lost, sides.unmatched);
    let at = [
        (unmatched, lost, "egress", "ingress", "the device fragments them"),
        (lost, unmatched, "ingress", "egress", "the device puts them together"),
    ];
    let (parts, whole, there, here, because) = at
        .into_iter()
        .find(|(parts, whole, ..)| fragments(parts).len() > fragments(whole).len())?;
    let origins: HashSet<Origin> = fragments(parts).into_iter().filter_map(origin).collect();
    let packets: Vec<Frame> = whole
        .iter()
        .filter(|frame| origin(frame).is_some_and(|packet| origins.contains(&packet)))
        .cloned()
        .collect();
    if packets.len() < FEWEST {
        return None;
    }
    let first: Vec<Frame> = parts
        .iter()
        .filter(|frame| frame.packet().is_some_and(|(_, layers)| !layers.later_fragment))
        .cloned()
        .collect();
    let (lost, unmatched) = if there == "egress" { (&packets, &first) } else { (&first, &packets) };
    let selection = agreeing::selection(Sides { lost, unmatched }, options.window);
    let remedy = selection.map_or_else(
        || "raise the MTU".to_owned(),
        |selection| format!("--signature {selection} matches the first fragment, or raise the MTU"),
    );
    let text = format!(
        "{} {there} packets are fragments of {} {here} packets, and no fragment was matched: {because}; {remedy}",
        grouped(fragments(parts).len() as u64),
        grouped(packets.len() as u64),
    );
    Some(super::warning("fragments", packets.len(), text))
}

fn fragments(frames: &[Frame]) -> Vec<&Frame> {
    frames
        .iter()
        .filter(|frame| frame.packet().is_some_and(|(_, layers)| layers.fragment))
        .collect()
}

fn origin(frame: &Frame) -> Option<Origin> {
    let (start, layers) = frame.packet()?;
    let packet = &frame.head[start..];
    // A whole IPv6 packet carries no identification.
    let identity = if layers.v6 {
        packet.get(8..40)?.to_vec()
    } else {
        [packet.get(4..6)?, packet.get(12..20)?].concat()
    };
    Some((identity, layers.protocol))
}
