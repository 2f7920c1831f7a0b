//! A capture that is analysed while it is taken, without a file.
//!
//! The tap hands over the records that a file would have, in blocks of whole records, and the time until which no more
//! came. So the analysis decodes the same bytes. At most [`WAITING`] bytes of them wait: an analysis that is slower
//! than the packets makes the tap wait, and frames for which the port then has no room are counted as dropped.

mod handing;

use super::Recent;
pub use handing::Feed;
use handing::{BLOCK, Handed, Handing};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tailtrim_sys::clock;
use tailtrim_tail::analysis::Source;
use tailtrim_tail::capture::write::header;
use tailtrim_tail::capture::{CaptureError, CaptureReader, Input, Record, StampSource};
use tailtrim_tail::signature::Signer;

/// Longest wait, from the first packet on, for the packets from which the analysis learns the kind of traffic: as many
/// bytes as it reads of a file, or those that come until then.
const FIRST_NS: i64 = 30_000_000_000;
/// The same limit for a tap behind the device, counted from when packets have entered it: then they leave it, or the
/// device is dead.
const FIRST_LEAVING_NS: i64 = 2_000_000_000;

/// The reading end of a feed, as a source of an analysis.
pub struct Online {
    capture: CaptureReader,
    handing: Arc<Handing>,
    next: Arc<Mutex<Vec<u8>>>,
    /// Time until which the tap has reported all frames, some of which may still have to be read.
    told_ns: i64,
    /// The same for all records that are still to be read.
    quiet_until_ns: i64,
    leaving: bool,
    patience_ns: i64,
    ended: bool,
    recent: Option<Arc<Mutex<Recent>>>,
}

/// A feed and its reading end, with the name of the tap. `leaving`: the tap is behind the device.
///
/// # Errors
/// Those of [`CaptureReader::open`].
pub fn online(name: &str, snap: u32, leaving: bool) -> Result<(Feed, Online), CaptureError> {
    let handing = Arc::new(Handing::default());
    let next = Arc::new(Mutex::new(Vec::new()));
    let input = Blocks { window: header(snap).to_vec(), at: 0, next: Arc::clone(&next) };
    let online = Online {
        capture: CaptureReader::open(name, Box::new(input), StampSource::Header, false, false)?,
        handing: Arc::clone(&handing),
        next,
        told_ns: i64::MIN,
        quiet_until_ns: i64::MIN,
        leaving,
        patience_ns: if leaving { FIRST_LEAVING_NS } else { FIRST_NS },
        ended: false,
        recent: None,
    };
    Ok((Feed::new(handing), online))
}

impl Online {
    /// Keeps the records of the last `keep_ns`, cut at `snap` bytes.
    pub fn keep(&mut self, snap: u32, keep_ns: i64) -> Arc<Mutex<Recent>> {
        let recent = Recent::new(snap, keep_ns);
        Arc::clone(self.recent.insert(Arc::new(Mutex::new(recent))))
    }

    /// Takes the next hand-over. Returns its bytes of records; `None` at `until_ns` of the monotonic clock, or when all
    /// have come.
    fn take(&mut self, until_ns: Option<i64>) -> Option<usize> {
        match self.handing.take(self.told_ns, until_ns) {
            Handed::Block(mut block, quiet_until_ns) => {
                let bytes = block.len();
                if let Some(recent) = &self.recent {
                    recent.lock().unwrap_or_else(PoisonError::into_inner).take(&block);
                }
                self.next.lock().unwrap_or_else(PoisonError::into_inner).append(&mut block);
                self.told_ns = quiet_until_ns.unwrap_or(self.told_ns);
                Some(bytes)
            }
            Handed::QuietUntil(ns) => {
                self.told_ns = ns;
                Some(0)
            }
            Handed::Nothing => None,
            Handed::End => {
                self.ended = true;
                None
            }
        }
    }

    /// Whether records were taken that are still to be read.
    fn has_more(&self) -> bool {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.capture.has_ahead() || !next.is_empty()
    }
}

impl Drop for Online {
    fn drop(&mut self) {
        self.handing.close();
    }
}

impl Source for Online {
    fn name(&self) -> &str {
        self.capture.name()
    }

    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        let mut bytes = 0;
        // Traffic may begin any time after the taps.
        let mut until_ns = self.leaving.then(|| clock::monotonic_ns() + self.patience_ns);
        while bytes < BLOCK {
            let Some(more) = self.take(until_ns) else { break };
            bytes += more;
            if bytes > 0 {
                until_ns.get_or_insert_with(|| clock::monotonic_ns() + self.patience_ns);
            }
        }
        self.capture.peek(signer)
    }

    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        batch.clear();
        // Only whole records are handed over: the reader asks for more at the end of a block, and only then.
        while !self.ended && !self.has_more() {
            if self.take(None) == Some(0) {
                self.quiet_until_ns = self.told_ns;
                return Ok(true);
            }
        }
        let more = self.capture.read(signer, batch)?;
        if !self.has_more() {
            self.quiet_until_ns = self.told_ns;
        }
        Ok(more)
    }

    fn offset(&self) -> u64 {
        self.capture.offset()
    }

    fn quiet_until_ns(&self) -> i64 {
        self.quiet_until_ns
    }

    fn tap_drops(&self) -> Option<u64> {
        Some(self.handing.dropped())
    }
}

/// The bytes of blocks that were taken.
struct Blocks {
    window: Vec<u8>,
    at: usize,
    next: Arc<Mutex<Vec<u8>>>,
}

impl Input for Blocks {
    fn window(&self) -> &[u8] {
        &self.window[self.at..]
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.window.len() - self.at, "consumed past the window");
        self.at += count;
    }

    fn extend(&mut self) -> io::Result<bool> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if next.is_empty() {
            return Ok(false);
        }
        self.window.drain(..self.at);
        self.at = 0;
        self.window.append(&mut next);
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
