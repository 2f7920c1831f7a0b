//! The signature: the bytes that identify a frame on both sides of the device under test.
//!
//! By default these are the first [`SIGNED_BYTES`] bytes after the L2 header and its VLAN tags, without
//! those that a forwarder may change: TTL or hop limit, IPv4 header checksum, TCP and UDP checksum. Bytes
//! behind the end of the IP packet (padding to 60 bytes, NIC trailers, FCS) never take part, since one
//! side may have them and the other not. The masked bytes, padded with zeros to 64, are hashed with
//! XXH3-128 (seed 0), so any other program can compute the same signature.

mod extensions;
mod selection;
mod shape;

pub use selection::{Selection, SelectionError};
pub(crate) use shape::{HEAD, Head, Shape};

use serde::{Deserialize, Serialize};
use std::ops::Range;
use tailtrim_wire::frame::{Layers, Link, Transport, Walk, is_bare, layers};
use xxhash_rust::xxh3::xxh3_128;

/// Most bytes after the L2 header that take part by default.
pub const SIGNED_BYTES: usize = 64;

/// Identity of a frame: two 64-bit hashes. Signed, because Spark has no unsigned 64-bit integers and PostgreSQL
/// neither; two, because one alone collides with a chance of 2.7 % at 10⁹ × 10⁹ packets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Serialize, Deserialize,
)]
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
        // Spread over all bits, as a hash is: the upper bits of a product depend on all bits of the identifier, the lower ones
        // on its lower ones only. The factor is odd, and the shift more than none: no two become equal.
        let product = identifier.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { high: 0, low: (product ^ (product >> 32)).cast_signed() }
    }

    /// The signature of the frame of this number among those of this signature.
    pub(crate) fn numbered(self, number: u64) -> Self {
        let (high, low) = (self.high.to_be_bytes(), self.low.to_be_bytes());
        Self::of_bytes(&[high, low, number.to_be_bytes()].concat())
    }

    #[inline]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
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
    /// Tunnels, labels, tags or extension headers of IPv6 are added or removed: the signature is taken from the innermost packet,
    /// without such headers.
    pub tunnel: bool,
}

type Block = [u8; SIGNED_BYTES];

/// A frame that was signed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signed {
    pub(crate) signature: Signature,
    /// Bytes that could have been signed, counted from the end of the L2 header (from the start of the frame for a selection).
    pub(crate) signable: u16,
    /// The frame is whole, but its tunnel carries a part of the packet only, as a mirror session does that truncates.
    pub(crate) truncated: bool,
}

/// Takes signatures.
#[derive(Debug, Clone)]
pub struct Signer {
    rewrites: Rewrites,
    selection: Option<Selection>,
    limit: usize,
    /// Frames of the most common shape may be signed without looking for their layers.
    plain: bool,
    /// Masks of the bytes of an IPv4 packet without options that take part, by its payload ([`UDP`], [`TCP`],
    /// [`OTHER`]) and its number of bytes.
    masks: Box<[[Block; SIGNED_BYTES + 1]; 3]>,
}

const OTHER: usize = 0;
const UDP: usize = 1;
const TCP: usize = 2;

impl Signer {
    /// The default signature, with more fields masked where the device under test rewrites them.
    #[must_use]
    pub fn new(rewrites: Rewrites) -> Self {
        let mut masks = Box::new([[[0; SIGNED_BYTES]; SIGNED_BYTES + 1]; 3]);
        for (kind, masks) in masks.iter_mut().enumerate() {
            let transport = match kind {
                UDP => Some(Transport::Udp),
                TCP => Some(Transport::Tcp),
                _ => None,
            };
            let layers = Layers {
                v6: false,
                end: usize::MAX,
                protocol: 0,
                payload: 20,
                fragment: false,
                later_fragment: false,
                transport,
            };
            for (length, block) in masks.iter_mut().enumerate() {
                block[..length].fill(0xff);
                clear(block, &layers, rewrites);
            }
        }
        let plain = !rewrites.tunnel;
        Self { rewrites, selection: None, limit: SIGNED_BYTES, plain, masks }
    }

    /// A signature of exactly the bytes of `selection`, nothing masked.
    #[must_use]
    pub fn of_selection(selection: Selection) -> Self {
        Self { selection: Some(selection), plain: false, ..Self::new(Rewrites::default()) }
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

    /// The shape of a frame of which the first bytes are `head`, `captured` bytes long, when it is Ethernet, with at most two
    /// VLAN tags, and IPv4 without options, as nearly all are; all others need [`sign`](Self::sign).
    #[inline]
    pub(crate) fn shape(&self, link: Link, head: &Head, captured: usize) -> Option<Shape<'_>> {
        let tags = shape::plain_tags(head).filter(|_| self.plain && link == Link::Ethernet)?;
        Shape::of(self, tags, head, captured)
    }

    /// Mask of the first `bytes` of an IPv4 packet without options.
    fn mask(&self, protocol: u8, later_fragment: bool, bytes: usize) -> &Block {
        let kind = match protocol {
            17 if !later_fragment => UDP,
            6 if !later_fragment => TCP,
            _ => OTHER,
        };
        &self.masks[kind][bytes]
    }

    /// Whether a frame of `signable` bytes, `cut` by the snap length, was signed over fewer bytes than
    /// its whole twin on the other side may have been.
    #[inline]
    #[must_use]
    pub(crate) fn is_short(&self, cut: bool, signable: u16) -> bool {
        let ends = |ranges: &[Range<usize>]| ranges.iter().map(|range| range.end).max();
        let wanted = self.selection.as_ref().and_then(|selection| ends(selection.ranges()));
        cut && usize::from(signable) < wanted.unwrap_or(self.limit)
    }

    /// Signs a frame of any shape.
    #[inline(never)]
    #[must_use]
    pub(crate) fn sign(&self, link: Link, frame: &[u8]) -> Signed {
        let size = |bytes: usize| bytes.min(usize::from(u16::MAX)) as u16;
        let signed =
            |signature, bytes| Signed { signature, signable: size(bytes), truncated: false };
        if let Some(selection) = &self.selection {
            let ranges = selection.ranges();
            let mut chosen = Vec::with_capacity(SIGNED_BYTES);
            for range in ranges {
                let end = range.end.min(frame.len());
                chosen.extend_from_slice(&frame[range.start.min(end)..end]);
            }
            return signed(Signature::of_bytes(&chosen), frame.len());
        }
        if self.rewrites.tunnel && is_bare(link, frame) {
            let mut head = [0; HEAD];
            let there = frame.len().min(HEAD);
            head[..there].copy_from_slice(&frame[..there]);
            if let Some(shape) = Shape::of(self, 0, &head, frame.len()) {
                return signed(shape.sign::<true>(&head), shape.signable.into());
            }
        }
        // A frame too short for an L2 header is signed whole.
        let (start, until, layers) = if self.rewrites.tunnel {
            let innermost = Walk::new(link, frame).last();
            innermost.map_or((0, frame.len(), None), |place| (place.start, place.end, place.layers))
        } else {
            let (ethertype, start) = link.payload(frame).unwrap_or((0, 0));
            let start = start.min(frame.len());
            (start, frame.len(), layers(ethertype, &frame[start..]))
        };
        let bare = layers
            .filter(|_| self.rewrites.tunnel)
            .and_then(|layers| extensions::removed(&frame[start..until], &layers));
        let (packet, layers, most) = match &bare {
            Some((bare, layers)) => (bare.as_slice(), Some(*layers), bare.len()),
            None => (&frame[start..], layers, until - start),
        };
        let told = layers.map_or(usize::MAX, |layers| layers.end);
        let there = packet.len().min(told).min(most);
        let taken = there.min(self.limit);
        let mut block = [0; SIGNED_BYTES];
        block[..taken].copy_from_slice(&packet[..taken]);
        if let Some(layers) = layers {
            clear(&mut block, &layers, self.rewrites);
        }
        let truncated = self.rewrites.tunnel && (there + 1..usize::MAX).contains(&told);
        let signable = if truncated { there } else { packet.len() };
        Signed { truncated, ..signed(Signature::of_bytes(&block), signable) }
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
        zero(at..if layers.transport.is_some() { at + 4 } else { at });
    }
    if rewrites.tos {
        // IPv6 splits the traffic class over the first two bytes; the version bits go with it.
        zero(if layers.v6 { 0..2 } else { 1..2 });
    }
}
