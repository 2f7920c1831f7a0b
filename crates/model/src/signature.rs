//! The signature: the bytes that identify a frame on both sides of the device under test.
//!
//! By default these are the first [`SIGNED_BYTES`] bytes after the L2 header and its VLAN tags, without
//! those that a forwarder may change: TTL or hop limit, IPv4 header checksum, TCP and UDP checksum. Bytes
//! behind the end of the IP packet (padding to 60 bytes, NIC trailers, FCS) never take part, since one
//! side may have them and the other not. The masked bytes, padded with zeros to 64, are hashed with
//! XXH3-128 (seed 0), so any other program can compute the same signature.

use crate::frame::{Layers, Link, Transport, inner, layers};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use xxhash_rust::xxh3::xxh3_128;

/// Most bytes after the L2 header that take part by default.
pub const SIGNED_BYTES: usize = 64;

/// What identifies a frame: two 64-bit hashes. Signed, because Spark has no unsigned 64-bit integers and
/// PostgreSQL neither; two, because one alone collides with a chance of 2.7 % at 10⁹ × 10⁹ packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Signature {
    /// The upper half of the hash.
    pub high: i64,
    /// The lower half of the hash.
    pub low: i64,
}

impl Signature {
    /// The signature of a packet whose identifier is known, as in `.mscap` files.
    #[must_use]
    pub fn of_identifier(identifier: u64) -> Self {
        Self { high: 0, low: identifier.cast_signed() }
    }

    #[inline]
    fn of_bytes(bytes: &[u8]) -> Self {
        let hash = xxh3_128(bytes);
        Self { high: ((hash >> 64) as u64).cast_signed(), low: (hash as u64).cast_signed() }
    }
}

/// Fields that the device under test rewrites beyond those masked by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewrites {
    /// IP addresses and TCP or UDP ports (network address translation).
    pub nat: bool,
    /// DSCP and ECN.
    pub tos: bool,
    /// A VXLAN or GRE tunnel is added or removed: the signature is taken from the innermost packet.
    pub tunnel: bool,
}

/// Bytes chosen by the user, as `OFFSET:LENGTH,…` from the first byte of the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(Vec<Range<usize>>);

/// A selection that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("signature {text:?}: {problem}, expected OFFSET:LENGTH[,OFFSET:LENGTH…] in bytes from the start of the frame, \
         for example 42:4")]
pub struct SelectionError {
    text: String,
    problem: String,
}

/// A selection reaches at most this far: captures that keep more of each frame are rare, and the limit
/// bounds the work per frame.
const SELECTION_END: usize = 2048;

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let error = |problem: String| SelectionError { text: text.to_owned(), problem };
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let (offset, length) =
                part.split_once(':').ok_or_else(|| error(format!("{part:?} has no colon")))?;
            let number = |digits: &str| {
                digits.trim().parse::<usize>().map_err(|_| error(format!("{digits:?} is no number")))
            };
            let (offset, length) = (number(offset)?, number(length)?);
            let end = offset.saturating_add(length);
            if length == 0 || end > SELECTION_END {
                return Err(error(format!(
                    "{part:?} must name 1 or more bytes before offset {SELECTION_END}"
                )));
            }
            ranges.push(offset..end);
        }
        Ok(Self(ranges))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}:{}", range.start, range.len())?;
        }
        Ok(())
    }
}

type Block = [u8; SIGNED_BYTES];

/// Takes signatures.
#[derive(Debug, Clone)]
pub struct Signer {
    rewrites: Rewrites,
    selection: Option<Selection>,
    limit: usize,
    /// Masks of an IPv4 packet without options, by what it carries.
    udp: Block,
    tcp: Block,
    other: Block,
    /// `shorter[n]` keeps the first n bytes.
    shorter: Box<[Block; SIGNED_BYTES + 1]>,
}

impl Signer {
    /// The default signature, with more fields masked where the device under test rewrites them.
    #[must_use]
    pub fn new(rewrites: Rewrites) -> Self {
        let mask = |transport| {
            let mut block = [0xff; SIGNED_BYTES];
            let layers = Layers { v6: false, end: usize::MAX, protocol: 0, payload: 20, transport };
            clear(&mut block, &layers, rewrites);
            block
        };
        let mut shorter = Box::new([[0; SIGNED_BYTES]; SIGNED_BYTES + 1]);
        for (length, block) in shorter.iter_mut().enumerate() {
            block[..length].fill(0xff);
        }
        Self {
            rewrites,
            selection: None,
            limit: SIGNED_BYTES,
            udp: mask(Some(Transport::Udp)),
            tcp: mask(Some(Transport::Tcp)),
            other: mask(None),
            shorter,
        }
    }

    /// A signature of exactly the bytes of `selection`, nothing masked.
    #[must_use]
    pub fn of_selection(selection: Selection) -> Self {
        Self { selection: Some(selection), ..Self::new(Rewrites::default()) }
    }

    /// Lets at most `bytes` after the L2 header take part, so that both captures sign the same bytes
    /// although the snap length cut their frames differently. Without effect on a selection.
    #[must_use]
    pub fn limited_to(self, bytes: usize) -> Self {
        Self { limit: bytes.min(SIGNED_BYTES), ..self }
    }

    /// Most bytes after the L2 header that take part.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The signature of a frame together with the number of its bytes that could have been signed,
    /// counted from the end of the L2 header (from the start of the frame for a selection).
    ///
    /// The frame is the first `captured` bytes of `bytes`; what stands behind it is read, for speed, but
    /// takes no part.
    #[inline]
    #[must_use]
    pub(crate) fn sign(&self, link: Link, bytes: &[u8], captured: usize) -> (Signature, u16) {
        const ETHERNET_IPV4: usize = 14;
        // Nearly all frames are Ethernet with IPv4 without options; 78 bytes can be read behind all but
        // the last frame of a capture.
        if let Some(head) = bytes.first_chunk::<{ ETHERNET_IPV4 + SIGNED_BYTES }>()
            && link == Link::Ethernet
            && [head[12], head[13], head[14]] == [0x08, 0x00, 0x45]
            && captured >= ETHERNET_IPV4 + 20
            && self.selection.is_none()
            && !self.rewrites.tunnel
        {
            let total = usize::from(u16::from_be_bytes([head[16], head[17]]));
            let end = if total < 20 { usize::MAX } else { total };
            let there = captured - ETHERNET_IPV4;
            let later_fragment = u16::from_be_bytes([head[20], head[21]]) & 0x1fff != 0;
            let mask = match head[23] {
                17 if !later_fragment => &self.udp,
                6 if !later_fragment => &self.tcp,
                _ => &self.other,
            };
            let shorter = &self.shorter[there.min(end).min(self.limit)];
            let mut block = [0; SIGNED_BYTES];
            for index in 0..SIGNED_BYTES {
                block[index] = head[ETHERNET_IPV4 + index] & mask[index] & shorter[index];
            }
            return (Signature::of_bytes(&block), there.min(usize::from(u16::MAX)) as u16);
        }
        self.sign_any(link, &bytes[..captured])
    }

    /// Whether a frame of `signable` bytes, `cut` by the snap length, was signed over fewer bytes than
    /// its whole twin on the other side may have been.
    #[inline]
    #[must_use]
    pub(crate) fn is_short(&self, cut: bool, signable: u16) -> bool {
        match &self.selection {
            None => cut && usize::from(signable) < self.limit,
            Some(Selection(ranges)) => ranges.iter().any(|range| range.end > usize::from(signable)),
        }
    }

    #[cold]
    fn sign_any(&self, link: Link, frame: &[u8]) -> (Signature, u16) {
        let size = |bytes: usize| bytes.min(usize::from(u16::MAX)) as u16;
        if let Some(Selection(ranges)) = &self.selection {
            let mut chosen = Vec::with_capacity(SIGNED_BYTES);
            for range in ranges {
                let end = range.end.min(frame.len());
                chosen.extend_from_slice(&frame[range.start.min(end)..end]);
            }
            return (Signature::of_bytes(&chosen), size(frame.len()));
        }
        // A frame too short for an L2 header is signed whole.
        let (mut ethertype, mut start) = link.payload(frame).unwrap_or((0, 0));
        start = start.min(frame.len());
        while self.rewrites.tunnel {
            let Some((within, offset)) = inner(ethertype, &frame[start..]) else { break };
            if offset > frame.len() - start {
                break;
            }
            (ethertype, start) = (within, start + offset);
        }
        let packet = &frame[start..];
        let layers = layers(ethertype, packet);
        let end = layers.map_or(usize::MAX, |layers| layers.end);
        let signed = packet.len().min(end).min(self.limit);
        let mut block = [0; SIGNED_BYTES];
        block[..signed].copy_from_slice(&packet[..signed]);
        if let Some(layers) = layers {
            clear(&mut block, &layers, self.rewrites);
        }
        (Signature::of_bytes(&block), size(packet.len()))
    }
}

/// Clears the fields of a packet that do not take part.
fn clear(block: &mut Block, layers: &Layers, rewrites: Rewrites) {
    let mut zero = |range: Range<usize>| {
        let end = range.end.min(SIGNED_BYTES);
        block[range.start.min(end)..end].fill(0);
    };
    let at = layers.payload;
    if layers.v6 {
        zero(7..8);
    } else {
        zero(8..9);
        zero(10..12);
    }
    match layers.transport {
        Some(Transport::Udp) => zero(at + 6..at + 8),
        Some(Transport::Tcp) => zero(at + 16..at + 18),
        None => {}
    }
    if rewrites.nat {
        zero(if layers.v6 { 8..40 } else { 12..20 });
        if layers.transport.is_some() {
            zero(at..at + 4);
        }
    }
    if rewrites.tos {
        // IPv6 splits the traffic class over the first two bytes; the version bits go with it.
        zero(if layers.v6 { 0..2 } else { 1..2 });
    }
}
