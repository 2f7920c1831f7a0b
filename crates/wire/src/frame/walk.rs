//! From the start of an IP header to what it carries.

use super::Link;

/// Transport protocols whose checksum has a known place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// Offsets from the first byte of an IP header.
#[derive(Debug, Clone, Copy)]
pub struct Layers {
    /// IPv6 rather than IPv4.
    pub v6: bool,
    /// Where the packet ends: link padding and trailers come after it. `usize::MAX` when the header
    /// does not say (segmentation offload writes a total length of 0).
    pub end: usize,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Where the payload starts.
    pub payload: usize,
    /// A fragment, also the first one.
    pub fragment: bool,
    /// A fragment but the first: no header stands at `payload`.
    pub later_fragment: bool,
    /// The transport header at `payload`; `None` in fragments but the first.
    pub transport: Option<Transport>,
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_BRIDGED: u16 = 0x6558;

/// UDP port of VXLAN (RFC 7348).
pub const VXLAN_PORT: u16 = 4789;

/// IPv6 extension headers are followed this far; a longer chain is an attack, not traffic.
const MOST_EXTENSIONS: usize = 8;

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Reads the IP header at the start of `packet`. `None` where there is no valid one.
#[must_use]
pub fn layers(ethertype: u16, packet: &[u8]) -> Option<Layers> {
    match ethertype {
        ETHERTYPE_IPV4 => ipv4(packet),
        ETHERTYPE_IPV6 => ipv6(packet),
        _ => None,
    }
}

fn transport(protocol: u8) -> Option<Transport> {
    match protocol {
        6 => Some(Transport::Tcp),
        17 => Some(Transport::Udp),
        _ => None,
    }
}

fn ipv4(packet: &[u8]) -> Option<Layers> {
    let header = packet.first_chunk::<20>()?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_len < 20 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let later_fragment = fragment & 0x1fff != 0;
    Some(Layers {
        v6: false,
        end: if total < header_len { usize::MAX } else { total },
        protocol: header[9],
        payload: header_len,
        fragment: fragment & 0x3fff != 0,
        later_fragment,
        transport: if later_fragment { None } else { transport(header[9]) },
    })
}

fn ipv6(packet: &[u8]) -> Option<Layers> {
    let header = packet.first_chunk::<40>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let mut layers = Layers {
        v6: true,
        end: if length == 0 { usize::MAX } else { 40 + length },
        protocol: header[6],
        payload: 40,
        fragment: false,
        later_fragment: false,
        transport: None,
    };
    for _ in 0..MOST_EXTENSIONS {
        let Some(extension) = packet.get(layers.payload..) else { return Some(layers) };
        match layers.protocol {
            // Hop-by-hop, routing, destination options: length in units of 8 beyond the first 8.
            0 | 43 | 60 => {
                let Some(&[next, length]) = extension.first_chunk::<2>() else {
                    return Some(layers);
                };
                layers.protocol = next;
                layers.payload += 8 * (usize::from(length) + 1);
            }
            44 => {
                let Some(&header) = extension.first_chunk::<8>() else { return Some(layers) };
                layers.protocol = header[0];
                layers.payload += 8;
                layers.fragment = true;
                layers.later_fragment = u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0;
                if layers.later_fragment {
                    return Some(layers);
                }
            }
            protocol => {
                layers.transport = transport(protocol);
                return Some(layers);
            }
        }
    }
    Some(layers)
}

/// Ethertype and offset of the packet inside a VXLAN or GRE tunnel whose outer IP header is at the start
/// of `packet`. `None` when there is no tunnel.
#[must_use]
pub fn inner(ethertype: u16, packet: &[u8]) -> Option<(u16, usize)> {
    within(&layers(ethertype, packet)?, packet)
}

/// The same where the layers of the outer packet are known.
#[must_use]
pub fn within(outer: &Layers, packet: &[u8]) -> Option<(u16, usize)> {
    let bridged = |offset: usize| {
        let (ethertype, payload) = Link::Ethernet.payload(packet.get(offset..)?)?;
        Some((ethertype, offset + payload))
    };
    match outer.protocol {
        17 if outer.transport.is_some() && be16(packet, outer.payload + 2)? == VXLAN_PORT => {
            bridged(outer.payload + 8 + 8)
        }
        47 => {
            let flags = be16(packet, outer.payload)?;
            // RFC 2784 and 2890: checksum, key and sequence number take four bytes each.
            let options = [0x8000, 0x2000, 0x1000].iter().filter(|&&bit| flags & bit != 0).count();
            let offset = outer.payload + 4 + 4 * options;
            match be16(packet, outer.payload + 2)? {
                ETHERTYPE_BRIDGED => bridged(offset),
                inner @ (ETHERTYPE_IPV4 | ETHERTYPE_IPV6) => Some((inner, offset)),
                _ => None,
            }
        }
        _ => None,
    }
}
