//! The link layers whose frames tailtrim reads.

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
}

/// Ethertypes of VLAN tags: 802.1Q, 802.1ad and the old QinQ value.
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

impl Link {
    /// Link types that [`from_link_type`](Self::from_link_type) understands, for error messages.
    pub const EXPECTED: &str = "1 (Ethernet), 101, 228 or 229 (raw IP), 113 or 276 (Linux cooked)";

    /// The link of a pcap link type number.
    #[must_use]
    pub fn from_link_type(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            // 12 and 14 are what BSDs write for 101.
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// Whether an Ethernet frame starts with a VLAN tag.
    #[must_use]
    pub fn is_tagged(frame: &[u8]) -> bool {
        let ethertype = frame.get(12..).and_then(|rest| rest.first_chunk::<2>());
        ethertype.is_some_and(|ethertype| VLAN_TAGS.contains(&u16::from_be_bytes(*ethertype)))
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
        let be16 = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let (mut ethertype, mut offset) = match self {
            Self::Ethernet => (be16(12)?, 14),
            Self::Cooked => (be16(14)?, 16),
            Self::Cooked2 => (be16(0)?, 20),
            Self::RawIp => match frame.first()? >> 4 {
                6 => (0x86dd, 0),
                _ => (0x0800, 0),
            },
        };
        while VLAN_TAGS.contains(&ethertype) {
            ethertype = be16(offset + 2)?;
            offset += 4;
        }
        Some((ethertype, offset))
    }
}
