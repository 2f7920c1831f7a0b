//! Begin of the records of a classic pcap, found from any place within it.
//!
//! A record says only how long it is. So of a place within a capture the next begin of a record is found by trying: a
//! chain of headers, each where the one before says, all with stamps near one another. Payload that looks like such a
//! chain, a capture within the capture, is possible: a place found is a guess until a reader that began before it
//! comes by.

use super::pcap::{self, LONGEST_FRAME};
use super::{CaptureReader, Decoder, Input};

/// So far apart successive stamps of a chain may be: an hour.
const NEAR_NS: u64 = 3_600_000_000_000;

/// So many whole records make a chain: one may look like any other bytes, and lead beyond them.
const RECORDS: usize = 8;

/// Bytes among which [`Track::first`] is certain: a chain of such a length does not fit into one frame.
pub const CHAIN: usize = 2 * LONGEST_FRAME;

/// So far from the first stamp of the capture those of a chain may be: 30 days. Without this, traffic of frames of one size
/// at more than 300,000 packets a second has a second chain, four bytes behind the first: fractions of seconds for seconds,
/// and the length for the captured length.
const FAR_NS: u64 = 30 * 24 * NEAR_NS;

/// Where the records of a capture begin.
#[derive(Debug, Clone)]
pub struct Track {
    decoder: pcap::Decoder,
    first_ns: i64,
}

impl Track {
    /// `records` are the first bytes of the records.
    pub(super) fn of(decoder: &pcap::Decoder, records: &[u8]) -> Option<Self> {
        let first_ns = decoder.header(records)?.0?;
        decoder.is_plain().then(|| Self { decoder: decoder.clone(), first_ns })
    }

    /// Bytes of the capture before its first record.
    pub const BEGIN: u64 = pcap::HEADER_LEN as u64;

    /// Where the first record begins in these bytes of the capture. [`CHAIN`] of them are no part of a frame.
    #[must_use]
    pub fn first(&self, bytes: &[u8]) -> Option<usize> {
        (0..bytes.len()).find(|&at| self.is_chain(&bytes[at..]))
    }

    /// Whether a chain begins here that leads to the end of the bytes.
    fn is_chain(&self, bytes: &[u8]) -> bool {
        let mut last_ns: Option<i64> = None;
        let (mut at, mut whole) = (0, 0);
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= pcap::RECORD_HEADER_LEN)
        {
            let Some((stamp_ns, length)) = self.decoder.header(rest) else { return false };
            // Payload is often zeros, which would be an empty record.
            if length == pcap::RECORD_HEADER_LEN {
                return false;
            }
            let is_near = |stamp_ns: i64| {
                stamp_ns.abs_diff(last_ns.unwrap_or(stamp_ns)) <= NEAR_NS
                    && stamp_ns.abs_diff(self.first_ns) <= FAR_NS
            };
            if !stamp_ns.is_none_or(is_near) {
                return false;
            }
            last_ns = stamp_ns.or(last_ns);
            at += length;
            whole += usize::from(at <= bytes.len());
        }
        whole >= RECORDS
    }

    /// Where the records begin that lie whole in these bytes, which begin with one, with their stamps.
    pub fn records<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (usize, Option<i64>)> + 'a {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (stamp_ns, length) = self.decoder.header(bytes.get(at..)?)?;
            let begin = at;
            at += length;
            (at <= bytes.len()).then_some((begin, stamp_ns))
        })
    }

    /// Bytes of the records that lie whole in these bytes, which begin with one.
    #[must_use]
    pub fn whole(&self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some((_, length)) = bytes.get(at..).and_then(|rest| self.decoder.header(rest))
            && at + length <= bytes.len()
        {
            at += length;
        }
        at
    }

    /// The capture from `offset` on, where a record begins and before which there are so many records: the bytes of
    /// `input`. For `name` and `salvage` see [`CaptureReader::open`].
    #[must_use]
    pub fn capture(
        &self,
        name: impl Into<String>,
        input: Box<dyn Input>,
        (offset, records): (u64, u64),
        salvage: bool,
    ) -> CaptureReader {
        let decoder = Decoder::Pcap(self.decoder.clone());
        CaptureReader::within(name.into(), input, decoder, (offset, records), salvage)
    }
}
