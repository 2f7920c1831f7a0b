//! IPv6 packets without extension headers: nodes on the way add and remove options and routing headers.

use tailtrim_wire::frame::Layers;

/// Bytes of an IPv6 header.
const HEADER: usize = 40;

/// Protocol numbers of the headers that are left out: hop-by-hop options, routing, destination options.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const OPTIONS: u8 = 60;

/// The type of a segment routing header (RFC 8754), and the offset of its last segment: where the packet goes.
const SEGMENTS: u8 = 4;
const LAST_SEGMENT: usize = 8;

/// A packet without its extension headers, as far as it is there, with the layers that it has then; `None` where it has none.
/// The header of a fragment stays, unless it is that of a whole packet.
pub(super) fn removed(packet: &[u8], layers: &Layers) -> Option<(Vec<u8>, Layers)> {
    let has_some = layers.v6 && layers.payload > HEADER && !layers.fragment;
    let is_known = !matches!(layers.protocol, HOP_BY_HOP | ROUTING | OPTIONS);
    if !has_some || !is_known || packet.len().min(layers.end) < layers.payload {
        return None;
    }
    let bytes = layers.payload - HEADER;
    let mut bare = [&packet[..HEADER], &packet[layers.payload..]].concat();
    let length = u16::from_be_bytes([bare[4], bare[5]]).saturating_sub(bytes as u16);
    bare[4..6].copy_from_slice(&length.to_be_bytes());
    bare[6] = layers.protocol;
    if let Some(destination) = last_segment(packet, layers.payload) {
        bare[24..HEADER].copy_from_slice(destination);
    }
    let end = if layers.end == usize::MAX { layers.end } else { layers.end - bytes };
    Some((bare, Layers { end, payload: HEADER, ..*layers }))
}

/// The last segment of a packet whose extension headers end there.
fn last_segment(packet: &[u8], end: usize) -> Option<&[u8]> {
    let (mut protocol, mut at) = (packet[6], HEADER);
    while at < end {
        let &[next, words, kind] = packet.get(at..)?.first_chunk()?;
        if protocol == ROUTING && kind == SEGMENTS {
            return packet.get(at + LAST_SEGMENT..at + LAST_SEGMENT + 16).filter(|_| words >= 2);
        }
        (protocol, at) = (next, at + 8 * (usize::from(words) + 1));
    }
    None
}
