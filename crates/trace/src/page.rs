//! Sub-buffers of the kernel's trace ring buffer, as `trace_pipe_raw` gives them.
//!
//! A sub-buffer is a time, a length with flags, and entries. An entry begins with a word: its lower 5 bits are the type
//! or the length, its upper 27 the ticks since the entry before (`events/header_event`; kernel
//! `include/linux/ring_buffer.h`). Little endian, as all machines with a time-stamp counter.

use super::format;

/// Where the parts of a sub-buffer lie, by `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    commit_offset: usize,
    commit_size: usize,
    data_offset: usize,
}

/// A text that is no `header_page`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "events/header_page has no {0} where one was expected; this kernel's ring buffer has another shape"
)]
pub struct LayoutError(&'static str);

impl Layout {
    /// Reads `events/header_page`.
    ///
    /// # Errors
    /// The shape is not that of any kernel so far: a time of 8 bytes first, then the length, then data.
    pub fn parse(text: &str) -> Result<Self, LayoutError> {
        let fields = format::fields(text);
        let find = |name| fields.iter().find(|field| field.name == name).ok_or(LayoutError(name));
        let time = find("timestamp")?;
        if (time.offset, time.size) != (0, 8) {
            return Err(LayoutError("timestamp of 8 bytes at 0"));
        }
        let commit = find("commit")?;
        if !matches!(commit.size, 4 | 8) || commit.offset > 64 {
            return Err(LayoutError("commit of 4 or 8 bytes"));
        }
        let data_offset = find("data")?.offset;
        if data_offset > 4_096 {
            return Err(LayoutError("data within the first page"));
        }
        Ok(Self { commit_offset: commit.offset, commit_size: commit.size, data_offset })
    }
}

/// Flags above the length (`RB_MISSED_EVENTS`, `RB_MISSED_STORED`).
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;

/// Meanings of the lower 5 bits that are not lengths.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the ticks in an entry's word.
const DELTA_BITS: u32 = 27;
/// An absolute time has the lower 59 bits.
const ABSOLUTE_BITS: u32 = 59;

/// One sub-buffer.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The time of its first entry.
    pub start: u64,
    /// Whether entries before it were overwritten before they were read.
    pub missed: Option<Missed>,
    data: &'a [u8],
}

/// Entries that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// So many.
    Count(u64),
    /// An unknown number: the kernel had no room left for it.
    Some,
}

/// An entry with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// When, by the trace clock.
    pub stamp: u64,
    /// The record; its fields lie by a [`Format`](super::format::Format).
    pub record: &'a [u8],
}

/// A sub-buffer that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Shorter than its header.
    #[error(
        "a sub-buffer has {0} bytes, fewer than its header; the trace is damaged, record it again"
    )]
    Short(usize),
    /// Shorter than the length in its header.
    #[error(
        "a sub-buffer says {said} bytes and has {there}; the trace is damaged, record it again"
    )]
    Length {
        /// Length in the header.
        said: u64,
        /// Bytes that are there.
        there: usize,
    },
    /// An entry goes beyond the data.
    #[error(
        "the entry at byte {at} of a sub-buffer goes beyond its {there} bytes; the trace is damaged, record it again"
    )]
    Entry {
        /// Where it starts.
        at: usize,
        /// Bytes of data.
        there: usize,
    },
}

impl<'a> Page<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// It does not fit the bytes.
    pub fn new(layout: Layout, bytes: &'a [u8]) -> Result<Self, PageError> {
        let short = PageError::Short(bytes.len());
        let word = |offset: usize, size: usize| -> Result<u64, PageError> {
            let part = bytes.get(offset..offset + size).ok_or(short)?;
            let mut whole = [0; 8];
            whole[..size].copy_from_slice(part);
            Ok(u64::from_le_bytes(whole))
        };
        let start = word(0, 8)?;
        let commit = word(layout.commit_offset, layout.commit_size)?;
        let all = bytes.get(layout.data_offset..).ok_or(short)?;
        let said = commit & (MISSED_STORED - 1);
        let length = usize::try_from(said).ok().filter(|length| *length <= all.len());
        let length = length.ok_or(PageError::Length { said, there: all.len() })?;
        let (data, behind) = all.split_at(length);
        // The number stands behind the data and is not part of the length.
        let count = behind.first_chunk::<8>().filter(|_| commit & MISSED_STORED != 0);
        let missed = (commit & MISSED != 0)
            .then(|| count.map_or(Missed::Some, |count| Missed::Count(u64::from_le_bytes(*count))));
        Ok(Self { start, missed, data })
    }

    /// Its entries with data, in order. After an error there are no more.
    #[must_use]
    pub fn entries(&self) -> Entries<'a> {
        Entries { data: self.data, at: 0, stamp: self.start }
    }
}

/// See [`Page::entries`].
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    data: &'a [u8],
    at: usize,
    stamp: u64,
}

impl<'a> Entries<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..at.checked_add(4)?)?;
        bytes.try_into().ok().map(u32::from_le_bytes)
    }

    /// The next entry of any kind; `Ok(None)` for those without data.
    fn step(&mut self) -> Option<Option<Entry<'a>>> {
        let head = self.word(self.at)?;
        let (what, delta) = (head & 0x1f, u64::from(head >> 5));
        let body = self.at + 4;
        match what {
            // The rest is empty.
            PADDING if delta == 0 => {
                self.at = self.data.len();
                Some(None)
            }
            // A record that was discarded. Its ticks count: those of the next entry are added to them.
            PADDING => {
                let length = self.word(body)? as usize;
                self.skip(body, length)?;
                self.stamp = self.stamp.wrapping_add(delta);
                Some(None)
            }
            TIME_EXTEND => {
                let upper = u64::from(self.word(body)?);
                self.stamp = self.stamp.wrapping_add(delta).wrapping_add(upper << DELTA_BITS);
                self.at = body + 4;
                Some(None)
            }
            TIME_STAMP => {
                let upper = u64::from(self.word(body)?);
                self.stamp = absolute(delta.wrapping_add(upper << DELTA_BITS), self.stamp);
                self.at = body + 4;
                Some(None)
            }
            // The length has a word of its own, which is part of it.
            0 => {
                let length = (self.word(body)? as usize).checked_sub(4)?;
                self.entry(body + 4, length, delta)
            }
            words => self.entry(body, words as usize * 4, delta),
        }
    }

    fn entry(&mut self, start: usize, length: usize, delta: u64) -> Option<Option<Entry<'a>>> {
        let record = self.data.get(start..start.checked_add(length)?)?;
        self.skip(start, length)?;
        self.stamp = self.stamp.wrapping_add(delta);
        Some(Some(Entry { stamp: self.stamp, record }))
    }

    /// Entries begin at multiples of four bytes.
    fn skip(&mut self, start: usize, length: usize) -> Option<()> {
        let end = start.checked_add(length)?.checked_next_multiple_of(4)?;
        self.at = (end <= self.data.len()).then_some(end)?;
        Some(())
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, PageError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.data.len() {
            let (at, there) = (self.at, self.data.len());
            match self.step() {
                Some(None) => {}
                Some(Some(entry)) => return Some(Ok(entry)),
                None => {
                    self.at = there;
                    return Some(Err(PageError::Entry { at, there }));
                }
            }
        }
        None
    }
}

/// The whole time from its lower 59 bits: the upper bits are those of the time before, or one more.
fn absolute(lower: u64, before: u64) -> u64 {
    let lower = lower & ((1 << ABSOLUTE_BITS) - 1);
    let whole = lower | before >> ABSOLUTE_BITS << ABSOLUTE_BITS;
    if whole < before && before >> ABSOLUTE_BITS != 0 {
        whole.wrapping_add(1 << ABSOLUTE_BITS)
    } else {
        whole
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
