//! The link layers whose frames tailtrim reads.

use super::encapsulation::{ppp, pppoe};
use super::layers::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use super::{be16, be32};

/// The header that a frame starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, with any number of VLAN tags.
    Ethernet,
    /// No L2 header: the frame starts with IPv4 or IPv6.
    RawIp,
    /// Linux "cooked" capture, version 1 (captures on the `any` device).
    Cooked,
    /// Linux "cooked" capture, version 2.
    Cooked2,
    /// The address family of a BSD loopback, in any byte order.
    Loopback,
    /// Attributes of a packet that Linux's netfilter logged.
    Nflog,
    /// PPP, with or without its address and control field.
    Ppp,
    /// A `PPPoE` header without that of Ethernet.
    PppEther,
    /// Cisco's HDLC.
    CiscoHdlc,
    /// Ethernet with the tag of a switch chip of so many bytes behind the addresses (DSA, EDSA, Broadcom).
    SwitchTag(u8),
    /// Ethernet behind the tag of a Broadcom switch chip.
    BroadcomPrepended,
}

/// Whether an ethertype is that of a VLAN tag: 802.1Q, 802.1ad and the older values of `QinQ`.
#[must_use]
pub fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300)
}

impl Link {
    /// Link types that [`from_link_type`](Self::from_link_type) understands, for error messages.
    pub const EXPECTED: &str = "1 (Ethernet), 101, 228 or 229 (raw IP), 113 or 276 (Linux cooked), 0 or 108 \
         (BSD loopback), 9, 50 or 51 (PPP), 104 (C-HDLC), 239 (NFLOG), 281, 282, 284 or 285 (switch tags)";

    /// The link of a pcap link type number.
    #[must_use]
    pub fn from_link_type(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Ethernet,
            // 12 and 14 are what BSDs write for 101.
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            0 | 108 => Self::Loopback,
            9 | 50 => Self::Ppp,
            51 => Self::PppEther,
            104 => Self::CiscoHdlc,
            239 => Self::Nflog,
            // Broadcom and DSA; EDSA has an ethertype of its own and a reserved field before the tag.
            281 | 284 => Self::SwitchTag(4),
            282 => Self::BroadcomPrepended,
            285 => Self::SwitchTag(8),
            _ => return None,
        })
    }

    /// Whether an Ethernet frame starts with a VLAN tag.
    #[must_use]
    pub fn is_tagged(frame: &[u8]) -> bool {
        be16(frame, 12).is_some_and(is_vlan)
    }

    /// Ethertype and offset of what follows the L2 header. `None` where the frame ends before.
    pub(super) fn header(self, frame: &[u8]) -> Option<(u16, usize)> {
        let ethernet = |tag: usize| Some((be16(frame, 12 + tag)?, 14 + tag));
        match self {
            Self::Ethernet => ethernet(0),
            Self::SwitchTag(bytes) => ethernet(bytes.into()),
            Self::BroadcomPrepended => Some((be16(frame, 16)?, 18)),
            Self::Cooked => Some((be16(frame, 14)?, 16)),
            Self::Cooked2 => Some((be16(frame, 0)?, 20)),
            Self::RawIp => match frame.first()? >> 4 {
                6 => Some((ETHERTYPE_IPV6, 0)),
                _ => Some((ETHERTYPE_IPV4, 0)),
            },
            Self::Loopback => Some((of_family(be32(frame, 0)?), 4)),
            Self::Nflog => logged(frame),
            Self::Ppp => match frame.first()? {
                // Cisco's HDLC on a serial line that was taken for PPP.
                0x0f | 0x8f => Self::CiscoHdlc.header(frame),
                _ => ppp(frame),
            },
            Self::PppEther => pppoe(frame),
            Self::CiscoHdlc => Some((be16(frame, 2)?, 4)),
        }
    }

    /// The identifier in the first VLAN tag of an Ethernet frame; `None` where there is no tag.
    #[must_use]
    pub fn vlan(self, frame: &[u8]) -> Option<u16> {
        let tag = frame.get(14..).and_then(|rest| rest.first_chunk::<2>());
        let is_tagged = self == Self::Ethernet && Self::is_tagged(frame);
        tag.filter(|_| is_tagged).map(|tag| u16::from_be_bytes(*tag) & 0x0fff)
    }

    /// Ethertype and offset of what follows the L2 header and its VLAN tags. `None` where the frame
    /// ends before.
    #[must_use]
    pub fn payload(self, frame: &[u8]) -> Option<(u16, usize)> {
        let (mut ethertype, mut offset) = self.header(frame)?;
        while is_vlan(ethertype) {
            ethertype = be16(frame, offset + 2)?;
            offset += 4;
        }
        Some((ethertype, offset))
    }
}

/// The ethertype of an address family, in any byte order; 0 of a family that is not IP.
fn of_family(family: u32) -> u16 {
    match family.min(family.swap_bytes()) {
        2 => ETHERTYPE_IPV4,
        // Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
        10 | 24 | 28 | 30 => ETHERTYPE_IPV6,
        _ => 0,
    }
}

/// The packet in the attributes of NFLOG, whose lengths are in the byte order of the host.
fn logged(frame: &[u8]) -> Option<(u16, usize)> {
    const PAYLOAD: u16 = 9;
    let ethertype = of_family(u32::from(*frame.first()?));
    // Types are small: the one byte of the first that is not 0 tells the order.
    let little = *frame.get(6)? != 0;
    let word =
        |at: usize| be16(frame, at).map(|word| if little { word.swap_bytes() } else { word });
    let mut at = 4;
    loop {
        let length = usize::from(word(at)?);
        if word(at + 2)? & 0x7fff == PAYLOAD {
            return Some((ethertype, at + 4));
        }
        // Attributes are aligned to four bytes, and none is shorter than its header.
        at += length.max(4).next_multiple_of(4);
    }
}
