//! Common parts of blocks with a header and a frame, in all formats.

use super::error::Damage;
use super::keep::Keep;
use super::write::stands_for_none;
use super::{BATCH, Progress, Record, StampSource};
use crate::signature::{Shape, Signed, Signer};
use tailtrim_wire::frame::Link;

pub(super) const NS_PER_S: i64 = 1_000_000_000;

/// Bytes that an X552 NIC appends to each frame.
const X552_TRAILER_LEN: usize = 8;

/// Content that is damaged, and what was expected, in words.
pub(super) type Odd = (String, String);

/// Order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Big,
    Little,
}

impl ByteOrder {
    /// The number of N bytes at a place, if it is there.
    pub(super) fn number<const N: usize>(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes: &[u8; N] = bytes.get(at..)?.first_chunk()?;
        let add = |value, byte: &u8| value << 8 | u64::from(*byte);
        Some(match self {
            Self::Big => bytes.iter().fold(0, add),
            Self::Little => bytes.iter().rev().fold(0, add),
        })
    }

    /// Two bytes at a place; 0 where they are not there, which a caller has checked.
    pub(super) fn short(self, bytes: &[u8], at: usize) -> u16 {
        self.number::<2>(bytes, at).unwrap_or_default() as u16
    }

    /// Four bytes at a place, likewise.
    pub(super) fn word(self, bytes: &[u8], at: usize) -> u32 {
        self.number::<4>(bytes, at).unwrap_or_default() as u32
    }
}

/// Decodes blocks from the start of `window` until a batch is full. `next` tells the length of the block that its bytes begin
/// with, and the record in it; [`None`] where the block does not end there.
pub(super) fn decode_blocks(
    window: &[u8],
    records: &mut Vec<Record>,
    mut next: impl FnMut(&[u8]) -> Result<Option<(usize, Option<Record>)>, Odd>,
) -> Progress {
    let (mut at, mut damage) = (0, None);
    let end = records.len() + BATCH;
    while records.len() < end {
        match next(&window[at..]) {
            Ok(Some((length, record))) => {
                at += length;
                records.extend(record);
            }
            Ok(None) => break,
            Err((found, expected)) => {
                damage = Some(Damage { at, ..Damage::of(found, expected) });
                break;
            }
        }
    }
    Progress { consumed: at, damage }
}

/// Signs frames of which most have the shape of the one before.
pub(super) struct BlockSigner<'a> {
    signer: &'a Signer,
    shape: Shape<'a>,
}

impl<'a> BlockSigner<'a> {
    pub(super) fn new(signer: &'a Signer) -> Self {
        Self { signer, shape: Shape::default() }
    }

    /// Signs a frame. `bytes` begin with it, and go on behind it as far as there are more.
    pub(super) fn sign(&mut self, link: Link, frame: &[u8], bytes: &[u8]) -> Signed {
        let Some(head) = bytes.first_chunk().filter(|_| link == Link::Ethernet) else {
            return self.signer.sign(link, frame);
        };
        if !self.shape.is_that_of::<true>(head, frame.len()) {
            let Some(shape) = self.signer.shape(link, head, frame.len()) else {
                return self.signer.sign(link, frame);
            };
            self.shape = shape;
        }
        let (signature, signable) = (self.shape.sign::<true>(head), self.shape.signable);
        Signed { signature, signable, truncated: false }
    }
}

/// A frame as a block has it.
pub(super) struct Captured<'a> {
    pub(super) link: Link,
    pub(super) frame: &'a [u8],
    /// Bytes on the wire.
    pub(super) length: u32,
    /// The stamp in the block, if it has one.
    pub(super) stamp_ns: Option<i64>,
}

impl Captured<'_> {
    /// Its record, with the stamp that counts; frames with a stamp are shown to `keep`.
    pub(super) fn record(
        self,
        stamps: StampSource,
        sign: impl FnOnce(Link, &[u8]) -> Signed,
        keep: &mut impl Keep,
    ) -> Record {
        let Self { link, frame, length, stamp_ns } = self;
        let cut = frame.len() < length as usize;
        let (stamp_ns, whole) = match stamps {
            StampSource::X552Trailer => take_trailer(frame, cut),
            // As in the pcap that a tap without a stamp writes.
            _ => (stamp_ns.filter(|stamp_ns| !stands_for_none(*stamp_ns)), frame),
        };
        let Signed { signature, signable, truncated } = sign(link, whole);
        if stamp_ns.is_some() {
            keep.frame(link, whole);
        }
        Record {
            stamp_ns: stamp_ns.unwrap_or_default(),
            signature,
            length: length.saturating_sub((frame.len() - whole.len()) as u32),
            signable,
            cut: cut || truncated,
            stamped: stamp_ns.is_some(),
        }
    }
}

/// The stamp in the trailer of `frame`, and the frame without the trailer.
fn take_trailer(frame: &[u8], cut: bool) -> (Option<i64>, &[u8]) {
    // A cut frame has lost its trailer: whatever bytes stand at its end are payload.
    let Some((rest, trailer)) = frame.split_last_chunk::<X552_TRAILER_LEN>().filter(|_| !cut)
    else {
        return (None, frame);
    };
    let [nanoseconds, seconds] = [0, 4].map(|at| i64::from(ByteOrder::Little.word(trailer, at)));
    // The NIC leaves some frames without a stamp; their last bytes are payload.
    let stamp_ns = (nanoseconds < NS_PER_S).then_some(seconds * NS_PER_S + nanoseconds);
    (stamp_ns, rest)
}
