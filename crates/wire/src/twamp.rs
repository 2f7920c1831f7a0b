//! TWAMP-Light: the test packets of TWAMP without its control connection (RFC 5357 appendix I), without
//! authentication.
//!
//! A sender's packet has 14 bytes and padding, a reply 41 and padding (RFC 5357 sections 4.1.2 and 4.2.1);
//! within these the fields stand where STAMP has them (RFC 8762 section 4.6). A reply is as long as its
//! request where the request has padding enough; shorter requests get none here, since their replies would be
//! longer.

use super::stamp::{OPEN_LEN, ReflectorPacket};
use super::time::ErrorEstimate;
use crate::bytes::{field, put};

/// Bytes of a sender's packet without padding.
pub const SENDER_LEN: usize = 14;
/// Bytes of a reply without padding: the least that a request needs to be answered.
pub const REFLECTOR_LEN: usize = 41;

/// Fields that a sender writes into its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderPacket {
    /// From 0 on.
    pub sequence: u32,
    /// T1, written as `error.format` says.
    pub stamp: u64,
    /// Error estimate of T1.
    pub error: ErrorEstimate,
}

impl SenderPacket {
    /// Writes the fields over the first 14 bytes; padding stays as it is. Less room stays as it is, too.
    pub fn write(&self, packet: &mut [u8]) {
        if packet.len() >= SENDER_LEN {
            put(packet, 0, &self.sequence.to_be_bytes());
            put(packet, 4, &self.stamp.to_be_bytes());
            put(packet, 12, &self.error.write());
        }
    }

    /// The fields; `None` where the packet is too short.
    #[must_use]
    pub fn read(packet: &[u8]) -> Option<Self> {
        (packet.len() >= SENDER_LEN).then(|| Self {
            sequence: u32::from_be_bytes(field(packet, 0)),
            stamp: u64::from_be_bytes(field(packet, 4)),
            error: ErrorEstimate::read(field(packet, 12)),
        })
    }
}

/// The fields of a reply, without a session; `None` where it is too short.
#[must_use]
pub fn read_reply(packet: &[u8]) -> Option<ReflectorPacket> {
    (packet.len() >= REFLECTOR_LEN).then(|| {
        let mut base = [0; OPEN_LEN];
        put(&mut base, 0, &packet[..REFLECTOR_LEN]);
        ReflectorPacket { ssid: 0, ..ReflectorPacket::take_open(&base) }
    })
}

/// Writes a reply over its request, of which the padding stays; `false` where there is no room for it.
pub fn write_reply(reply: &ReflectorPacket, packet: &mut [u8]) -> bool {
    let Some(base) = packet.get_mut(..REFLECTOR_LEN) else { return false };
    // Bytes that must be zero: 14 and 15, 38 and 39.
    base.fill(0);
    ReflectorPacket { ssid: 0, ..*reply }.fill_open(base);
    true
}
