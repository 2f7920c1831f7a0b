//! Layout that frames share: most frames of a capture have that of the one before.

use super::{Block, SIGNED_BYTES, Signature, Signer};
use tailtrim_wire::frame::is_vlan;

/// Bytes of both addresses of Ethernet.
const ADDRESSES: usize = 12;

/// Bytes of a VLAN tag, and of an ethertype.
const TAG: usize = 4;
const TYPE: usize = 2;

/// Most VLAN tags of a frame with a shape.
const MOST_TAGS: usize = 2;

/// Bytes of [`Head`].
pub(crate) const HEAD: usize = ADDRESSES + MOST_TAGS * TAG + TYPE + SIGNED_BYTES;

/// The start of a frame: what takes part in a default signature and the L2 header before it.
pub(crate) type Head = [u8; HEAD];

/// The last ethertype and what takes part in a signature.
type Packet = [u8; TYPE + SIGNED_BYTES];

/// Layout shared by frames that differ only in addresses, VLANs and payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    /// Types of the VLAN tags, and where they are.
    types: u64,
    types_mask: u64,
    tags: usize,
    key: (u64, u64),
    mask: &'a Block,
    /// Bytes that may take part.
    signed: usize,
    /// Bytes that could have been signed, see [`Signer::sign`].
    pub(crate) signable: u16,
}

/// A packet in a frame of the least size, 60 bytes without FCS, has fewer bytes.
const SHORT: usize = 48;

impl Default for Shape<'_> {
    /// The shape of no frame: the key of each has bits that are 0.
    fn default() -> Self {
        let key = (u64::MAX, u64::MAX);
        let mask = &[0; SIGNED_BYTES];
        Self { types: 0, types_mask: 0, tags: 0, key, mask, signed: 0, signable: 0 }
    }
}

/// VLAN tags of a frame of Ethernet with IPv4 without options; `None` of any other, and where there are more.
pub(super) fn plain_tags(head: &Head) -> Option<usize> {
    let ethertype = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let tags = (0..=MOST_TAGS).find(|tags| !is_vlan(ethertype(ADDRESSES + tags * TAG)))?;
    let [high, low, version, ..] = *packet(head, tags);
    ([high, low, version] == [0x08, 0x00, 0x45]).then_some(tags)
}

/// Bytes before the packet in a frame with so many VLAN tags.
#[inline]
fn before(tags: usize) -> usize {
    ADDRESSES + tags * TAG + TYPE
}

/// The packet behind so many VLAN tags, from its ethertype on.
#[inline(always)]
#[allow(clippy::inline_always, reason = "see is_that_of")]
fn packet(head: &Head, tags: usize) -> &Packet {
    // One place for each number: none of them is beyond the head, which the compiler sees.
    let behind = match tags {
        0 => head[ADDRESSES..].first_chunk(),
        1 => head[ADDRESSES + TAG..].first_chunk(),
        _ => head[ADDRESSES + MOST_TAGS * TAG..].first_chunk(),
    };
    behind.unwrap_or(&[0; TYPE + SIGNED_BYTES])
}

impl<'a> Shape<'a> {
    /// The shape of a frame with IPv4 without options behind so many VLAN tags; `None` where its header is not whole.
    pub(super) fn of(
        signer: &'a Signer,
        tags: usize,
        head: &Head,
        captured: usize,
    ) -> Option<Self> {
        let there = captured.checked_sub(before(tags)).filter(|there| *there >= 20)?;
        let packet = packet(head, tags);
        let total = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
        let end = if total < 20 { usize::MAX } else { total };
        let later_fragment = u16::from_be_bytes([packet[8], packet[9]]) & 0x1fff != 0;
        let signed = there.min(end).min(signer.limit);
        // The second tag begins where the ethertype is of a frame with one.
        let types_mask = u64::from_ne_bytes(match tags {
            0 => [0; 8],
            1 => [0xff, 0xff, 0, 0, 0, 0, 0, 0],
            _ => [0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0],
        });
        Some(Self {
            types: types(head) & types_mask,
            types_mask,
            tags,
            key: Self::key(packet, there),
            mask: signer.mask(packet[11], later_fragment, signed),
            signed,
            signable: there.min(usize::from(u16::MAX)) as u16,
        })
    }

    /// Whether a frame is of this shape, of which the first bytes are `head`. Without `TAGGED`, which takes less time, that is
    /// no frame with VLAN tags.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call per frame costs a tenth of decoding one")]
    pub(crate) fn is_that_of<const TAGGED: bool>(&self, head: &Head, captured: usize) -> bool {
        let tags = if TAGGED { self.tags } else { 0 };
        self.key == Self::key(packet(head, tags), captured.wrapping_sub(before(tags)))
            && (!TAGGED || types(head) & self.types_mask == self.types)
    }

    /// The signature of a frame of this shape, of which the first bytes are `head`.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see is_that_of")]
    pub(crate) fn sign<const TAGGED: bool>(&self, head: &Head) -> Signature {
        let packet = packet(head, if TAGGED { self.tags } else { 0 });
        // The hash of a short packet is half constant: the compiler makes two versions of it.
        if self.signed <= SHORT {
            Signature::of_bytes(&self.masked::<SHORT>(packet))
        } else {
            Signature::of_bytes(&self.masked::<SIGNED_BYTES>(packet))
        }
    }

    /// The first `BYTES` signed bytes without what does not take part, the rest 0.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see is_that_of")]
    fn masked<const BYTES: usize>(&self, packet: &Packet) -> Block {
        // By words: the hash wants them in general registers, and would have to take bytes out of vector
        // registers again.
        let mut block = [0; SIGNED_BYTES];
        let words = block.as_chunks_mut::<8>().0.iter_mut().take(BYTES / 8);
        let (frame, _) = packet[TYPE..].as_chunks::<8>();
        for ((word, frame), mask) in words.zip(frame).zip(self.mask.as_chunks::<8>().0) {
            *word = (u64::from_ne_bytes(*frame) & u64::from_ne_bytes(*mask)).to_ne_bytes();
        }
        block
    }

    /// Key of a shape, from the fields that determine it: ethertype, IP version and header length, total length,
    /// fragment offset, protocol and captured bytes of the packet.
    #[inline]
    fn key(packet: &Packet, there: usize) -> (u64, u64) {
        const FIRST: u64 = u64::from_ne_bytes([0xff, 0xff, 0xff, 0, 0xff, 0xff, 0, 0]);
        const SECOND: u32 = u32::from_ne_bytes([0x1f, 0xff, 0, 0xff]);
        let mut first = [0; 8];
        first.copy_from_slice(&packet[..8]);
        let mut second = [0; 4];
        second.copy_from_slice(&packet[8..12]);
        let first = u64::from_ne_bytes(first) & FIRST;
        let second = u32::from_ne_bytes(second) & SECOND;
        (first, u64::from(second) << 32 | there as u64 & 0xffff_ffff)
    }
}

/// The bytes behind the addresses, in which two tags would be.
#[inline(always)]
#[allow(clippy::inline_always, reason = "see is_that_of")]
fn types(head: &Head) -> u64 {
    let mut types = [0; 8];
    types.copy_from_slice(&head[ADDRESSES..ADDRESSES + 8]);
    u64::from_ne_bytes(types)
}
