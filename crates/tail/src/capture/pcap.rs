//! Classic pcap: the fast path. One pass, one bounds check a record, no allocation.
//!
//! Format: draft-ietf-opsawg-pcap. The header gives byte order and resolution by its magic; records
//! follow back to back without padding.

use super::error::Damage;
use super::keep::Keep;
use super::write::stands_for_none;
use super::{BATCH, Progress, Record, StampSource};
use crate::signature::{HEAD, Shape, Signer};
use tailtrim_wire::frame::Link;

/// Bytes of the file header.
pub(super) const HEADER_LEN: usize = 24;

/// Bytes of a record header.
pub(super) const RECORD_HEADER_LEN: usize = 16;

/// No link carries longer frames (a jumbo frame is 9 KB, a coalesced one 64 KB; libpcap's own limit):
/// a longer record is damage.
pub(super) const LONGEST_FRAME: usize = 256 * 1024;

/// Bytes that an X552 NIC appends to each frame.
const X552_TRAILER_LEN: usize = 8;

const NS_PER_S: i64 = 1_000_000_000;

/// The content that was found, and the content that was expected instead.
type FoundExpected = (String, String);

#[derive(Debug, Clone)]
pub(super) struct Decoder {
    swapped: bool,
    /// Nanoseconds of one unit of the fraction field: 1000 or 1.
    resolution_ns: u64,
    longest: usize,
    link: Link,
    stamps: StampSource,
}

impl Decoder {
    /// Reads the file header at the start of `window`.
    pub(super) fn new(window: &[u8], stamps: StampSource) -> Result<Self, Damage> {
        let damage =
            |found: String, expected: &str| Damage { at: 0, found, expected: expected.to_owned() };
        let Some(header) = window.first_chunk::<HEADER_LEN>() else {
            return Err(damage(
                format!("{} bytes", window.len()),
                "at least 24 bytes of capture header (pcap, pcapng or mscap)",
            ));
        };
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let (swapped, resolution_ns) = match word(0) {
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1),
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1),
            [a, b, c, d] => {
                return Err(damage(
                    format!("magic number {a:02x} {b:02x} {c:02x} {d:02x}"),
                    "a pcap (a1b2c3d4 or a1b23c4d, either byte order), pcapng (0a0d0d0a), \
                     zstd or gzip magic number, or the name ending .mscap",
                ));
            }
        };
        let read = |bytes: [u8; 4]| {
            if swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        // The upper bits carry the FCS length, not the link type.
        let link_type = read(word(20)) & 0xffff;
        let link = Link::from_link_type(link_type)
            .ok_or_else(|| damage(format!("link type {link_type}"), Link::EXPECTED))?;
        let longest = (read(word(16)) as usize).max(LONGEST_FRAME);
        // A snap length beyond 16 MiB is "no limit" in some writers, not a promise of such frames.
        let longest = if longest > 1 << 24 { LONGEST_FRAME } else { longest };
        Ok(Self { swapped, resolution_ns, longest, link, stamps })
    }

    /// The unit of the stamps.
    pub(super) fn unit_ps(&self) -> u64 {
        let in_header = self.stamps == StampSource::Header;
        if in_header { 1_000 * self.resolution_ns } else { 1_000 }
    }

    pub(super) fn decode(
        &mut self,
        window: &[u8],
        signer: &Signer,
        records: &mut Vec<Record>,
        keep: &mut impl Keep,
    ) -> Progress {
        if self.swapped {
            self.decode_as::<true, _>(window, signer, records, keep)
        } else {
            self.decode_as::<false, _>(window, signer, records, keep)
        }
    }

    fn decode_as<const SWAPPED: bool, K: Keep>(
        &self,
        window: &[u8],
        signer: &Signer,
        records: &mut Vec<Record>,
        keep: &mut K,
    ) -> Progress {
        let mut rest = window;
        let mut damage = None;
        let mut shape = Shape::default();
        let mut decoded = records.len();
        // Slots written one after the other: a push would look for space for each.
        records.extend_from_slice(&BLANK[..BATCH.min(window.len() / RECORD_HEADER_LEN)]);
        for record in &mut records[decoded..] {
            // Nearly every record is followed by so many bytes, and its frame is of the shape of the
            // one before: then one comparison stands for most of what follows below.
            if let Some((header, head)) = rest
                .first_chunk::<{ RECORD_HEADER_LEN + HEAD }>()
                .and_then(|front| front.split_first_chunk())
                && let Some(head) = head.first_chunk()
            {
                let [seconds, fraction, captured, length] = words::<SWAPPED>(header);
                let captured = captured as usize;
                let fraction_ns = u64::from(fraction) * self.resolution_ns;
                if shape.is_that_of(head, captured)
                    && fraction_ns < NS_PER_S as u64
                    && has_stamp(seconds, fraction_ns)
                    && let Some((whole, next)) = rest.split_at_checked(RECORD_HEADER_LEN + captured)
                {
                    fetch(rest, RECORD_HEADER_LEN + captured);
                    keep.frame(self.link, whole.get(RECORD_HEADER_LEN..).unwrap_or_default());
                    *record = Record {
                        stamp_ns: i64::from(seconds) * NS_PER_S + fraction_ns.cast_signed(),
                        signature: shape.sign(head),
                        length,
                        signable: shape.signable,
                        cut: captured < length as usize,
                        stamped: true,
                    };
                    decoded += 1;
                    rest = next;
                    continue;
                }
            }
            match self.decode_one::<SWAPPED, _>(rest, signer, &mut shape, keep) {
                Ok(Some((other, next))) => {
                    *record = other;
                    decoded += 1;
                    rest = next;
                }
                Ok(None) => break,
                Err((found, expected)) => {
                    damage = Some(Damage { at: window.len() - rest.len(), found, expected });
                    break;
                }
            }
        }
        records.truncate(decoded);
        Progress { consumed: window.len() - rest.len(), damage }
    }

    /// The record at the start of `rest`, whatever it looks like, and what follows it; `None` when it
    /// does not end there.
    #[cold]
    fn decode_one<'a, 'b, const SWAPPED: bool, K: Keep>(
        &self,
        rest: &'b [u8],
        signer: &'a Signer,
        shape: &mut Shape<'a>,
        keep: &mut K,
    ) -> Result<Option<(Record, &'b [u8])>, FoundExpected> {
        let Some((header, body)) = rest.split_first_chunk::<RECORD_HEADER_LEN>() else {
            return Ok(None);
        };
        let [seconds, fraction, captured, length] = words::<SWAPPED>(header);
        let captured = captured as usize;
        let fraction_ns = u64::from(fraction) * self.resolution_ns;
        if captured > self.longest || fraction_ns >= NS_PER_S as u64 {
            return Err(self.damage(captured, fraction));
        }
        let Some((frame, next)) = body.split_at_checked(captured) else { return Ok(None) };
        let cut = captured < length as usize;
        let record = if self.stamps == StampSource::X552Trailer {
            self.with_trailer(frame, length, cut, signer)
        } else {
            let head = body.first_chunk();
            let known = head.and_then(|head| {
                *shape = signer.shape(self.link, head, captured)?;
                Some((shape.sign(head), shape.signable))
            });
            let (signature, signable) = known.unwrap_or_else(|| signer.sign(self.link, frame));
            let stamp_ns = i64::from(seconds) * NS_PER_S + fraction_ns.cast_signed();
            let stamped = has_stamp(seconds, fraction_ns);
            Record { stamp_ns, signature, length, signable, cut, stamped }
        };
        if record.stamped {
            keep.frame(self.link, frame);
        }
        Ok(Some((record, next)))
    }

    /// A frame whose stamp is in its trailer.
    fn with_trailer(&self, frame: &[u8], length: u32, cut: bool, signer: &Signer) -> Record {
        let (stamp_ns, whole) = take_trailer(frame, cut);
        let (signature, signable) = signer.sign(self.link, whole);
        Record {
            stamp_ns: stamp_ns.unwrap_or_default(),
            signature,
            length: length.saturating_sub((frame.len() - whole.len()) as u32),
            signable,
            cut,
            stamped: stamp_ns.is_some(),
        }
    }

    fn damage(&self, captured: usize, fraction: u32) -> FoundExpected {
        if captured > self.longest {
            (format!("a record of {captured} bytes"), format!("at most {} bytes", self.longest))
        } else {
            let unit = if self.resolution_ns == 1 { "nanoseconds" } else { "microseconds" };
            (
                format!("{fraction} {unit} in a stamp"),
                format!("fewer than {}", NS_PER_S as u64 / self.resolution_ns),
            )
        }
    }

    /// The stamp of the record whose header these bytes begin with, if it has one, and the record's length; `None` where
    /// they cannot be a header.
    pub(super) fn header(&self, bytes: &[u8]) -> Option<(Option<i64>, usize)> {
        let header = bytes.first_chunk::<RECORD_HEADER_LEN>()?;
        let [seconds, fraction, captured, length] =
            if self.swapped { words::<true>(header) } else { words::<false>(header) };
        let fraction_ns = u64::from(fraction) * self.resolution_ns;
        let valid = captured as usize <= self.longest
            && captured <= length
            && fraction_ns < NS_PER_S as u64;
        let stamp_ns = i64::from(seconds) * NS_PER_S + fraction_ns.cast_signed();
        let stamp_ns = has_stamp(seconds, fraction_ns).then_some(stamp_ns);
        valid.then_some((stamp_ns, RECORD_HEADER_LEN + captured as usize))
    }

    /// Where stamps are taken from.
    pub(super) fn stamps(&self) -> StampSource {
        self.stamps
    }

    /// Describes the partial record `rest` at the end of the capture.
    pub(super) fn truncated(&self, rest: &[u8]) -> (String, String) {
        match rest.split_first_chunk::<RECORD_HEADER_LEN>() {
            None => (
                format!("the capture ends {} bytes into a record header", rest.len()),
                format!("{RECORD_HEADER_LEN} bytes"),
            ),
            Some((header, body)) => {
                let [_, _, captured, _] =
                    if self.swapped { words::<true>(header) } else { words::<false>(header) };
                (
                    format!("the capture ends {} bytes into a frame", body.len()),
                    format!("{captured} bytes"),
                )
            }
        }
    }
}

/// The stamp in the trailer of `frame`, and the frame without the trailer.
pub(super) fn take_trailer(frame: &[u8], cut: bool) -> (Option<i64>, &[u8]) {
    // A cut frame has lost its trailer: whatever bytes stand at its end are payload.
    let Some((rest, trailer)) = frame.split_last_chunk::<X552_TRAILER_LEN>().filter(|_| !cut)
    else {
        return (None, frame);
    };
    let (nanoseconds, seconds) = trailer.split_at(4);
    let [nanoseconds, seconds] = [nanoseconds, seconds]
        .map(|bytes| bytes.iter().rev().fold(0_i64, |value, &byte| value << 8 | i64::from(byte)));
    // The NIC leaves some frames without a stamp; their last bytes are payload.
    let stamp_ns = (nanoseconds < NS_PER_S).then_some(seconds * NS_PER_S + nanoseconds);
    (stamp_ns, rest)
}

static BLANK: [Record; BATCH] = [Record::BLANK; BATCH];

/// Records ahead of the one being decoded.
const AHEAD: usize = 32;

/// Asks the memory for what lies some records of `size` bytes ahead.
///
/// The CPU's own guesses end at each page and fall behind here: without this, half of the time of
/// decoding 60-byte frames is spent waiting for them.
#[inline]
fn fetch(rest: &[u8], size: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = rest.get(AHEAD * size) {
        safe_arch::prefetch_t0(byte);
    }
}

#[inline]
fn has_stamp(seconds: u32, fraction_ns: u64) -> bool {
    seconds != u32::MAX
        || !stands_for_none(i64::from(seconds) * NS_PER_S + fraction_ns.cast_signed())
}

#[inline]
fn words<const SWAPPED: bool>(header: &[u8; RECORD_HEADER_LEN]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(header.as_chunks::<4>().0) {
        *word = if SWAPPED { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) };
    }
    words
}
