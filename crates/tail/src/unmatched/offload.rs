//! Segments that a NIC or kernel merges before it captures them, or cuts afterwards.

use super::{FEWEST, Frame, Sides};
use crate::summary::{Warning, grouped};
use std::collections::{HashMap, HashSet};
use tailtrim_wire::frame::Transport;

/// Bytes of a UDP payload by which the first part of a longer one is known.
const BEGIN: usize = 32;

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
}

/// The side of a tap that has longer frames than the other one, if their payloads are the same.
pub(super) fn warning(sides: Sides<'_>) -> Option<Warning> {
    let (lost, unmatched) = (sides.lost, sides.unmatched);
    let of = |whole, parts| (merged(whole, parts), whole);
    let at_egress = of(unmatched, lost);
    let at_ingress = of(lost, unmatched);
    let (((parts, frames), whole), long, short) = if at_egress.0.0 >= at_ingress.0.0 {
        (at_egress, "egress", "ingress")
    } else {
        (at_ingress, "ingress", "egress")
    };
    let longest = whole.iter().map(|frame| frame.length).max()?;
    (parts >= FEWEST).then(|| {
        let text = format!(
            "{} {short} packets are parts of {} longer {long} frames (up to {} bytes): offload merges segments at the {long} \
             tap, so that its frames are not those of the wire; capture there again after ethtool -K IFACE gro off lro off \
             tso off gso off",
            grouped(parts as u64),
            grouped(frames as u64),
            grouped(u64::from(longest)),
        );
        super::warning("offload", parts, text)
    })
}

/// Frames that are parts of longer ones, and the number of these.
fn merged(whole: &[Frame], parts: &[Frame]) -> (usize, usize) {
    let mut streams: HashMap<Flow, Vec<(u32, u32)>> = HashMap::new();
    let mut datagrams: HashMap<(Flow, &[u8]), u32> = HashMap::new();
    for segment in whole.iter().filter_map(segment) {
        match segment.transport {
            Transport::Tcp => {
                streams.entry(segment.flow).or_default().push((segment.sequence, segment.length));
            }
            Transport::Udp => {
                datagrams.insert((segment.flow, segment.begin), segment.length);
            }
        }
    }
    streams.values_mut().for_each(|stream| stream.sort_unstable());
    let mut longer = HashSet::new();
    let (mut count, mut datagrams_of, mut datagrams_there) = (0, 0, 0);
    for part in parts.iter().filter_map(segment) {
        match part.transport {
            Transport::Tcp => {
                let Some((flow, stream)) = streams.get_key_value(&part.flow) else { continue };
                let behind = stream.partition_point(|(sequence, _)| *sequence <= part.sequence);
                let Some(&(begin, length)) = behind.checked_sub(1).and_then(|at| stream.get(at))
                else {
                    continue;
                };
                let within = part.sequence - begin;
                if part.length < length && within.saturating_add(part.length) <= length {
                    count += 1;
                    longer.insert((flow.clone(), begin));
                }
            }
            Transport::Udp => {
                datagrams_there += 1;
                let key = (part.flow, part.begin);
                if let Some(&length) = datagrams.get(&key)
                    && key.1.len() == BEGIN
                    && part.length < length
                {
                    // Only its first part has the same beginning.
                    datagrams_of += length.div_ceil(part.length) as usize;
                    longer.insert((key.0, longer.len() as u32));
                }
            }
        }
    }
    // A datagram that has only grown has no further parts.
    if datagrams_of <= datagrams_there { (count + datagrams_of, longer.len()) } else { (count, 0) }
}

fn segment(frame: &Frame) -> Option<Segment<'_>> {
    let (start, layers) = frame.packet()?;
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
    Some(Segment { flow, transport, sequence, length: length as u32, begin })
}
