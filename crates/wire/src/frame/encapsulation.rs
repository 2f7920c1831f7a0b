//! Encapsulations by ethertype: tags, labels and frames in frames. Those in IP are in [`tunnel`](super::tunnel).

use super::layers::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::link::is_vlan;
use super::{Link, be16, be32, layers};
use crate::checksum::{folded, sum};
use serde::{Deserialize, Serialize};

/// A header, or several that belong together, around a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Encapsulation {
    #[serde(rename = "VLAN")]
    Vlan,
    /// Tags of other kinds: `VN-Tag`, `E-TAG`, HSR, R-TAG, Cisco's metadata, Arista's time stamps.
    #[serde(rename = "other tag")]
    Tag,
    #[serde(rename = "MACsec")]
    Macsec,
    #[serde(rename = "PBB")]
    Pbb,
    #[serde(rename = "MPLS")]
    Mpls,
    #[serde(rename = "PPPoE")]
    Pppoe,
    #[serde(rename = "NSH")]
    Nsh,
    #[serde(rename = "GRE")]
    Gre,
    #[serde(rename = "PPTP")]
    Pptp,
    #[serde(rename = "ERSPAN")]
    Erspan,
    #[serde(rename = "IPIP")]
    IpIp,
    #[serde(rename = "6in4")]
    SixInFour,
    #[serde(rename = "4in6")]
    FourInSix,
    #[serde(rename = "6in6")]
    SixInSix,
    #[serde(rename = "SRv6")]
    Srv6,
    #[serde(rename = "Ethernet in IP")]
    EtherIp,
    #[serde(rename = "VXLAN")]
    Vxlan,
    #[serde(rename = "VXLAN-GPE")]
    VxlanGpe,
    #[serde(rename = "GENEVE")]
    Geneve,
    #[serde(rename = "GTP-U")]
    GtpU,
    #[serde(rename = "L2TP")]
    L2tp,
    #[serde(rename = "LISP")]
    Lisp,
    #[serde(rename = "Teredo")]
    Teredo,
    #[serde(rename = "CAPWAP")]
    Capwap,
    /// Encrypted: no packet can be seen in it.
    #[serde(rename = "IPsec ESP")]
    Esp,
    /// Encrypted as well.
    #[serde(rename = "WireGuard")]
    WireGuard,
    /// Encrypted, or with a frame of IEEE 802.11.
    #[serde(rename = "CAPWAP with 802.11 or DTLS")]
    CapwapClosed,
}

impl Encapsulation {
    /// The name of an encapsulation whose packets are never seen, as it is encrypted or not understood; `None` of others.
    #[must_use]
    pub fn closed(self) -> Option<&'static str> {
        match self {
            Self::Esp => Some("IPsec ESP"),
            Self::WireGuard => Some("WireGuard"),
            Self::CapwapClosed => Some("CAPWAP with 802.11 or DTLS"),
            _ => None,
        }
    }
}

/// An encapsulation with ethertype and offset of what is in it; `None` where that is not seen.
pub(super) type Step = (Encapsulation, Option<(u16, usize)>);

const MPLS: u16 = 0x8847;
pub(super) const BRIDGED: u16 = 0x6558;
pub(super) const NSH: u16 = 0x894f;

/// Ethertypes of tags, and the bytes between each and the ethertype that follows.
const TAGS: [(u16, usize); 6] = [
    // VN-Tag, E-TAG (802.1BR), HSR (IEC 62439-3), R-TAG (802.1CB), Cisco's metadata.
    (0x8926, 4),
    (0x893f, 6),
    (0x892f, 4),
    (0xf1c1, 4),
    (0x8909, 6),
    // Arista's time stamps, of 48 bits; those of 64 have two bytes more.
    (0xd28b, 10),
];

/// Labels of one packet are followed this far; a longer stack is an attack, not traffic.
const MOST_LABELS: usize = 16;

/// The encapsulation that `packet` starts with, where `ethertype` is one.
pub(super) fn step(ethertype: u16, packet: &[u8]) -> Option<Step> {
    let into = |encapsulation, inner: Option<_>| Some((encapsulation, Some(inner?)));
    match ethertype {
        _ if is_vlan(ethertype) => into(Encapsulation::Vlan, tagged(packet, 2)),
        MPLS | 0x8848 => into(Encapsulation::Mpls, mpls(packet)),
        0x8864 => into(Encapsulation::Pppoe, pppoe(packet)),
        0x88e7 => into(Encapsulation::Pbb, ethernet(packet, 4)),
        NSH => into(Encapsulation::Nsh, nsh(packet)),
        BRIDGED => into(Encapsulation::EtherIp, ethernet(packet, 0)),
        0x88e5 => macsec(packet),
        _ => {
            let &(_, bytes) = TAGS.iter().find(|(tag, _)| *tag == ethertype)?;
            let is_long = ethertype == 0xd28b && be16(packet, 2)? & 0xf0 == 0x10;
            into(Encapsulation::Tag, tagged(packet, bytes + if is_long { 2 } else { 0 }))
        }
    }
}

/// Ethertype and offset of the packet behind a tag of so many bytes.
fn tagged(packet: &[u8], bytes: usize) -> Option<(u16, usize)> {
    Some((be16(packet, bytes)?, bytes + 2))
}

/// Ethertype and offset of the payload of the Ethernet frame at `offset`.
pub(super) fn ethernet(packet: &[u8], offset: usize) -> Option<(u16, usize)> {
    let (ethertype, payload) = Link::Ethernet.header(packet.get(offset..)?)?;
    Some((ethertype, offset + payload))
}

/// The IP packet at `offset`, by its version.
pub(super) fn ip(packet: &[u8], offset: usize) -> Option<(u16, usize)> {
    match packet.get(offset)? >> 4 {
        4 => Some((ETHERTYPE_IPV4, offset)),
        6 => Some((ETHERTYPE_IPV6, offset)),
        _ => None,
    }
}

/// Whether an IP packet of at most `most` bytes starts here, surely: with the checksum of its header, or as IPv6 with a usual protocol.
pub(super) fn is_ip(ethertype: u16, packet: &[u8], most: usize) -> bool {
    const ICMP_V6: u8 = 58;
    let Some(found) = layers(ethertype, packet) else { return false };
    let is_sure = if found.v6 {
        found.transport.is_some() || found.protocol == ICMP_V6
    } else {
        packet
            .get(..usize::from(packet[0] & 0x0f) * 4)
            .is_some_and(|header| folded(sum(header)) == 0)
    };
    is_sure && found.end <= most
}

/// Whether an Ethernet frame with an IP packet or ARP starts at `offset`, surely.
pub(super) fn is_ethernet(packet: &[u8], offset: usize, most: usize) -> bool {
    const ARP: u16 = 0x0806;
    let Some(frame) = packet.get(offset..) else { return false };
    Link::Ethernet.payload(frame).is_some_and(|(ethertype, payload)| {
        let most = most.saturating_sub(offset).saturating_sub(payload);
        frame.get(payload..).is_some_and(|packet| match ethertype {
            // Ethernet, IPv4.
            ARP => packet.starts_with(&[0, 1, 8, 0]),
            _ => is_ip(ethertype, packet, most),
        })
    })
}

/// The packet behind a stack of labels. They do not say its kind: IP begins with its version, a control word with 0 (RFC 4385), and everything else is
/// taken for Ethernet. An Ethernet address may begin like each of them, so a packet with a valid header decides first.
pub(super) fn mpls(packet: &[u8]) -> Option<(u16, usize)> {
    let (labels, _) = packet.as_chunks::<4>();
    let bottom = labels.iter().take(MOST_LABELS).position(|label| label[2] & 1 != 0)?;
    let at = 4 * (bottom + 1);
    let inner = packet.get(at..)?;
    // The length that outer layers say is not known here, and a snap length may have cut the packet.
    let most = usize::MAX;
    let found = ip(packet, at);
    if let Some((ethertype, _)) = found
        && (is_ip(ethertype, inner, most) || !is_ethernet(packet, at, most))
    {
        return found;
    }
    match inner.first()? >> 4 {
        0 if is_ethernet(packet, at + 4, most) || !is_ethernet(packet, at, most) => {
            ethernet(packet, at + 4)
        }
        // An associated channel of the label (RFC 5586): messages of routers.
        1 if !is_ethernet(packet, at, most) => None,
        _ => ethernet(packet, at),
    }
}

/// The packet in a `PPPoE` session (RFC 2516).
pub(super) fn pppoe(packet: &[u8]) -> Option<(u16, usize)> {
    let (ethertype, offset) = match packet.first_chunk::<6>()? {
        [0x11, 0, ..] => ppp(&packet[6..])?,
        _ => return None,
    };
    Some((ethertype, 6 + offset))
}

/// The packet in a PPP frame, with or without address and control field, and with a protocol number of one byte or two. Anything that is not
/// IP or the like has the ethertype 0 and begins with its number.
pub(super) fn ppp(frame: &[u8]) -> Option<(u16, usize)> {
    let start = if frame.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let first = *frame.get(start)?;
    let (protocol, payload) = match first & 1 {
        1 => (u16::from(first), start + 1),
        _ => (be16(frame, start)?, start + 2),
    };
    match protocol {
        0x0021 => Some((ETHERTYPE_IPV4, payload)),
        0x0057 => Some((ETHERTYPE_IPV6, payload)),
        0x0281 | 0x0283 => Some((MPLS, payload)),
        // Bridging (RFC 3518), of an Ethernet frame.
        0x0031 if frame.get(payload + 1) == Some(&1) => ethernet(frame, payload + 2),
        _ => Some((0, start)),
    }
}

/// The packet behind a network service header (RFC 8300).
fn nsh(packet: &[u8]) -> Option<(u16, usize)> {
    let word = be32(packet, 0)?;
    // Version 0, with at least the service path.
    let length = usize::from((word >> 16 & 0x3f) as u8) * 4;
    if word >> 30 != 0 || length < 8 {
        return None;
    }
    by_next_protocol(word as u8, packet, length)
}

/// The packet whose protocol has this number in NSH and VXLAN-GPE.
pub(super) fn by_next_protocol(number: u8, packet: &[u8], at: usize) -> Option<(u16, usize)> {
    match number {
        1 => Some((ETHERTYPE_IPV4, at)),
        2 => Some((ETHERTYPE_IPV6, at)),
        3 => ethernet(packet, at),
        4 => Some((NSH, at)),
        5 => Some((MPLS, at)),
        _ => None,
    }
}

/// The packet in a frame of `MACsec` (802.1AE), unless it is encrypted.
fn macsec(packet: &[u8]) -> Option<Step> {
    let control = *packet.first()?;
    // Encrypted, changed text; a channel of eight bytes.
    if control & 0x0c != 0 {
        return Some((Encapsulation::Macsec, None));
    }
    let bytes = if control & 0x20 != 0 { 14 } else { 6 };
    Some((Encapsulation::Macsec, Some((be16(packet, bytes)?, bytes + 2))))
}
