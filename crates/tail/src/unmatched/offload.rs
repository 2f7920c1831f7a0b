//! Segments that a NIC or kernel merges before it captures them, or cuts afterwards, also behind NAT or in a tunnel.

use super::{Frame, Sides};
use crate::analysis::Options;
use crate::summary::{Warning, counted, grouped};
use std::collections::{HashMap, HashSet};
use tailtrim_wire::frame::Transport;

/// Bytes of a payload by which the first part of a longer one is known.
const BEGIN: usize = 32;

/// Fewest bytes that both captures have of a payload where addresses or ports do not agree; of datagrams, different ones.
const LEAST_BEGIN: usize = 8;

/// Fewest parts of a frame that was merged.
const FEWEST: usize = 2;

/// Header fields that all parts have in common: addresses and ports.
type Flow = Vec<u8>;

/// Payload of a frame.
struct Segment<'a> {
    flow: Flow,
    transport: Transport,
    /// Sequence number of the first byte, of TCP.
    sequence: u32,
    /// Bytes of payload.
    length: u32,
    begin: &'a [u8],
    /// Bytes of the frame.
    frame: u32,
    tunnelled: bool,
}

impl Segment<'_> {
    /// Whether a longer frame begins as this one does.
    fn begins(&self, longer: &Self) -> bool {
        let both = self.begin.len().min(longer.begin.len());
        self.length < longer.length
            && self.sequence == longer.sequence
            && both >= LEAST_BEGIN
            && self.begin[..both] == longer.begin[..both]
    }
}

/// Frames that are parts of longer ones.
#[derive(Default)]
struct Merged {
    parts: usize,
    /// Longer ones, and the bytes of the longest.
    frames: usize,
    longest: u32,
    /// Addresses or ports, or tunnels differ, too.
    nat: bool,
    tunnel: bool,
}

/// The side of a tap that has longer frames than the other one, if their payloads are the same.
pub(super) fn warning(sides: Sides<'_>, options: &Options) -> Option<Warning> {
    let [lost, unmatched] = [sides.lost, sides.unmatched]
        .map(|frames| frames.iter().filter_map(segment).collect::<Vec<_>>());
    let (at_egress, at_ingress) = (merged(&unmatched, &lost), merged(&lost, &unmatched));
    let (merged, long, short) = if at_egress.parts >= at_ingress.parts {
        (at_egress, "egress", "ingress")
    } else {
        (at_ingress, "ingress", "egress")
    };
    let masks = [
        (merged.nat && !options.rewrites.nat, " --mask nat"),
        (merged.tunnel && !options.rewrites.tunnel, " --mask tunnel"),
    ];
    let masks: String = masks.iter().filter(|(is, _)| *is).map(|(_, mask)| *mask).collect();
    let and = if masks.is_empty() { String::new() } else { format!(", and analyse with{masks}") };
    (merged.parts >= FEWEST).then(|| {
        let text = format!(
            "{} {short} packets are parts of {} (up to {} bytes): offload merges segments at the {long} tap, so that its frames \
             are not those of the wire; capture there again after ethtool -K INTERFACE gro off lro off tso off gso off{and}",
            grouped(merged.parts as u64),
            counted(merged.frames as u64, &format!("longer {long} frame")),
            grouped(u64::from(merged.longest)),
        );
        super::warning("offload", merged.parts, text)
    })
}

/// Frames that are parts of longer ones.
fn merged(whole: &[Segment<'_>], parts: &[Segment<'_>]) -> Merged {
    let mut merged = Merged::default();
    merged.add_segments(of(whole, Transport::Tcp), of(parts, Transport::Tcp));
    merged.add_datagrams(of(whole, Transport::Udp), of(parts, Transport::Udp));
    merged
}

fn of<'a>(
    segments: &'a [Segment<'a>],
    transport: Transport,
) -> impl Iterator<Item = &'a Segment<'a>> + Clone {
    segments.iter().filter(move |segment| segment.transport == transport)
}

impl Merged {
    /// Adds segments of TCP, which lie within the sequence numbers of a longer one. Behind NAT, the first part of one tells which
    /// flow is which.
    fn add_segments<'a>(
        &mut self,
        whole: impl Iterator<Item = &'a Segment<'a>>,
        parts: impl Iterator<Item = &'a Segment<'a>> + Clone,
    ) {
        let mut streams: HashMap<&Flow, Vec<&Segment<'_>>> = HashMap::new();
        let mut starts: HashMap<u32, Vec<&Segment<'_>>> = HashMap::new();
        for segment in whole {
            streams.entry(&segment.flow).or_default().push(segment);
            starts.entry(segment.sequence).or_default().push(segment);
        }
        streams.values_mut().for_each(|stream| stream.sort_unstable_by_key(|one| one.sequence));
        let mut flows: HashMap<&Flow, &Flow> = streams.keys().map(|flow| (*flow, *flow)).collect();
        for part in parts.clone() {
            let longer = starts.get(&part.sequence).into_iter().flatten();
            if let Some(longer) = longer.into_iter().find(|longer| part.begins(longer)) {
                flows.entry(&part.flow).or_insert(&longer.flow);
            }
        }
        let mut longer = HashSet::new();
        for part in parts {
            let Some(flow) = flows.get(&part.flow) else { continue };
            let stream = &streams[flow];
            let behind = stream.partition_point(|one| one.sequence <= part.sequence);
            let Some(&whole) = behind.checked_sub(1).and_then(|at| stream.get(at)) else {
                continue;
            };
            let within = part.sequence - whole.sequence;
            if part.length < whole.length && within.saturating_add(part.length) <= whole.length {
                self.parts += 1;
                self.add(part, whole);
                longer.insert((*flow, whole.sequence));
            }
        }
        self.frames += longer.len();
    }

    /// Adds datagrams, of which the first part has the same begin as the longer one.
    fn add_datagrams<'a>(
        &mut self,
        whole: impl Iterator<Item = &'a Segment<'a>>,
        parts: impl Iterator<Item = &'a Segment<'a>> + Clone,
    ) {
        let mut same_flow: HashMap<(&Flow, &[u8]), &Segment<'_>> = HashMap::new();
        // Behind NAT: the begin is unique, and its bytes differ.
        let mut any_flow: HashMap<&[u8], Option<&Segment<'_>>> = HashMap::new();
        for segment in whole.filter(|segment| segment.begin.len() == BEGIN) {
            same_flow.insert((&segment.flow, segment.begin), segment);
            let one = any_flow.entry(segment.begin);
            let values = segment.begin.iter().collect::<HashSet<_>>().len();
            let known = (values >= LEAST_BEGIN).then_some(segment);
            one.and_modify(|one| *one = None).or_insert(known);
        }
        // A datagram is longer than all single ones, as payloads that are all alike may have any length.
        let mut most: HashMap<&Flow, u32> = HashMap::new();
        for part in parts.clone() {
            let most = most.entry(&part.flow).or_default();
            *most = part.length.max(*most);
        }
        // By flow: parts of longer ones, longer ones, and parts that are there.
        let mut counts: HashMap<&Flow, (usize, Vec<[&Segment<'_>; 2]>, usize)> = HashMap::new();
        for part in parts {
            let count = counts.entry(&part.flow).or_default();
            count.2 += 1;
            let longer = same_flow.get(&(&part.flow, part.begin)).copied();
            let longer = longer.or_else(|| any_flow.get(part.begin).copied().flatten());
            if let Some(longer) = longer.filter(|longer| most[&part.flow] < longer.length) {
                count.0 += longer.length.div_ceil(part.length) as usize;
                count.1.push([part, longer]);
            }
        }
        // A datagram that has only grown has no further parts.
        for (parts, found, _) in counts.into_values().filter(|(parts, _, there)| parts <= there) {
            self.parts += parts;
            self.frames += found.len();
            found.iter().for_each(|[part, longer]| self.add(part, longer));
        }
    }

    fn add(&mut self, part: &Segment<'_>, longer: &Segment<'_>) {
        self.longest = self.longest.max(longer.frame);
        self.nat |= part.flow != longer.flow;
        self.tunnel |= part.tunnelled != longer.tunnelled;
    }
}

fn segment(frame: &Frame) -> Option<Segment<'_>> {
    let (start, _, layers) = frame.innermost()?;
    let packet = &frame.head[start..];
    let transport = layers.transport.filter(|_| !layers.fragment)?;
    let addresses = if layers.v6 { 8..40 } else { 12..20 };
    let header = packet.get(layers.payload..)?;
    let flow = [packet.get(addresses)?, header.get(..4)?].concat();
    let (sequence, header_len) = match transport {
        Transport::Tcp => {
            let sequence = u32::from_be_bytes(*header.get(4..)?.first_chunk()?);
            (sequence, usize::from(header.get(12)? >> 4) * 4)
        }
        Transport::Udp => (0, 8),
    };
    // A length of 0 in the IP header means that the kernel has not cut the packet yet.
    let packet_len = (frame.length as usize).saturating_sub(start).min(layers.end);
    let length =
        packet_len.checked_sub(layers.payload + header_len).filter(|length| *length > 0)?;
    let payload = header.get(header_len..).unwrap_or_default();
    let begin = &payload[..payload.len().min(BEGIN)];
    let tunnelled = frame.start() != Some(start);
    let (length, frame) = (length as u32, frame.length);
    Some(Segment { flow, transport, sequence, length, begin, frame, tunnelled })
}
