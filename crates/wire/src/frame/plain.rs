//! The frame that nearly all traffic consists of, found without walking its layers.

use super::{Link, is_bare_datagram};

/// Bytes of an Ethernet header without tags.
const ETHERNET: usize = 14;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The datagram in an Ethernet frame without tags that carries UDP in IPv4 without options.
#[must_use]
pub fn plain_datagram(link: Link, frame: &[u8]) -> Option<&[u8]> {
    let head = frame.first_chunk::<{ ETHERNET + 20 }>()?;
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let is_plain = link == Link::Ethernet
        && head[12..15] == [0x08, 0x00, 0x45]
        && word(20) & 0x1fff == 0
        && head[23] == UDP;
    let end = frame.len().min(ETHERNET + usize::from(word(16)));
    frame.get(ETHERNET + 20..end).filter(|_| is_plain)
}

/// Whether a frame is Ethernet without tags and IPv4 without options, and surely has no encapsulation.
#[must_use]
pub fn is_bare(link: Link, frame: &[u8]) -> bool {
    match plain_datagram(link, frame) {
        Some(datagram) => is_bare_datagram(datagram),
        None => frame.first_chunk::<{ ETHERNET + 20 }>().is_some_and(|head| {
            link == Link::Ethernet
                && head[12..15] == [0x08, 0x00, 0x45]
                && matches!(head[23], ICMP | TCP)
        }),
    }
}
