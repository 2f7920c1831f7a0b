//! Encapsulations in IP, by protocol number and by UDP port.

use super::encapsulation::{
    BRIDGED, Encapsulation, Step, by_next_protocol, ethernet, ip, is_ethernet, is_ip, mpls, ppp,
};
use super::gre::{behind, gre};
use super::layers::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, Layers};
use super::{be16, be32};

/// Bytes of a UDP header.
const UDP: usize = 8;

/// Headers behind an IP header are followed this far, as those of IPv6.
const MOST_HEADERS: usize = 8;

/// The encapsulation in the IP packet whose layers these are.
pub(super) fn step(outer: &Layers, packet: &[u8]) -> Option<Step> {
    // The header of what is inside is in the first fragment.
    if outer.later_fragment {
        return None;
    }
    // Bytes behind the end of an IP packet are padding.
    let packet = packet.get(..outer.end).unwrap_or(packet);
    let (protocol, at) = authenticated(outer, packet)?;
    let into = |encapsulation, inner: Option<_>| Some((encapsulation, Some(inner?)));
    match protocol {
        17 => datagram(packet, at),
        4 => {
            let name = if outer.v6 { Encapsulation::FourInSix } else { Encapsulation::IpIp };
            into(or_srv6(packet, outer, name), ip(packet, at).filter(is(ETHERTYPE_IPV4)))
        }
        41 => {
            let name = if outer.v6 { Encapsulation::SixInSix } else { Encapsulation::SixInFour };
            into(or_srv6(packet, outer, name), ip(packet, at).filter(is(ETHERTYPE_IPV6)))
        }
        47 => gre(packet, at),
        50 => Some((Encapsulation::Esp, None)),
        // RFC 3378: version 3, and nothing else.
        97 if be16(packet, at)? == 0x3000 => into(Encapsulation::EtherIp, ethernet(packet, at + 2)),
        115 => into(Encapsulation::L2tp, l2tp3(packet, at, usize::MAX)),
        137 => into(Encapsulation::Mpls, behind(packet, at, mpls)),
        // Ethernet in IPv6 (RFC 8986).
        143 => {
            let name = or_srv6(packet, outer, Encapsulation::EtherIp);
            into(name, ethernet(packet, at))
        }
        _ => None,
    }
}

fn is(wanted: u16) -> impl Fn(&(u16, usize)) -> bool {
    move |(ethertype, _)| *ethertype == wanted
}

/// Segment routing, where the outer IPv6 header is followed by such a routing header (RFC 8754).
fn or_srv6(packet: &[u8], outer: &Layers, otherwise: Encapsulation) -> Encapsulation {
    const ROUTING: u8 = 43;
    const SEGMENTS: u8 = 4;
    let is_routed =
        outer.v6 && packet.get(6) == Some(&ROUTING) && packet.get(42) == Some(&SEGMENTS);
    if is_routed { Encapsulation::Srv6 } else { otherwise }
}

/// Protocol and offset of what follows authentication headers (RFC 4302) and the options behind them.
fn authenticated(outer: &Layers, packet: &[u8]) -> Option<(u8, usize)> {
    let (mut protocol, mut at) = (outer.protocol, outer.payload);
    for _ in 0..MOST_HEADERS {
        let words = |at: usize| Some(usize::from(*packet.get(at + 1)?));
        match protocol {
            51 => (protocol, at) = (*packet.get(at)?, at + 4 * (words(at)? + 2)),
            60 if outer.v6 => (protocol, at) = (*packet.get(at)?, at + 8 * (words(at)? + 1)),
            _ => break,
        }
    }
    Some((protocol, at))
}

/// Whether a UDP datagram surely has no encapsulation, by its ports and its first bytes alone.
#[must_use]
pub fn is_bare_datagram(datagram: &[u8]) -> bool {
    let Some((header, payload)) = datagram.split_first_chunk::<UDP>() else { return true };
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let is_known = |port| {
        matches!(
            port,
            1701 | 2152 | 3544 | 4341 | 4500 | 4754 | 4789 | 4790 | 5247 | 6081 | 6635 | 8472
        )
    };
    let is_form = matches!(payload, [1..=4 | 8, 0, 0, 0, ..]);
    !is_known(port(0)) && !is_known(port(2)) && !is_form
}

/// The encapsulation in a UDP datagram.
fn datagram(packet: &[u8], at: usize) -> Option<Step> {
    let (source, destination) = (be16(packet, at)?, be16(packet, at + 2)?);
    let length = usize::from(be16(packet, at + 4)?).saturating_sub(UDP);
    let (payload, bytes) = (at + UDP, packet.get(at + UDP..)?);
    let into = |encapsulation, inner: Option<_>| Some((encapsulation, Some(inner?)));
    // Only the port of the receiver is fixed where the sender's tells flows apart.
    let found = match destination {
        4789 | 8472 => into(Encapsulation::Vxlan, vxlan(packet, payload)),
        4790 => into(Encapsulation::VxlanGpe, vxlan_gpe(packet, payload)),
        6081 => into(Encapsulation::Geneve, geneve(packet, payload)),
        4754 => gre(packet, payload),
        6635 => into(Encapsulation::Mpls, behind(packet, payload, mpls)),
        4341 => into(Encapsulation::Lisp, sure_ip(packet, payload + 8, payload + length)),
        _ => match (source, destination) {
            (2152, _) | (_, 2152) => into(Encapsulation::GtpU, gtp(packet, payload, length)),
            (1701, _) | (_, 1701) => into(Encapsulation::L2tp, l2tp(packet, payload, length)),
            (3544, _) | (_, 3544) => into(Encapsulation::Teredo, teredo(packet, payload, length)),
            (5247, _) | (_, 5247) => capwap(packet, payload),
            // A security parameter index of 0 is for messages of IKE (RFC 3948).
            (4500, _) | (_, 4500) if length > UDP && be32(packet, payload)? != 0 => {
                Some((Encapsulation::Esp, None))
            }
            _ => None,
        },
    };
    found.or_else(|| on_any_port(bytes, length, payload))
}

/// VXLAN and `WireGuard` by their form alone. The first byte tells nearly all others apart.
fn on_any_port(bytes: &[u8], length: usize, offset: usize) -> Option<Step> {
    match bytes.first()? {
        0x08 => {
            let is_header = bytes.get(1..4)? == [0; 3] && *bytes.get(7)? == 0;
            (is_header && is_ethernet(bytes, 8, length)).then_some(())?;
            let (ethertype, inner) = ethernet(bytes, 8)?;
            Some((Encapsulation::Vxlan, Some((ethertype, offset + inner))))
        }
        kind @ 1..=4 if bytes.get(1..4)? == [0; 3] => {
            let is_message = match kind {
                1 => length == 148,
                2 => length == 92,
                3 => length == 64,
                // Data, padded; no counter has come so far that its upper bytes are in use.
                _ => length >= 32 && length.is_multiple_of(16) && bytes.get(13..16)? == [0; 3],
            };
            is_message.then_some((Encapsulation::WireGuard, None))
        }
        _ => None,
    }
}

/// RFC 7348: the header has a network identifier.
fn vxlan(packet: &[u8], at: usize) -> Option<(u16, usize)> {
    (packet.get(at)? & 0x08 != 0).then_some(())?;
    ethernet(packet, at + 8)
}

/// As VXLAN, or with a next protocol of its own.
fn vxlan_gpe(packet: &[u8], at: usize) -> Option<(u16, usize)> {
    match packet.get(at)? & 0x04 {
        0 => vxlan(packet, at),
        _ => by_next_protocol(*packet.get(at + 3)?, packet, at + 8),
    }
}

/// RFC 8926: options, and an ethertype.
fn geneve(packet: &[u8], at: usize) -> Option<(u16, usize)> {
    let first = *packet.get(at)?;
    // Another version, or a message about the tunnel.
    if first >> 6 != 0 || packet.get(at + 1)? & 0x80 != 0 {
        return None;
    }
    let offset = at + 8 + 4 * usize::from(first & 0x3f);
    match be16(packet, at + 2)? {
        BRIDGED => ethernet(packet, offset),
        ethertype => packet.get(offset).map(|_| (ethertype, offset)),
    }
}

/// 3GPP TS 29.281: user data, with a sequence number, a PDU number and extension headers.
fn gtp(packet: &[u8], at: usize, length: usize) -> Option<(u16, usize)> {
    const USER_DATA: u8 = 255;
    const MOST_EXTENSIONS: usize = 8;
    let flags = *packet.get(at)?;
    if flags >> 4 != 3 || *packet.get(at + 1)? != USER_DATA {
        return None;
    }
    let mut offset = at + 8;
    if flags & 7 != 0 {
        offset += 4;
        for _ in 0..MOST_EXTENSIONS {
            // The last byte of each names the next.
            if flags & 4 == 0 || *packet.get(offset - 1)? == 0 {
                break;
            }
            let words = usize::from(*packet.get(offset)?);
            offset += 4 * words.max(1);
        }
    }
    // The session may be one of Ethernet, whose addresses begin like anything.
    match ip(packet, offset) {
        found @ Some(_) if !is_ethernet(packet, offset, at + length) => found,
        _ => is_ethernet(packet, offset, at + length).then(|| ethernet(packet, offset))?,
    }
}

/// Version 2 carries PPP (RFC 2661), version 3 most often Ethernet (RFC 3931).
fn l2tp(packet: &[u8], at: usize, length: usize) -> Option<(u16, usize)> {
    let flags = be16(packet, at)?;
    let has = |bit: u16| usize::from(flags & bit != 0);
    match (flags & 0x8000, flags & 15) {
        (0, 2) => {
            let mut offset = at + 6 + 2 * has(0x4000) + 4 * has(0x0800);
            if flags & 0x0200 != 0 {
                offset += 2 + usize::from(be16(packet, offset)?);
            }
            behind(packet, offset, ppp)
        }
        (0, 3) => l2tp3(packet, at + 4, at + length),
        _ => None,
    }
}

/// Behind the session stand a cookie and a sublayer, both of which only the ends of the tunnel know: the first place with a valid packet
/// is taken.
fn l2tp3(packet: &[u8], at: usize, most: usize) -> Option<(u16, usize)> {
    // Session 0 is for control messages.
    (be32(packet, at)? != 0).then_some(())?;
    [0, 4, 8, 12].into_iter().map(|bytes| at + 4 + bytes).find_map(|offset| {
        let whole = is_ethernet(packet, offset, most).then(|| ethernet(packet, offset));
        whole.unwrap_or_else(|| sure_ip(packet, offset, most))
    })
}

/// RFC 5415 section 4.3: a header of as many words as it says, and a frame of 802.3, or its first part. A frame of the radio
/// (T) and DTLS are not looked into; a keepalive (K) has none, and later parts (F) nothing that tells.
fn capwap(packet: &[u8], at: usize) -> Option<Step> {
    const DTLS: u32 = 0x0100_0000;
    const RADIO_FRAME: u32 = 0x100;
    const FRAGMENT: u32 = 0x80;
    const KEEPALIVE: u32 = 0x08;
    let (word, part) = (be32(packet, at)?, be32(packet, at + 4)?);
    let words = (word >> 19 & 0x1f) as usize;
    let has = |bit: u32| word & bit != 0;
    match word {
        DTLS => Some((Encapsulation::CapwapClosed, None)),
        _ if word > DTLS
            || words < 2
            || has(KEEPALIVE)
            || (has(FRAGMENT) && part & 0xfff8 != 0) =>
        {
            None
        }
        _ if has(RADIO_FRAME) => Some((Encapsulation::CapwapClosed, None)),
        _ => Some((Encapsulation::Capwap, Some(ethernet(packet, at + 4 * words)?))),
    }
}

fn sure_ip(packet: &[u8], at: usize, most: usize) -> Option<(u16, usize)> {
    let most = most.saturating_sub(at);
    ip(packet, at).filter(|&(ethertype, _)| is_ip(ethertype, &packet[at..], most))
}

/// RFC 4380: IPv6, behind an indication of the origin.
fn teredo(packet: &[u8], at: usize, length: usize) -> Option<(u16, usize)> {
    let offset = if be16(packet, at)? == 0 { at + 8 } else { at };
    sure_ip(packet, offset, at + length).filter(is(ETHERTYPE_IPV6))
}
