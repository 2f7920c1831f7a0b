//! Places at which two captures can be cut, found without reading all of them.

use crate::source::Plain;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::FileExt;
use tailtrim_tail::capture::{CHAIN, Track};

/// Bytes that are read to find the time at a place within a capture: enough to find where records begin, also among
/// whole jumbo frames of 9,000 bytes.
const LOOK: usize = 128 * 1024;

/// Records before a cut whose stamps must all be smaller.
const BEFORE: usize = 64;

/// A capture that can be read from any place on.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) salvage: bool,
    pub(super) plain: Plain,
    pub(super) track: Track,
    /// Added to each stamp.
    pub(super) shift_ns: i64,
}

/// A place in both captures, offsets of records.
pub(super) type Place = [u64; 2];

/// The beginning of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cut {
    pub(super) at: Place,
    /// The stamp of the cut: on both sides the record there is not earlier, and all records before it are.
    pub(super) stamp_ns: i64,
    /// Place at which matching begins, in front of the cut.
    pub(super) before: Place,
}

/// The first cut is tried at this part of a stretch, then at twice that place, and from [`NEXT`] on at multiples of
/// that part, until one is found: the thread that joins the stretches reads up to it before others can help.
const FIRST: u64 = 16;
const NEXT: u64 = 4;

/// Cuts after `from_ns`, so many packets of the ingress capture apart; `before` so many packets before each of them.
/// Both are estimated from the records around each cut. Cuts that cannot be found are left out.
pub(super) fn cuts(sides: &[Side; 2], packets: u64, before: u64, from_ns: i64) -> Vec<Cut> {
    let [ingress, egress] = sides;
    let packets = packets.max(1);
    let Some(mut record) = ingress.record_bytes(Track::BEGIN) else { return Vec::new() };
    let place = |offset: u64| -> Option<(Place, i64)> {
        if offset <= Track::BEGIN {
            return Some(([Track::BEGIN; 2], i64::MIN));
        }
        let (at, stamp_ns) = ingress.cut(offset)?;
        Some(([at, egress.from(stamp_ns)?], stamp_ns))
    };
    let mut cuts: Vec<Cut> = Vec::new();
    // Shorter ones are not worth it.
    if packets.saturating_mul(record).saturating_mul(3) / 2 >= ingress.plain.size {
        return cuts;
    }
    let mut offset = (packets / FIRST).max(1).saturating_mul(record);
    while offset.saturating_add(packets.saturating_mul(record) / 2) < ingress.plain.size {
        record = ingress.record_bytes(offset).unwrap_or(record);
        if let Some((at, stamp_ns)) = place(offset)
            && stamp_ns > from_ns
            && cuts.last().is_none_or(|last| last.at[0] < at[0] && last.at[1] <= at[1])
            && let Some((before, _)) = place(offset.saturating_sub(before.saturating_mul(record)))
        {
            cuts.push(Cut { at, stamp_ns, before });
        }
        let stretch = packets.saturating_mul(record);
        let step = if cuts.is_empty() { offset.min(stretch / NEXT).max(1) } else { stretch };
        offset = offset.saturating_add(step);
    }
    cuts
}

impl Side {
    /// Bytes of a record behind `offset`, on average.
    fn record_bytes(&self, offset: u64) -> Option<u64> {
        let bytes = self.bytes(offset, CHAIN).ok()?;
        let bytes = &bytes[self.track.first(&bytes)?..];
        (self.track.whole(bytes) as u64).checked_div(self.track.records(bytes).count() as u64)
    }

    /// Number of records between two places if all are as long as those at both ends; `None` where they are not.
    pub(super) fn records_between(&self, from: u64, to: u64) -> Option<u64> {
        let length = self.record_length(from)?;
        let alike = self.record_length(to.saturating_sub(LOOK as u64))? == length;
        let bytes = to.checked_sub(from)?;
        (alike && bytes.is_multiple_of(length)).then(|| bytes / length)
    }

    /// The length of the records behind `offset`; `None` where they differ.
    fn record_length(&self, offset: u64) -> Option<u64> {
        let records = self.records(offset, LOOK)?;
        let mut lengths = records.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let length = lengths.next()?;
        lengths.all(|other| other == length).then_some(length)
    }

    /// Bytes from `offset` on, as many as there are of `count`.
    fn bytes(&self, offset: u64, count: usize) -> io::Result<Vec<u8>> {
        let left = self.plain.size.saturating_sub(offset);
        let mut bytes = vec![0; usize::try_from(left).map_or(count, |left| left.min(count))];
        self.plain.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Offsets and stamps of the records from the first one behind `offset` on, within `count` bytes.
    fn records(&self, offset: u64, count: usize) -> Option<Vec<(u64, i64)>> {
        let bytes = self.bytes(offset, count).ok()?;
        let first = self.track.first(&bytes)?;
        let records = self.track.records(&bytes[first..]);
        let placed = records.filter_map(|(at, stamp_ns)| {
            Some((offset + (first + at) as u64, stamp_ns?.saturating_add(self.shift_ns)))
        });
        Some(placed.collect())
    }

    /// The first record behind `offset` that was stamped later than those before it, and its stamp.
    fn cut(&self, offset: u64) -> Option<(u64, i64)> {
        let records = self.records(offset, CHAIN)?;
        let mut last_ns = i64::MIN;
        for (index, &(at, stamp_ns)) in records.iter().enumerate() {
            if index >= BEFORE && stamp_ns > last_ns {
                return Some((at, stamp_ns));
            }
            last_ns = last_ns.max(stamp_ns);
        }
        None
    }

    /// The first record stamped `from_ns` or later.
    fn from(&self, from_ns: i64) -> Option<u64> {
        let (mut low, mut high) = (Track::BEGIN, self.plain.size);
        while high - low > LOOK as u64 {
            let middle = low.midpoint(high);
            match self.records(middle, LOOK)?.first() {
                Some((at, stamp_ns)) if *stamp_ns < from_ns && *at < high => low = *at,
                _ => high = middle,
            }
        }
        let records = self.records(low, CHAIN)?;
        let found = records.iter().find(|(_, stamp_ns)| *stamp_ns >= from_ns).map(|(at, _)| *at);
        let to_the_end = self.plain.size - low <= CHAIN as u64;
        found.or(to_the_end.then_some(self.plain.size))
    }

    /// Whether the records from the first one on lead to this place, all of them stamped before a time.
    pub(super) fn leads_to(&self, place: u64, before_ns: i64) -> bool {
        let mut at = Track::BEGIN;
        while at < place {
            let Ok(bytes) = self.bytes(at, CHAIN.min((place - at) as usize)) else { return false };
            let mut records = self.track.records(&bytes);
            let earlier = |stamp_ns: i64| stamp_ns.saturating_add(self.shift_ns) < before_ns;
            if !records.all(|(_, stamp_ns)| stamp_ns.is_none_or(earlier)) {
                return false;
            }
            let whole = self.track.whole(&bytes);
            if whole == 0 {
                return false;
            }
            at += whole as u64;
        }
        at == place
    }
}
