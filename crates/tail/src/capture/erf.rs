//! ERF, the format of Endace's capture cards: no file header, records of 16 bytes, extension headers and a frame.
//!
//! Stamps are fixed point numbers, 32 bits of seconds and 32 of fractions, little endian; all else is big endian.
//! Types and flags are those of Endace's "ERF types reference guide" (EDM11-01), as Wireshark reads them.

use super::block::{ByteOrder, Captured, NS_PER_S, Odd, decode_blocks};
use super::keep::Keep;
use super::side::Place;
use super::{Progress, Record, StampSource};
use crate::signature::Signer;
use crate::summary::in_bytes;
use std::collections::BTreeMap;
use tailtrim_wire::frame::Link;

/// Bytes of a record header, and of an extension header.
const HEADER_LEN: usize = 16;
const EXTENSION_LEN: usize = 8;

/// Bytes between the header of a record of Ethernet and its frame: offset and padding.
const ETHERNET_PAD: usize = 2;

/// Set in the type of a record, and in an extension header, if an extension header follows.
const MORE: u8 = 0x80;

/// The bit of the flags that is reserved.
const RESERVED: u8 = 0x80;

/// Bytes of a frame check sequence, which the length on the wire includes for Ethernet.
const FCS_LEN: usize = 4;

const ETHERNET: u8 = 2;
const IPV4: u8 = 22;
const IPV6: u8 = 23;

/// Records that fill the stream or describe it.
const PADDING: u8 = 48;
const META: u8 = 27;

/// So far apart the first two stamps may be where ERF is recognised by content: a day.
const NEAR_S: u32 = 86_400;

/// Names of the types that are not read.
const TYPES: &[(u8, &str)] = &[
    (1, "HDLC POS"),
    (3, "ATM"),
    (4, "AAL5"),
    (5, "multi-channel HDLC"),
    (6, "multi-channel raw"),
    (7, "multi-channel ATM"),
    (8, "multi-channel raw"),
    (9, "multi-channel AAL5"),
    (10, "HDLC POS"),
    (12, "multi-channel AAL2"),
    (13, "IP counter"),
    (14, "TCP flow counter"),
    (15, "HDLC POS"),
    (17, "multi-channel HDLC"),
    (18, "AAL2"),
    (19, "HDLC POS"),
    (21, "InfiniBand"),
    (24, "raw link"),
    (25, "InfiniBand"),
    (28, "Omni-Path"),
    (29, "Omni-Path"),
];

#[derive(Debug, Clone, Default)]
pub(super) struct Decoder {
    /// Packets that the card says it dropped.
    drops: u64,
    /// Packets that are not read, by interface and type.
    pub(super) unread: BTreeMap<(u32, String), u64>,
}

/// Parts of a record.
struct Parsed<'a> {
    kind: u8,
    interface: u32,
    stamp_ns: i64,
    length: usize,
    /// Packets dropped before this one, where the type tells.
    drops: u64,
    /// Bytes behind the headers.
    body: &'a [u8],
}

impl Decoder {
    /// Whether the first bytes are records of this format; `None` where more bytes would tell.
    pub(super) fn recognises(window: &[u8]) -> Option<bool> {
        // Records that fill the stream need no stamps.
        let plausible = |bytes: &[u8]| -> Option<(Option<u32>, usize)> {
            let header = bytes.first_chunk::<HEADER_LEN>()?;
            let (kind, flags) = (header[8] & !MORE, header[9]);
            let known = matches!(kind, ETHERNET | 11 | 16 | 20 | IPV4 | IPV6 | PADDING | META)
                || TYPES.iter().any(|(known, _)| *known == kind);
            let seconds = (kind != PADDING).then(|| ByteOrder::Little.word(header, 4));
            let length = usize::from(ByteOrder::Big.short(header, 10));
            (known && flags & RESERVED == 0 && length >= HEADER_LEN).then_some((seconds, length))
        };
        if window.len() < HEADER_LEN {
            return None;
        }
        let Some((first_s, length)) = plausible(window) else { return Some(false) };
        let next = window.get(length..)?;
        if next.len() < HEADER_LEN {
            return None;
        }
        Some(plausible(next).is_some_and(|(next_s, _)| {
            first_s.zip(next_s).is_none_or(|(first_s, next_s)| first_s.abs_diff(next_s) <= NEAR_S)
        }))
    }

    /// Whether a capture that ends after these bytes is one record.
    pub(super) fn is_one(window: &[u8]) -> bool {
        Self::recognises(window).is_none()
            && window.len() >= HEADER_LEN
            && usize::from(ByteOrder::Big.short(window, 10)) == window.len()
    }

    /// Packets that the card says it dropped.
    pub(super) fn drops(&self) -> u64 {
        self.drops
    }

    pub(super) fn decode(
        &mut self,
        window: &[u8],
        signer: &Signer,
        records: &mut Vec<Record>,
        keep: &mut impl Keep,
    ) -> Progress {
        decode_blocks(window, records, |bytes| {
            let parsed = parse(bytes)?;
            Ok(parsed.map(|(length, parsed)| (length, self.packet(&parsed, signer, keep))))
        })
    }

    /// The packet in a record, if there is a wanted one.
    fn packet(
        &mut self,
        parsed: &Parsed<'_>,
        signer: &Signer,
        keep: &mut impl Keep,
    ) -> Option<Record> {
        let &Parsed { kind, interface, stamp_ns, length, drops, body } = parsed;
        if matches!(kind, PADDING | META) {
            return None;
        }
        let place = Place { index: Some(interface), names: &[], direction: None };
        let link = match kind {
            ETHERNET | 11 | 16 | 20 => Some(Link::Ethernet),
            IPV4 | IPV6 => Some(Link::RawIp),
            _ => None,
        };
        if !keep.takes(&place, link.is_some()) {
            return None;
        }
        let Some(link) = link else {
            let name = TYPES.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name);
            let name = name.map_or(String::new(), |name| format!(", {name}"));
            *self.unread.entry((interface, format!("ERF type {kind}{name}"))).or_default() += 1;
            return None;
        };
        self.drops = self.drops.saturating_add(drops);
        let (frame, length) = match link {
            Link::Ethernet => without_fcs(body.get(ETHERNET_PAD..).unwrap_or_default(), length),
            // Records are filled up to a multiple of eight bytes.
            _ => (&body[..body.len().min(length)], length),
        };
        let captured = Captured { link, frame, length: length as u32, stamp_ns: Some(stamp_ns) };
        let sign = |link, frame: &[u8]| signer.sign(link, frame);
        Some(captured.record(StampSource::Header, sign, keep))
    }

    /// Describes the partial record `rest` at the end of the capture.
    pub(super) fn truncated(rest: &[u8]) -> (String, String) {
        let length = ByteOrder::Big.short(rest, 10);
        (
            format!("the capture ends {} into a record", in_bytes(rest.len())),
            in_bytes(usize::from(length).max(HEADER_LEN)),
        )
    }
}

/// The interface, from 0 to 7: its third bit is apart from the others.
fn interface(flags: u8) -> u32 {
    u32::from(flags & 3 | flags >> 4 & 4)
}

/// The frame without FCS and padding, and its length on the wire. The card counts the FCS; some programs that write this
/// format do not, which an IP packet that would lose its end shows.
fn without_fcs(bytes: &[u8], length: usize) -> (&[u8], usize) {
    let ip_end = match (Link::Ethernet.payload(bytes), length.checked_sub(FCS_LEN)) {
        (Some((0x0800, at)), Some(_)) => {
            ByteOrder::Big.number::<2>(bytes, at + 2).map(|total| at + total as usize)
        }
        (Some((0x86dd, at)), Some(_)) => {
            ByteOrder::Big.number::<2>(bytes, at + 4).map(|payload| at + 40 + payload as usize)
        }
        _ => None,
    };
    let without = length.saturating_sub(FCS_LEN);
    let length =
        if ip_end.is_some_and(|end| end > without && end <= length) { length } else { without };
    (&bytes[..bytes.len().min(length)], length)
}

/// Length and parts of the record at the start of `bytes`; `None` when it does not end there.
fn parse(bytes: &[u8]) -> Result<Option<(usize, Parsed<'_>)>, Odd> {
    let Some(header) = bytes.first_chunk::<HEADER_LEN>() else { return Ok(None) };
    let big = |at| usize::from(ByteOrder::Big.short(header, at));
    let (kind, flags, length) = (header[8], header[9], big(10));
    if length < HEADER_LEN || kind & !MORE == 0 {
        let found = format!("a record of type {} and {length} bytes", kind & !MORE);
        return Err((found, "a type from 1 and at least 16 bytes".to_owned()));
    }
    let Some(mut body) = bytes.get(HEADER_LEN..length) else { return Ok(None) };
    let mut more = kind & MORE != 0;
    while more {
        let Some((extension, rest)) = body.split_first_chunk::<EXTENSION_LEN>() else {
            let found =
                format!("a record of {length} bytes that ends within its extension headers");
            return Err((found, "a frame behind them".to_owned()));
        };
        more = extension[0] & MORE != 0;
        body = rest;
    }
    let [fraction, seconds] = [0, 4].map(|at| i64::from(ByteOrder::Little.word(header, at)));
    // Rounded: a time in whole nanoseconds comes back as it was.
    let fraction_ns = (fraction * NS_PER_S + (1 << 31)) >> 32;
    let kind = kind & !MORE;
    let parsed = Parsed {
        kind,
        interface: interface(flags),
        stamp_ns: seconds * NS_PER_S + fraction_ns,
        length: big(14),
        // In the other types these bytes are a colour.
        drops: if matches!(kind, ETHERNET | IPV4 | IPV6) { big(12) as u64 } else { 0 },
        body,
    };
    Ok(Some((length, parsed)))
}
