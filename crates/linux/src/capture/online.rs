//! A capture that is analysed while it comes, without a file.
//!
//! The tap hands over what a file would have, in blocks of whole records, and in between until when nothing came. So the
//! analysis decodes the same bytes. At most [`BLOCKS`] of them wait: an analysis that is slower than the packets makes
//! the tap wait, and what the port then has no room for is counted as dropped.

use super::Recent;
use crate::sys::clock;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tailtrim_tail::analysis::Source;
use tailtrim_tail::capture::write::header;
use tailtrim_tail::capture::{Capture, CaptureError, Input, Record, StampSource};
use tailtrim_tail::signature::Signer;

/// Bytes of a block: some thousand packets.
const BLOCK: usize = 256 * 1024;
/// Blocks that may wait: 64 MiB.
const BLOCKS: usize = 256;
/// How long to wait for the first packets, from which the analysis learns what traffic this is: from as many bytes as of
/// a file, or what comes meanwhile.
const FIRST_NS: i64 = 30_000_000_000;
/// The same behind the device, once packets have entered it: then they leave it, or it is dead.
const FIRST_LEAVING_NS: i64 = 2_000_000_000;

enum Handed {
    /// Whole records.
    Block(Vec<u8>),
    /// All that was stamped before has been handed over.
    QuietUntil(i64),
}

/// Where a tap hands over its records.
pub struct Feed {
    block: Vec<u8>,
    sender: SyncSender<Handed>,
}

impl Feed {
    /// Takes a record. Once the analysis has ended, it is dropped.
    pub(super) fn record(&mut self, head: &[u8], frame: &[u8]) {
        if self.block.len() + head.len() + frame.len() > BLOCK {
            self.hand_over();
        }
        self.block.extend_from_slice(head);
        self.block.extend_from_slice(frame);
    }

    /// Hands over what is there, and tells that nothing stamped before `ns` is to come.
    pub(super) fn quiet_until(&mut self, ns: i64) {
        self.hand_over();
        // The next one tells more.
        let _ = self.sender.try_send(Handed::QuietUntil(ns));
    }

    pub(super) fn hand_over(&mut self) {
        if !self.block.is_empty() {
            let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
            let _ = self.sender.send(Handed::Block(block));
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// What a tap hands over, as a source of an analysis.
pub struct Online {
    capture: Capture,
    receiver: Receiver<Handed>,
    next: Arc<Mutex<Vec<u8>>>,
    quiet_until_ns: i64,
    patience_ns: i64,
    ended: bool,
    recent: Option<Arc<Mutex<Recent>>>,
}

/// A feed and its other end, by the name of the tap. `leaving` says that the tap is behind the device.
///
/// # Errors
/// Those of [`Capture::open`].
pub fn online(name: &str, snap: u32, leaving: bool) -> Result<(Feed, Online), CaptureError> {
    let (sender, receiver) = sync_channel(BLOCKS);
    let next = Arc::new(Mutex::new(Vec::new()));
    let input = Blocks { window: header(snap).to_vec(), at: 0, next: Arc::clone(&next) };
    let capture = Capture::open(name, Box::new(input), StampSource::Header, false, false)?;
    let patience_ns = if leaving { FIRST_LEAVING_NS } else { FIRST_NS };
    let quiet_until_ns = i64::MIN;
    let online =
        Online { capture, receiver, next, quiet_until_ns, patience_ns, ended: false, recent: None };
    Ok((Feed { block: Vec::with_capacity(BLOCK), sender }, online))
}

impl Online {
    /// Keeps the records of the last `keep_ns`, cut at `snap` bytes.
    pub fn keep(&mut self, snap: u32, keep_ns: i64) -> Arc<Mutex<Recent>> {
        let recent = Recent::new(snap, keep_ns);
        Arc::clone(self.recent.insert(Arc::new(Mutex::new(recent))))
    }

    /// Takes what was handed over next. Returns how many bytes of records; `None` when it takes longer, or all have come.
    fn take(&mut self, within: Option<Duration>) -> Option<usize> {
        let handed = match within {
            None => self.receiver.recv().map_err(RecvTimeoutError::from),
            Some(within) => self.receiver.recv_timeout(within),
        };
        match handed {
            Ok(Handed::Block(mut block)) => {
                let bytes = block.len();
                if let Some(recent) = &self.recent {
                    recent.lock().unwrap_or_else(PoisonError::into_inner).take(&block);
                }
                self.next.lock().unwrap_or_else(PoisonError::into_inner).append(&mut block);
                Some(bytes)
            }
            Ok(Handed::QuietUntil(ns)) => {
                self.quiet_until_ns = self.quiet_until_ns.max(ns);
                Some(0)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                None
            }
        }
    }
}

impl Source for Online {
    fn name(&self) -> &str {
        self.capture.name()
    }

    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        let (until_ns, mut bytes) = (clock::monotonic_ns() + self.patience_ns, 0);
        while bytes < BLOCK {
            let left_ns = u64::try_from(until_ns - clock::monotonic_ns()).unwrap_or(0);
            match self.take(Some(Duration::from_nanos(left_ns))) {
                Some(more) if left_ns > 0 => bytes += more,
                _ => break,
            }
        }
        self.capture.peek(signer)
    }

    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        loop {
            // Only whole records are handed over: it reads on at the end of what is there, and only then.
            if self.ended || self.capture.has_ahead() || self.has_next() {
                return self.capture.read(signer, batch);
            }
            if self.take(None) == Some(0) {
                batch.clear();
                return Ok(true);
            }
        }
    }

    fn offset(&self) -> u64 {
        self.capture.offset()
    }

    fn quiet_until_ns(&self) -> i64 {
        self.quiet_until_ns
    }
}

impl Online {
    fn has_next(&self) -> bool {
        !self.next.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
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
