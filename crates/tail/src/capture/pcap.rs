//! Classic pcap: the fast path. One pass, one bounds check a record, no allocation.
//!
//! Format: draft-ietf-opsawg-pcap. The header gives byte order and resolution by its magic; records
//! follow back to back without padding. The modified pcap of Kuznetsov's patches to libpcap (Linux distributions of
//! about 2000, some routers today) has longer record headers, which also tell interface and direction.

use super::block::{ByteOrder, Captured, NS_PER_S};
use super::error::Damage;
use super::foreign::{FRAMES, link_type_name, what_else};
use super::keep::Keep;
use super::side::{InterfaceDirection, Place};
use super::write::stands_for_none;
use super::{BATCH, Progress, Record, StampSource};
use crate::signature::{HEAD, Shape, Signed, Signer};
use crate::summary::in_bytes;
use tailtrim_wire::frame::Link;

/// Bytes of the file header.
pub(super) const HEADER_LEN: usize = 24;

/// Bytes of a record header.
pub(super) const RECORD_HEADER_LEN: usize = 16;

/// Bytes of a record header of the modified pcap: interface, protocol and packet type follow.
const MODIFIED_HEADER_LEN: usize = 24;

/// No link carries longer frames (a jumbo frame is 9 KB, a coalesced one 64 KB; libpcap's own limit):
/// a longer record is damage.
pub(super) const LONGEST_FRAME: usize = 256 * 1024;

/// So near each other successive stamps of a variant are taken to be: a day.
const NEAR_NS: u64 = 86_400_000_000_000;

/// The only version that libpcap has written since 1998.
const VERSION: (u16, u16) = (2, 4);

/// Bits of the link type that stand for nothing: those between it and the FCS length with its flag.
const LINK_RESERVED: u32 = 0x03ff_0000;

#[derive(Debug, Clone)]
pub(super) struct Decoder {
    order: ByteOrder,
    /// Nanoseconds of one unit of the fraction field: 1000 or 1.
    resolution_ns: u64,
    longest: usize,
    link: Link,
    stamps: StampSource,
    /// Bytes of a record header.
    header_len: usize,
    /// Every record is looked at on its own: the shape of the one before says nothing.
    each: bool,
}

impl Decoder {
    /// Reads the file header at the start of `window`.
    pub(super) fn new(window: &[u8], stamps: StampSource) -> Result<Self, Damage> {
        let damage = |found: String, expected: &str| Damage::of(found, expected.to_owned());
        let Some(header) = window.first_chunk::<HEADER_LEN>() else {
            return Err(damage(
                in_bytes(window.len()),
                "at least 24 bytes of capture header (pcap, pcapng, ERF or mscap)",
            ));
        };
        let order = if header[0] == 0xa1 { ByteOrder::Big } else { ByteOrder::Little };
        let Some((resolution_ns, header_len)) = units(order.word(header, 0)) else {
            // As many bytes as there are however the capture arrives.
            let (found, expected) = what_else(header);
            return Err(damage(found, &expected));
        };
        let resolution_ns = if stamps == StampSource::Nanoseconds { 1 } else { resolution_ns };
        let (major, minor) = (order.short(header, 4), order.short(header, 6));
        if (major, minor) != VERSION {
            return Err(damage(
                format!("pcap of version {major}.{minor}"),
                "version 2.4: convert it with editcap -F nsecpcap IN OUT, which tells what it is",
            ));
        }
        let link = order.word(header, 20);
        // The upper bits carry the FCS length.
        let link_type = link & 0xffff;
        if link & LINK_RESERVED != 0 {
            return Err(damage(
                format!("link type {link:#010x}, of which reserved bits are set"),
                "the file header of a pcap: this one is damaged, record it again",
            ));
        }
        let link = Link::from_link_type(link_type).ok_or_else(|| {
            damage(
                format!("link type {}", link_type_name(link_type)),
                &format!("{}: {FRAMES}", Link::EXPECTED),
            )
        })?;
        let longest = (order.word(header, 16) as usize).max(LONGEST_FRAME);
        // A snap length beyond 16 MiB is "no limit" in some writers, not a promise of such frames.
        let longest = if longest > 1 << 24 { LONGEST_FRAME } else { longest };
        let each = header_len != RECORD_HEADER_LEN;
        Ok(Self { order, resolution_ns, longest, link, stamps, header_len, each })
    }

    /// Bytes of a record header where this is another variant of pcap, with the same magic number: Nokia's, or one of old
    /// Linux distributions. `rest` are the bytes behind the first record, which make none: as many bytes of that are
    /// left as record headers are longer, and records follow.
    pub(super) fn variant(&self, rest: &[u8]) -> Option<usize> {
        [4, 8, 12].into_iter().find_map(|more| {
            let header_len = self.header_len + more;
            let longer = Self { header_len, ..self.clone() };
            let (first_ns, length) = longer.header(rest.get(more..)?)?;
            let next = rest.get(more + length..)?;
            let near = |next_ns: i64| first_ns.is_some_and(|ns| ns.abs_diff(next_ns) < NEAR_NS);
            let goes_on = next.is_empty()
                || longer.header(next).is_some_and(|(next_ns, _)| next_ns.is_some_and(near));
            (goes_on && length > header_len).then_some(header_len)
        })
    }

    /// Whether the records tell interface or direction: those of a capture on the device "any" and of the modified pcap.
    pub(super) fn has_places(&self) -> bool {
        self.header_len == MODIFIED_HEADER_LEN || matches!(self.link, Link::Cooked | Link::Cooked2)
    }

    /// Looks at each record on its own.
    pub(super) fn look_at_each(&mut self) {
        self.each = true;
    }

    /// Interface and direction of a record, of which these are the header and the frame.
    fn place(&self, header: &[u8], frame: &[u8]) -> Place<'static> {
        let number = |order: ByteOrder, bytes, at| Some(order.number::<4>(bytes, at)? as u32);
        let (index, kind) = match self.link {
            _ if self.header_len == MODIFIED_HEADER_LEN => {
                (number(self.order, header, 16), header.get(22).copied())
            }
            Link::Cooked2 => (number(ByteOrder::Big, frame, 4), frame.get(10).copied()),
            Link::Cooked => (None, frame.get(1).copied()),
            _ => (None, None),
        };
        Place { index, names: &[], direction: kind.map(InterfaceDirection::of_packet_type) }
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
        // Where the first frame has a VLAN tag, most have.
        let tagged = window.get(RECORD_HEADER_LEN..).is_some_and(Link::is_tagged);
        match (self.order, tagged) {
            (ByteOrder::Big, false) => {
                self.decode_as::<true, false, _>(window, signer, records, keep)
            }
            (ByteOrder::Big, true) => {
                self.decode_as::<true, true, _>(window, signer, records, keep)
            }
            (ByteOrder::Little, false) => {
                self.decode_as::<false, false, _>(window, signer, records, keep)
            }
            (ByteOrder::Little, true) => {
                self.decode_as::<false, true, _>(window, signer, records, keep)
            }
        }
    }

    fn decode_as<const SWAPPED: bool, const TAGGED: bool, K: Keep>(
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
                if shape.is_that_of::<TAGGED>(head, captured)
                    && fraction_ns < NS_PER_S as u64
                    && has_stamp(seconds, fraction_ns)
                    && let Some((whole, next)) = rest.split_at_checked(RECORD_HEADER_LEN + captured)
                {
                    fetch(rest, RECORD_HEADER_LEN + captured);
                    keep.frame(self.link, whole.get(RECORD_HEADER_LEN..).unwrap_or_default());
                    *record = Record {
                        stamp_ns: i64::from(seconds) * NS_PER_S + fraction_ns.cast_signed(),
                        signature: shape.sign::<TAGGED>(head),
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
            match self.decode_one::<SWAPPED, _>(&mut rest, signer, &mut shape, keep) {
                Ok(Some(other)) => {
                    *record = other;
                    decoded += 1;
                }
                Ok(None) => break,
                Err(odd) => {
                    damage = Some(Damage { at: window.len() - rest.len(), ..odd });
                    break;
                }
            }
        }
        records.truncate(decoded);
        Progress { consumed: window.len() - rest.len(), damage }
    }

    /// The next wanted record of `rest`, whatever it looks like, of which then the rest is left; `None` when it does not
    /// end there.
    #[cold]
    fn decode_one<'a, const SWAPPED: bool, K: Keep>(
        &self,
        rest: &mut &[u8],
        signer: &'a Signer,
        shape: &mut Shape<'a>,
        keep: &mut K,
    ) -> Result<Option<Record>, Damage> {
        loop {
            let Some(header) = rest.first_chunk::<RECORD_HEADER_LEN>() else { return Ok(None) };
            let [seconds, fraction, captured, length] = words::<SWAPPED>(header);
            let captured = captured as usize;
            let fraction_ns = u64::from(fraction) * self.resolution_ns;
            if units(seconds).is_some()
                && (self.order.short(header, 4), self.order.short(header, 6)) == VERSION
            {
                let found = "the header of another pcap file".to_owned();
                let expected = "a record: join captures with mergecap, not with cat".to_owned();
                return Err(Damage::of(found, expected));
            }
            if captured > self.longest || fraction_ns >= NS_PER_S as u64 {
                return Err(self.damage(captured, fraction));
            }
            let Some((header, body)) = rest.split_at_checked(self.header_len) else {
                return Ok(None);
            };
            let Some((frame, next)) = body.split_at_checked(captured) else { return Ok(None) };
            *rest = next;
            if self.each && self.has_places() && !keep.takes(&self.place(header, frame), true) {
                continue;
            }
            let stamp_ns = Some(i64::from(seconds) * NS_PER_S + fraction_ns.cast_signed());
            let (link, stamps) = (self.link, self.stamps);
            let sign = |link, frame: &[u8]| {
                let head = body.first_chunk().filter(|_| self.is_plain());
                let known = head.and_then(|head| {
                    *shape = signer.shape(link, head, captured)?;
                    let (signature, signable) = (shape.sign::<true>(head), shape.signable);
                    Some(Signed { signature, signable, truncated: false })
                });
                known.unwrap_or_else(|| signer.sign(link, frame))
            };
            let captured = Captured { link, frame, length, stamp_ns };
            return Ok(Some(captured.record(stamps, sign, keep)));
        }
    }

    fn damage(&self, captured: usize, fraction: u32) -> Damage {
        if captured > self.longest {
            let expected = format!("at most {}", in_bytes(self.longest));
            return Damage::of(format!("a record of {}", in_bytes(captured)), expected);
        }
        let unit = if self.resolution_ns == 1 { "nanoseconds" } else { "microseconds" };
        let expected = format!("fewer than {}", NS_PER_S as u64 / self.resolution_ns);
        let nanoseconds = self.resolution_ns > 1 && i64::from(fraction) < NS_PER_S;
        let found = format!("{fraction} {unit} in a stamp");
        Damage { nanoseconds, ..Damage::of(found, expected) }
    }

    /// The stamp of the record whose header these bytes begin with, if it has one, and the record's length; `None` where
    /// they cannot be a header.
    pub(super) fn header(&self, bytes: &[u8]) -> Option<(Option<i64>, usize)> {
        let header = bytes.first_chunk::<RECORD_HEADER_LEN>()?;
        let [seconds, fraction, captured, length] = self.words(header);
        let fraction_ns = u64::from(fraction) * self.resolution_ns;
        let valid = captured as usize <= self.longest
            && captured <= length
            && fraction_ns < NS_PER_S as u64;
        let stamp_ns = i64::from(seconds) * NS_PER_S + fraction_ns.cast_signed();
        let stamp_ns = has_stamp(seconds, fraction_ns).then_some(stamp_ns);
        valid.then_some((stamp_ns, self.header_len + captured as usize))
    }

    /// Whether a record tells its stamp and length by a header of the usual length, and all are wanted.
    pub(super) fn is_plain(&self) -> bool {
        self.stamps != StampSource::X552Trailer && !self.each
    }

    fn words(&self, header: &[u8; RECORD_HEADER_LEN]) -> [u32; 4] {
        [0, 4, 8, 12].map(|at| self.order.word(header, at))
    }

    /// Describes the partial record `rest` at the end of the capture.
    pub(super) fn truncated(&self, rest: &[u8]) -> (String, String) {
        let split = rest.split_at_checked(self.header_len);
        let Some((Some(header), body)) = split.map(|(head, body)| (head.first_chunk(), body))
        else {
            return (
                format!("the capture ends {} into a record header", in_bytes(rest.len())),
                in_bytes(self.header_len),
            );
        };
        let [_, _, captured, _] = self.words(header);
        (
            format!("the capture ends {} into a frame", in_bytes(body.len())),
            in_bytes(captured as usize),
        )
    }
}

/// Nanoseconds of a unit of stamps, and bytes of a record header, of captures that begin with this magic number.
fn units(magic: u32) -> Option<(u64, usize)> {
    match magic {
        0xa1b2_c3d4 => Some((1000, RECORD_HEADER_LEN)),
        0xa1b2_3c4d => Some((1, RECORD_HEADER_LEN)),
        0xa1b2_cd34 => Some((1000, MODIFIED_HEADER_LEN)),
        _ => None,
    }
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
