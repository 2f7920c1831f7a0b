//! From the start of an IP header to what it carries.

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

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;

/// IPv6 extension headers are followed this far; a longer chain is an attack, not traffic.
const MOST_EXTENSIONS: usize = 8;

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
                let part = u16::from_be_bytes([header[2], header[3]]);
                // The first and last one is a whole packet (RFC 6946).
                layers.fragment = part & 0xfff9 != 0;
                layers.later_fragment = part & 0xfff8 != 0;
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
