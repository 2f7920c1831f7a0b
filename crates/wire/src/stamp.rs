//! STAMP test packets (RFC 8762 section 4, with the session identifier of RFC 8972 section 3).
//!
//! Unauthenticated packets have 44 bytes both ways, authenticated ones 112, of which the last 16 are the
//! HMAC over the first 96. What follows are TLVs (see [`tlv`](super::tlv)).

use super::key::{HMAC_LEN, Key};
use super::time::ErrorEstimate;
use crate::bytes::{field, put};

/// Bytes of an unauthenticated test packet, in both directions.
pub const OPEN_LEN: usize = 44;
/// Bytes of an authenticated one.
pub const AUTHENTICATED_LEN: usize = 112;
/// The port that IANA assigned to STAMP and TWAMP-Test receivers (RFC 8545).
pub const PORT: u16 = 862;
/// Bytes of a packet that its HMAC covers: six blocks of 16 bytes.
const SIGNED: usize = AUTHENTICATED_LEN - HMAC_LEN;

/// Where a field stands without and with authentication.
struct Layout {
    stamp: usize,
    error: usize,
    ssid: usize,
    received: usize,
    sender_sequence: usize,
    sender_stamp: usize,
    sender_error: usize,
    ttl: usize,
}

const OPEN: Layout = Layout {
    stamp: 4,
    error: 12,
    ssid: 14,
    received: 16,
    sender_sequence: 24,
    sender_stamp: 28,
    sender_error: 36,
    ttl: 40,
};

const AUTHENTICATED: Layout = Layout {
    stamp: 16,
    error: 24,
    ssid: 26,
    received: 32,
    sender_sequence: 48,
    sender_stamp: 64,
    sender_error: 72,
    ttl: 80,
};

impl Layout {
    const fn of(key: Option<&Key>) -> &'static Self {
        if key.is_some() { &AUTHENTICATED } else { &OPEN }
    }
}

/// Bytes of a packet in front of its TLVs, with or without a key.
#[must_use]
pub const fn base_len(key: Option<&Key>) -> usize {
    if key.is_some() { AUTHENTICATED_LEN } else { OPEN_LEN }
}

/// Why bytes are not a test packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StampError {
    /// Not all of it is there.
    #[error("a STAMP packet of {bytes} bytes, expected {least} or more")]
    Short {
        /// Bytes that there are.
        bytes: usize,
        /// Bytes of such a packet.
        least: usize,
    },
    /// The HMAC is not that of the packet: another key, or another sender.
    #[error("the HMAC of the packet is wrong (different keys?)")]
    Hmac,
}

/// Fields that a sender writes into a test packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderPacket {
    /// From 0 on.
    pub sequence: u32,
    /// T1, written as `error.format` says.
    pub stamp: u64,
    /// Error estimate of T1.
    pub error: ErrorEstimate,
    /// The session, of the sender's choice; 0 where there is none.
    pub ssid: u16,
}

impl SenderPacket {
    /// Writes the packet over the first bytes, which are [`OPEN_LEN`], or with a key [`AUTHENTICATED_LEN`];
    /// what is not a field becomes zero. TLVs behind stay as they are.
    ///
    /// # Errors
    /// [`StampError::Short`] when there is no room.
    pub fn write(&self, key: Option<&Key>, packet: &mut [u8]) -> Result<(), StampError> {
        let base = base_of(packet, key)?;
        let layout = Layout::of(key);
        base.fill(0);
        put(base, 0, &self.sequence.to_be_bytes());
        put(base, layout.stamp, &self.stamp.to_be_bytes());
        put(base, layout.error, &self.error.write());
        put(base, layout.ssid, &self.ssid.to_be_bytes());
        sign(base, key);
        Ok(())
    }

    /// Reads a packet, and checks its HMAC where there is a key.
    ///
    /// # Errors
    /// [`StampError`].
    pub fn read(key: Option<&Key>, packet: &[u8]) -> Result<Self, StampError> {
        let base = checked(packet, key)?;
        let layout = Layout::of(key);
        Ok(Self {
            sequence: u32::from_be_bytes(field(base, 0)),
            stamp: u64::from_be_bytes(field(base, layout.stamp)),
            error: ErrorEstimate::read(field(base, layout.error)),
            ssid: u16::from_be_bytes(field(base, layout.ssid)),
        })
    }
}

/// Fields that a reflector writes into its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReflectorPacket {
    /// The reflector's own number where it keeps state, otherwise the sender's.
    pub sequence: u32,
    /// T3, written as `error.format` says.
    pub stamp: u64,
    /// Error estimate of T2 and T3.
    pub error: ErrorEstimate,
    /// The session of the request.
    pub ssid: u16,
    /// T2, when the request was received.
    pub received: u64,
    /// The request's number.
    pub sender_sequence: u32,
    /// T1 of the request.
    pub sender_stamp: u64,
    /// The request's error estimate.
    pub sender_error: ErrorEstimate,
    /// TTL or hop limit that the request came with; 255 is what a sender sets (RFC 8762 section 4.3.1).
    pub sender_ttl: u8,
}

impl ReflectorPacket {
    /// Writes the packet over the first bytes, as [`SenderPacket::write`].
    ///
    /// # Errors
    /// [`StampError::Short`] when there is no room.
    pub fn write(&self, key: Option<&Key>, packet: &mut [u8]) -> Result<(), StampError> {
        let base = base_of(packet, key)?;
        base.fill(0);
        self.fill(Layout::of(key), base);
        sign(base, key);
        Ok(())
    }

    /// The fields without authentication, as far as there is room, and nothing else: TWAMP-Light's padding
    /// may start within the last three bytes.
    pub(super) fn fill_open(&self, packet: &mut [u8]) {
        self.fill(&OPEN, packet);
    }

    fn fill(&self, layout: &Layout, base: &mut [u8]) {
        put(base, 0, &self.sequence.to_be_bytes());
        put(base, layout.stamp, &self.stamp.to_be_bytes());
        put(base, layout.error, &self.error.write());
        put(base, layout.ssid, &self.ssid.to_be_bytes());
        put(base, layout.received, &self.received.to_be_bytes());
        put(base, layout.sender_sequence, &self.sender_sequence.to_be_bytes());
        put(base, layout.sender_stamp, &self.sender_stamp.to_be_bytes());
        put(base, layout.sender_error, &self.sender_error.write());
        put(base, layout.ttl, &[self.sender_ttl]);
    }

    /// Reads a reply, and checks its HMAC where there is a key.
    ///
    /// # Errors
    /// [`StampError`].
    pub fn read(key: Option<&Key>, packet: &[u8]) -> Result<Self, StampError> {
        Ok(Self::take(Layout::of(key), checked(packet, key)?))
    }

    pub(super) fn take_open(packet: &[u8]) -> Self {
        Self::take(&OPEN, packet)
    }

    fn take(layout: &Layout, base: &[u8]) -> Self {
        Self {
            sequence: u32::from_be_bytes(field(base, 0)),
            stamp: u64::from_be_bytes(field(base, layout.stamp)),
            error: ErrorEstimate::read(field(base, layout.error)),
            ssid: u16::from_be_bytes(field(base, layout.ssid)),
            received: u64::from_be_bytes(field(base, layout.received)),
            sender_sequence: u32::from_be_bytes(field(base, layout.sender_sequence)),
            sender_stamp: u64::from_be_bytes(field(base, layout.sender_stamp)),
            sender_error: ErrorEstimate::read(field(base, layout.sender_error)),
            sender_ttl: field::<1>(base, layout.ttl)[0],
        }
    }
}

/// The largest difference between T2 and T3 of one reply, in seconds.
const RESIDENCE_S: u32 = 10;

/// Whether a test packet is a reply: what a reflector sent, not what a sender did. TWAMP-Light's open packets have
/// the same fields at the same places.
///
/// A sender of STAMP leaves everything behind its own fields zero (RFC 8762 section 4.2). A sender of TWAMP-Light may
/// fill it with random bytes (RFC 5357 section 4.1.2), so zeros alone do not tell. All of these hold for a reply:
///
/// * T2 is not zero,
/// * the seconds of T2 and of T3, which stands where a sender has T1, differ by at most 10: random bytes do so
///   once in 2^32 / 21, which is 2^27.6,
/// * the multiplier of the sender's error estimate is not zero, as RFC 4656 section 4.1.2 demands,
/// * the two bytes behind that are zero: random ones once in 2^16,
/// * the sender's TTL is not zero; who does not know it writes 255 (RFC 5357 section 4.2).
///
/// So one of 2^43 random requests is taken for a reply. A reply is not recognised if the request in it had no error
/// estimate; the reply to that one is, because a reflector always has an estimate.
#[must_use]
pub fn is_reply(key: Option<&Key>, packet: &[u8]) -> bool {
    let layout = Layout::of(key);
    if packet.len() <= layout.ttl {
        return false;
    }
    let seconds = |at| u32::from_be_bytes(field(packet, at));
    let apart = seconds(layout.stamp).wrapping_sub(seconds(layout.received)).cast_signed();
    let [_, multiplier, zero @ ..] = field::<4>(packet, layout.sender_error);
    field(packet, layout.received) != [0; 8]
        && apart.unsigned_abs() <= RESIDENCE_S
        && multiplier != 0
        && zero == [0; 2]
        && packet[layout.ttl] != 0
}

/// Puts T1 or T3 into a packet that is written already, at the last moment, and signs it again.
pub fn restamp(key: Option<&Key>, packet: &mut [u8], stamp: u64) {
    put(packet, Layout::of(key).stamp, &stamp.to_be_bytes());
    if let Some(base) = packet.get_mut(..base_len(key)) {
        sign(base, key);
    }
}

fn base_of<'a>(packet: &'a mut [u8], key: Option<&Key>) -> Result<&'a mut [u8], StampError> {
    let (bytes, least) = (packet.len(), base_len(key));
    packet.get_mut(..least).ok_or(StampError::Short { bytes, least })
}

fn checked<'a>(packet: &'a [u8], key: Option<&Key>) -> Result<&'a [u8], StampError> {
    let (bytes, least) = (packet.len(), base_len(key));
    let base = packet.get(..least).ok_or(StampError::Short { bytes, least })?;
    let Some(key) = key else { return Ok(base) };
    let (signed, hmac) = base.split_at(SIGNED);
    if key.is_signed(&[signed], &field(hmac, 0)) { Ok(base) } else { Err(StampError::Hmac) }
}

fn sign(base: &mut [u8], key: Option<&Key>) {
    if let Some(key) = key {
        let hmac = base.get(..SIGNED).map(|signed| key.sign(&[signed]));
        put(base, SIGNED, &hmac.unwrap_or_default());
    }
}
