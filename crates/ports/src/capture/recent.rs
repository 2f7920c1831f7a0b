//! The last records of a tap, so that packets around a late one can be written once it is known to be late.

use super::CaptureFile;
use std::collections::VecDeque;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use tailtrim_tail::capture::write::{NO_STAMP_NS, header};

/// Bytes that are kept at most: a second of 1.4 million packets of 64 bytes is 160 MB.
const MOST: usize = 256 << 20;
/// Bytes of a record's header, in front of the frame.
const HEAD: usize = 16;

/// The last records of a tap.
#[derive(Debug)]
pub struct Recent {
    /// Whole records, and their last stamp.
    blocks: VecDeque<(i64, Arc<[u8]>)>,
    bytes: usize,
    most: usize,
    snap: u32,
    keep_ns: i64,
    newest_ns: i64,
    /// All records with an earlier stamp have been dropped, and perhaps some later ones.
    dropped_until_ns: i64,
}

impl Recent {
    /// An empty store that will keep the records of the last `keep_ns`, cut at `snap` bytes.
    #[must_use]
    pub fn new(snap: u32, keep_ns: i64) -> Self {
        Self {
            blocks: VecDeque::new(),
            bytes: 0,
            most: MOST,
            snap,
            keep_ns,
            newest_ns: i64::MIN,
            dropped_until_ns: i64::MIN,
        }
    }

    /// Takes whole records, as of a pcap in nanoseconds.
    pub fn take(&mut self, block: &[u8]) {
        let last_ns = last_ns(block).unwrap_or(i64::MIN);
        self.newest_ns = last_ns.max(self.newest_ns);
        self.bytes += block.len();
        self.blocks.push_back((last_ns, block.into()));
        while let Some((until_ns, oldest)) = self.blocks.front() {
            if self.bytes <= self.most && *until_ns >= self.newest_ns.saturating_sub(self.keep_ns) {
                break;
            }
            self.dropped_until_ns = self.dropped_until_ns.max(*until_ns);
            self.bytes -= oldest.len();
            self.blocks.pop_front();
        }
    }

    /// The last stamp so far.
    #[must_use]
    pub fn newest_ns(&self) -> i64 {
        self.newest_ns
    }

    /// The records of a time, both ends included, as far as they are still there.
    #[must_use]
    pub fn excerpt(&self, from_ns: i64, to_ns: i64) -> Excerpt {
        let reaching = self.blocks.iter().filter(|(last_ns, _)| *last_ns >= from_ns);
        Excerpt {
            blocks: reaching.map(|(_, block)| Arc::clone(block)).collect(),
            snap: self.snap,
            span_ns: from_ns..=to_ns,
            complete: self.dropped_until_ns < from_ns,
        }
    }
}

/// The records of a time at a tap, which share their memory with those that the tap keeps.
#[derive(Debug)]
pub struct Excerpt {
    blocks: Vec<Arc<[u8]>>,
    snap: u32,
    span_ns: RangeInclusive<i64>,
    /// Whether all of them were still there.
    pub complete: bool,
}

impl Excerpt {
    /// Writes them into a pcap that is compressed with zstd: a second or more for the most that a tap keeps.
    ///
    /// # Errors
    /// The system's, of the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = CaptureFile::create(path, true)?;
        file.header(&header(self.snap));
        for (ns, record) in self.blocks.iter().flat_map(|block| records(block)) {
            if self.span_ns.contains(&ns) {
                file.record(record, &[])?;
            }
        }
        file.finish()
    }
}

fn last_ns(block: &[u8]) -> Option<i64> {
    records(block).map(|(ns, _)| ns).filter(|ns| *ns < NO_STAMP_NS).max()
}

/// The records of a block with their stamps.
fn records(mut block: &[u8]) -> impl Iterator<Item = (i64, &[u8])> {
    std::iter::from_fn(move || {
        let word = |at: usize| {
            let bytes = block.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let ns = i64::from(word(0)?) * 1_000_000_000 + i64::from(word(4)?);
        let (record, rest) = block.split_at_checked(HEAD + word(8)? as usize)?;
        block = rest;
        Some((ns, record))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_tail::capture::write::record_header;

    const SECOND_NS: i64 = 1_000_000_000;

    /// One record without bytes for each stamp.
    fn block(stamps_ns: &[i64]) -> Vec<u8> {
        stamps_ns.iter().flat_map(|&ns| record_header(ns, 0, 0)).collect()
    }

    /// The stamps that are written for a time, and whether the excerpt claims to be complete.
    fn written(recent: &Recent, from_ns: i64, to_ns: i64) -> (Vec<i64>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("around.pcap.zst");
        let excerpt = recent.excerpt(from_ns, to_ns);
        excerpt.write(&path).unwrap();
        let bytes = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
        let stamps = records(&bytes[header(96).len()..]).map(|(ns, _)| ns).collect();
        (stamps, excerpt.complete)
    }

    #[test]
    fn what_is_older_than_it_keeps_is_dropped_and_told() {
        let mut recent = Recent::new(96, SECOND_NS);
        let times = [0, 1, 10, 15, 20].map(|tenths| tenths * SECOND_NS / 10);
        for ns in times {
            recent.take(&block(&[ns]));
        }
        assert_eq!(recent.newest_ns(), times[4]);
        assert_eq!(written(&recent, times[2], times[3]), (times[2..4].to_vec(), true));
        // The first two are gone.
        assert_eq!(written(&recent, times[1], times[3]), (times[2..4].to_vec(), false));
        assert_eq!(written(&recent, times[1] + 1, times[3]), (times[2..4].to_vec(), true));
    }

    #[test]
    fn memory_is_bounded_and_what_it_cost_is_told() {
        let mut recent = Recent { most: 4 * HEAD, ..Recent::new(96, i64::MAX) };
        for ns in 0..10 {
            recent.take(&block(&[ns]));
        }
        assert_eq!(recent.bytes, 4 * HEAD);
        assert_eq!(written(&recent, 6, 9), ((6..10).collect(), true));
        assert_eq!(written(&recent, 5, 9), ((6..10).collect(), false));
    }

    #[test]
    fn records_without_a_stamp_are_not_the_newest() {
        let mut recent = Recent::new(96, SECOND_NS);
        recent.take(&block(&[5, NO_STAMP_NS]));
        assert_eq!(recent.newest_ns(), 5);
    }
}
