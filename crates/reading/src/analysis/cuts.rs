//! Places at which two captures can be cut, found without reading all of them.

use crate::source::Plain;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::FileExt;
use tailtrim_tail::capture::{CHAIN, NEXT_STAMPS, Track};
use tailtrim_tail::matching::DISORDER_NS;

/// Bytes that are read first to find the records at a place within a capture: as a rule, enough. Otherwise [`CHAIN`] are read,
/// also among jumbo frames.
const FEW: usize = 32 * 1024;

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
    /// The stamp of the cut: on both sides the record there is not earlier, and all records before it are, but for odd ones.
    pub(super) stamp_ns: i64,
    /// Place at which matching begins, in front of the cut.
    pub(super) before: Place,
}

/// The first cut is tried at this part of a stretch, then at twice that place, and from [`NEXT`] on at multiples of
/// that part, until one is found: the thread that joins the stretches reads up to it before others can help.
const FIRST: u64 = 16;
const NEXT: u64 = 4;

/// Packets of stretches: that part of what is left of the captures, within bounds, so that all threads end at about the
/// same time.
pub(super) struct Lengths {
    pub(super) part: u64,
    pub(super) least: u64,
    pub(super) most: u64,
}

/// Cuts so many packets of the ingress capture apart; `before` so many packets before each of them. Both are estimated
/// from the records around each cut. Cuts that cannot be found are left out.
pub(super) fn cuts(sides: &[Side; 2], lengths: &Lengths, before: u64) -> Vec<Cut> {
    let [ingress, egress] = sides;
    let packets = |left: u64, record: u64| {
        let part = left / record.max(1) / lengths.part.max(1);
        part.clamp(lengths.least.max(1), lengths.most.max(1))
    };
    let Some(mut record) = ingress.record_bytes(Track::BEGIN) else { return Vec::new() };
    let place = |offset: u64| -> Option<(Place, i64)> {
        if offset <= Track::BEGIN {
            return Some(([Track::BEGIN; 2], i64::MIN));
        }
        let (at, stamp_ns) = ingress.cut(offset)?;
        Some(([at, egress.from(stamp_ns, at as f64 / ingress.plain.size as f64)?], stamp_ns))
    };
    let mut cuts: Vec<Cut> = Vec::new();
    let mut stretch = packets(ingress.plain.size, record).saturating_mul(record);
    // Shorter ones are not worth it.
    if stretch.saturating_mul(3) / 2 >= ingress.plain.size {
        return cuts;
    }
    let mut offset = (stretch / FIRST).max(record);
    while offset.saturating_add(stretch / 2) < ingress.plain.size {
        record = ingress.record_bytes(offset).unwrap_or(record);
        stretch = packets(ingress.plain.size - offset, record).saturating_mul(record);
        if let Some((at, stamp_ns)) = place(offset)
            && cuts.last().is_none_or(|last| last.at[0] < at[0] && last.at[1] <= at[1])
            && let Some((before, _)) = place(offset.saturating_sub(before.saturating_mul(record)))
        {
            cuts.push(Cut { at, stamp_ns, before });
        }
        let step = if cuts.is_empty() { offset.min(stretch / NEXT).max(1) } else { stretch };
        offset = offset.saturating_add(step);
    }
    cuts
}

impl Side {
    /// Bytes of a record behind `offset`, on average.
    fn record_bytes(&self, offset: u64) -> Option<u64> {
        if let Some(length) = self.record_length(offset) {
            return Some(length);
        }
        let records = self.records(offset, CHAIN)?;
        let (first, last) = (records.first()?, records.last()?);
        (last.0 - first.0).checked_div(records.len() as u64 - 1)
    }

    /// Number of records between two places if all are as long as those at both ends; `None` where they are not.
    pub(super) fn records_between(&self, from: u64, to: u64) -> Option<u64> {
        let length = self.record_length(from)?;
        let alike = self.record_length(to.saturating_sub(FEW as u64))? == length;
        let bytes = to.checked_sub(from)?;
        (alike && bytes.is_multiple_of(length)).then(|| bytes / length)
    }

    /// The length of the records behind `offset`; `None` where they differ.
    fn record_length(&self, offset: u64) -> Option<u64> {
        self.find(offset, |records| {
            let mut lengths = records.windows(2).map(|pair| pair[1].0 - pair[0].0);
            let length = lengths.next()?;
            Some(lengths.all(|other| other == length).then_some(length))
        })?
    }

    /// Looks among the records from the first one behind `offset` on, first at a few.
    fn find<T>(&self, offset: u64, look: impl Fn(&[(u64, i64)]) -> Option<T>) -> Option<T> {
        [FEW, CHAIN].into_iter().find_map(|count| look(&self.records(offset, count)?))
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
        self.find(offset, |records| {
            let mut last_ns = i64::MIN;
            for (index, &(at, stamp_ns)) in records.iter().enumerate() {
                if stamp_ns <= last_ns || !goes_on(records, index) {
                    continue;
                }
                if index >= BEFORE {
                    return Some((at, stamp_ns));
                }
                last_ns = stamp_ns;
            }
            None
        })
    }

    /// The first record stamped `from_ns` or later, which is probably near that part of the capture.
    pub(super) fn from(&self, from_ns: i64, part: f64) -> Option<u64> {
        let (mut low, mut high) = (Track::BEGIN, self.plain.size);
        let (near, few) = ((part * self.plain.size as f64) as u64, FEW as u64);
        let mut tried = [near.saturating_sub(few), near.saturating_add(few)].into_iter();
        while high - low > few {
            let tried = tried.next().filter(|at| (low..high).contains(at));
            let middle = tried.unwrap_or(low.midpoint(high));
            match self.find(middle, middle_stamp)? {
                (at, stamp_ns) if stamp_ns < from_ns && at < high => low = at,
                _ => high = middle,
            }
        }
        let later = |records: &[(u64, i64)]| {
            let mut later = (0..records.len()).filter(|index| records[*index].1 >= from_ns);
            later.find(|index| goes_on(records, *index)).map(|index| records[index].0)
        };
        let to_the_end = self.plain.size - low <= CHAIN as u64;
        self.find(low, later).or(to_the_end.then_some(self.plain.size))
    }
}

/// Whether most records behind one go on from its stamp; behind an odd one that is too late, none does.
fn goes_on(records: &[(u64, i64)], index: usize) -> bool {
    let earliest_ns = records[index].1.saturating_sub(DISORDER_NS);
    let next = records[index + 1..].iter().take(NEXT_STAMPS);
    next.filter(|(_, stamp_ns)| *stamp_ns > earliest_ns).count() > NEXT_STAMPS / 2
}

/// Offset of the first record, and the middle one of the first stamps: one may be odd.
fn middle_stamp(records: &[(u64, i64)]) -> Option<(u64, i64)> {
    let mut stamps_ns: Vec<i64> = records.iter().take(NEXT_STAMPS).map(|record| record.1).collect();
    stamps_ns.sort_unstable();
    Some((records.first()?.0, stamps_ns[stamps_ns.len() / 2]))
}
