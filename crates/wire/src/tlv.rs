//! TLVs behind a STAMP test packet (RFC 8972 section 4): flags, type, two bytes of length, value.

use super::key::{HMAC_LEN, Key};
use crate::bytes::{field, put};

/// Bytes in front of a value.
pub const HEADER_LEN: usize = 4;
/// U: the reflector does not know the type. A sender sets it, a reflector that knows clears it.
pub const UNRECOGNIZED: u8 = 0x80;
/// M: the length does not fit the type or the packet.
pub const MALFORMED: u8 = 0x40;
/// I: the HMAC of the TLVs is wrong.
pub const INTEGRITY: u8 = 0x20;

/// Types that IANA assigned (RFC 8972 section 5.1).
pub mod kind {
    /// Extra Padding (section 4.1): any bytes.
    pub const EXTRA_PADDING: u8 = 1;
    /// Location (4.2): ports and addresses that the reflector saw.
    pub const LOCATION: u8 = 2;
    /// Timestamp Information (4.3).
    pub const TIMESTAMP_INFORMATION: u8 = 3;
    /// Class of Service (4.4).
    pub const CLASS_OF_SERVICE: u8 = 4;
    /// Direct Measurement (4.5): counters of packets.
    pub const DIRECT_MEASUREMENT: u8 = 5;
    /// Access Report (4.6).
    pub const ACCESS_REPORT: u8 = 6;
    /// Follow-Up Telemetry (4.7): when the reply before this one really left.
    pub const FOLLOW_UP: u8 = 7;
    /// HMAC (4.8).
    pub const HMAC: u8 = 8;
}

/// Whether a value of this type may have this length; of a type that is not known, any.
#[must_use]
pub const fn fits(kind: u8, length: usize) -> bool {
    match kind {
        kind::CLASS_OF_SERVICE | kind::ACCESS_REPORT => length == 4,
        // Behind what these say themselves there may be sub-TLVs (sections 4.2, 4.3).
        kind::LOCATION | kind::TIMESTAMP_INFORMATION => length >= 4,
        kind::DIRECT_MEASUREMENT => length == 12,
        kind::FOLLOW_UP | kind::HMAC => length == HMAC_LEN,
        _ => true,
    }
}

/// One TLV as it stands in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// See [`UNRECOGNIZED`], [`MALFORMED`], [`INTEGRITY`].
    pub flags: u8,
    /// See [`kind`].
    pub kind: u8,
    /// As far as it is there: fewer bytes than the header says where the TLV does not fit the packet.
    pub value: &'a [u8],
    /// Where it starts, from the first TLV on.
    pub at: usize,
    /// Whether all of the value is there.
    pub whole: bool,
}

/// The TLVs in the bytes behind a test packet. Ends behind the first that does not fit; bytes that are too
/// few for a header are none, and neither are zeros up to the end: type 0 is reserved, and a TWAMP-Light sender
/// may pad with them (RFC 8762 section 4.6).
pub fn tlvs(bytes: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    let end = occupied(bytes);
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|_| at < end)?;
        let [flags, kind, high, low] = *rest.first_chunk::<HEADER_LEN>()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let whole = HEADER_LEN + length <= rest.len();
        let value = &rest[HEADER_LEN..if whole { HEADER_LEN + length } else { rest.len() }];
        let tlv = Tlv { flags, kind, value, at, whole };
        at += HEADER_LEN + value.len();
        Some(tlv)
    })
}

/// Bytes up to the last that is not zero.
#[must_use]
pub fn occupied(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Appends a TLV as a sender does: with U set (section 4).
pub fn append(packet: &mut Vec<u8>, kind: u8, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    packet.extend([UNRECOGNIZED, kind]);
    packet.extend(length.to_be_bytes());
    packet.extend(&value[..usize::from(length)]);
}

/// Appends the HMAC of the TLVs in a packet whose first `base_len` bytes are the test packet. It covers the
/// sequence number and the TLVs in front of it (section 4.8).
pub fn append_hmac(packet: &mut Vec<u8>, base_len: usize, key: &Key) {
    let hmac = key.sign(&[&packet[..4.min(packet.len())], packet.get(base_len..).unwrap_or(&[])]);
    append(packet, kind::HMAC, &hmac);
}

/// Writes a TLV as a sender does over the bytes from `at` on, where there is room. Returns where it ends.
#[must_use]
pub fn place(packet: &mut [u8], at: usize, kind: u8, value: &[u8]) -> usize {
    put(packet, at, &[UNRECOGNIZED, kind]);
    put(packet, at + 2, &(value.len() as u16).to_be_bytes());
    put(packet, at + HEADER_LEN, value);
    at + HEADER_LEN + value.len()
}

/// Makes the rest of a packet padding (section 4.1), as far as it has room for the header; its bytes stay.
pub fn pad(packet: &mut [u8], at: usize) {
    if let Some(length) = packet.len().checked_sub(at + HEADER_LEN) {
        put(packet, at, &[UNRECOGNIZED, kind::EXTRA_PADDING]);
        put(packet, at + 2, &(length as u16).to_be_bytes());
    }
}

/// Result of checking the HMAC among the TLVs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integrity {
    /// There is none.
    Absent,
    /// It is right.
    Right,
    /// It is wrong, or stands where it must not: only padding may follow it.
    Wrong,
}

/// Checks the TLVs of a packet whose first `base_len` bytes are the test packet. Without a key nothing can be
/// verified: an HMAC is wrong then, since data in front of one must not be used unverified (section 4.8).
#[must_use]
pub fn integrity(packet: &[u8], base_len: usize, key: Option<&Key>) -> Integrity {
    let Some(behind) = packet.get(base_len..) else { return Integrity::Absent };
    let mut found: Option<Tlv<'_>> = None;
    for tlv in tlvs(behind) {
        if found.is_some() && tlv.kind != kind::EXTRA_PADDING {
            return Integrity::Wrong;
        }
        if tlv.kind == kind::HMAC {
            found = Some(tlv);
        }
    }
    let Some(tlv) = found else { return Integrity::Absent };
    let right = tlv.whole
        && tlv.value.len() == HMAC_LEN
        && key.is_some_and(|key| {
            key.is_signed(&[&packet[..4], &behind[..tlv.at]], &field(tlv.value, 0))
        });
    if right { Integrity::Right } else { Integrity::Wrong }
}

/// Where stamps come from (section 4.3): what synchronises the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Synchronization {
    /// NTP.
    Ntp = 1,
    /// PTP.
    Ptp = 2,
    /// A building's clock.
    SsuBits = 3,
    /// Satellites.
    Satellites = 4,
    /// Nothing.
    Free = 5,
}

/// Source of stamps (sections 4.3 and 4.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StampedBy {
    /// The NIC.
    Hardware = 1,
    /// The kernel or the program.
    Software = 2,
    /// Something further up.
    Control = 3,
}

/// The value of Follow-Up Telemetry: when the reply with this number really left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FollowUp {
    /// The reflector's number of that reply; 0 with a stamp of 0 where nothing is known.
    pub sequence: u32,
    /// Written as the error estimate of the reflector's packet says.
    pub stamp: u64,
    /// See [`StampedBy`]; 0 where nothing is known.
    pub by: u8,
}

impl FollowUp {
    /// Bytes 0–3 the number, 4–11 the stamp, 12 by whom; the others are zero.
    #[must_use]
    pub fn write(&self) -> [u8; 16] {
        let mut value = [0; 16];
        put(&mut value, 0, &self.sequence.to_be_bytes());
        put(&mut value, 4, &self.stamp.to_be_bytes());
        value[12] = self.by;
        value
    }

    /// The value; `None` where it has another length.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let value: &[u8; 16] = value.try_into().ok()?;
        Some(Self {
            sequence: u32::from_be_bytes(field(value, 0)),
            stamp: u64::from_be_bytes(field(value, 4)),
            by: value[12],
        })
    }
}

/// The follow-up telemetry in a reply whose first `base_len` bytes are the test packet, as its sender is to read
/// it (section 4): none where TLVs are not authentic, where one before it is malformed, or where the reflector does
/// not know the type or tells nothing.
#[must_use]
pub fn follow_up(packet: &[u8], base_len: usize, key: Option<&Key>) -> Option<FollowUp> {
    let behind = packet.get(base_len..)?;
    if key.is_some() && integrity(packet, base_len, key) != Integrity::Right
        || tlvs(behind).any(|tlv| tlv.flags & INTEGRITY != 0)
    {
        return None;
    }
    tlvs(behind)
        .take_while(|tlv| tlv.whole && tlv.flags & MALFORMED == 0)
        .find(|tlv| tlv.kind == kind::FOLLOW_UP && tlv.flags & UNRECOGNIZED == 0)
        .and_then(|tlv| FollowUp::read(tlv.value))
        .filter(|telemetry| telemetry.stamp != 0)
}

/// The value of Class of Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassOfService {
    /// DSCP1: the one that the sender wants for the reply, 0 to 63.
    pub wanted: u8,
    /// DSCP2: the one that the request came with.
    pub seen: u8,
    /// The two bits of explicit congestion notification that the request came with.
    pub ecn: u8,
    /// RP: 1 where the reflector's policy does not allow what was wanted.
    pub refused: u8,
}

impl ClassOfService {
    /// Six bits, six bits, two bits, two bits; the others are zero.
    #[must_use]
    pub fn write(&self) -> [u8; 4] {
        let bits = u32::from(self.wanted & 0x3f) << 26
            | u32::from(self.seen & 0x3f) << 20
            | u32::from(self.ecn & 3) << 18
            | u32::from(self.refused & 3) << 16;
        bits.to_be_bytes()
    }

    /// The value; `None` where it has another length.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let bits = u32::from_be_bytes(value.try_into().ok()?);
        let part = |shift: u32, mask: u32| (bits >> shift & mask) as u8;
        Some(Self {
            wanted: part(26, 0x3f),
            seen: part(20, 0x3f),
            ecn: part(18, 3),
            refused: part(16, 3),
        })
    }
}

/// The value of Direct Measurement: packets of the session, counted modulo 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectMeasurement {
    /// Sent by the sender.
    pub sender_sent: u32,
    /// Received by the reflector.
    pub reflector_received: u32,
    /// Sent by the reflector.
    pub reflector_sent: u32,
}

impl DirectMeasurement {
    /// Three times four bytes.
    #[must_use]
    pub fn write(&self) -> [u8; 12] {
        let mut value = [0; 12];
        put(&mut value, 0, &self.sender_sent.to_be_bytes());
        put(&mut value, 4, &self.reflector_received.to_be_bytes());
        put(&mut value, 8, &self.reflector_sent.to_be_bytes());
        value
    }

    /// The value; `None` where it has another length.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let value: &[u8; 12] = value.try_into().ok()?;
        Some(Self {
            sender_sent: u32::from_be_bytes(field(value, 0)),
            reflector_received: u32::from_be_bytes(field(value, 4)),
            reflector_sent: u32::from_be_bytes(field(value, 8)),
        })
    }
}
