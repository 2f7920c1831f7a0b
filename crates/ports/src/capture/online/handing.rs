//! The queue between a tap and its analysis.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tailtrim_sys::clock;

/// Bytes of a block at most: some thousand packets.
pub(super) const BLOCK: usize = 256 * 1024;
/// Bytes that may wait.
pub(super) const WAITING: usize = 64 << 20;

/// State of the queue.
#[derive(Default)]
pub(super) struct Handing {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

struct Waiting {
    /// Whole records.
    blocks: VecDeque<Vec<u8>>,
    bytes: usize,
    /// All frames with an earlier stamp are in the blocks, or were in those before them.
    quiet_until_ns: i64,
    /// Frames that the port dropped.
    dropped: u64,
    /// The tap hands over no more.
    ended: bool,
    /// The analysis takes no more.
    closed: bool,
}

impl Default for Waiting {
    fn default() -> Self {
        let (blocks, quiet_until_ns) = (VecDeque::new(), i64::MIN);
        Self { blocks, bytes: 0, quiet_until_ns, dropped: 0, ended: false, closed: false }
    }
}

/// The next item of the queue.
pub(super) enum Handed {
    /// Records; with the last waiting ones also the time until which all have been handed over.
    Block(Vec<u8>, Option<i64>),
    /// All frames with an earlier stamp have been handed over.
    QuietUntil(i64),
    /// Nothing yet.
    Nothing,
    /// All has been handed over.
    End,
}

impl Handing {
    /// Takes the next block, or the time until which nothing more came if it is later than `told_ns`. Waits for it
    /// until `until_ns` of the monotonic clock.
    pub(super) fn take(&self, told_ns: i64, until_ns: Option<i64>) -> Handed {
        let mut waiting = self.waiting();
        loop {
            if let Some(block) = waiting.blocks.pop_front() {
                waiting.bytes -= block.len();
                self.changed.notify_all();
                let last = waiting.blocks.is_empty();
                return Handed::Block(block, last.then_some(waiting.quiet_until_ns));
            }
            if waiting.quiet_until_ns > told_ns {
                return Handed::QuietUntil(waiting.quiet_until_ns);
            }
            if waiting.ended {
                return Handed::End;
            }
            let left_ns = until_ns.map(|until_ns| until_ns - clock::monotonic_ns());
            waiting = match left_ns.map(u64::try_from) {
                None => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(Ok(left_ns)) if left_ns > 0 => {
                    let left = Duration::from_nanos(left_ns);
                    let waited = self.changed.wait_timeout(waiting, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => return Handed::Nothing,
            };
        }
    }

    /// Takes no more.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        waiting.blocks.clear();
        self.changed.notify_all();
    }

    /// Frames that the port dropped, once its tap has ended.
    pub(super) fn dropped(&self) -> u64 {
        self.waiting().dropped
    }

    /// Bytes that wait.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.waiting().bytes
    }

    /// Locks the state. A panic of the other side leaves it valid.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn has_room(&self, bytes: usize) -> bool {
        self.closed || self.bytes + bytes <= WAITING
    }

    /// Takes the records of a block, and leaves its memory where they fit behind others.
    fn push(&mut self, block: &mut Vec<u8>) {
        if self.closed {
            block.clear();
            return;
        }
        self.bytes += block.len();
        match self.blocks.back_mut() {
            Some(last) if last.len() + block.len() <= BLOCK => last.append(block),
            _ if block.is_empty() => {}
            _ => self.blocks.push_back(std::mem::replace(block, Vec::with_capacity(BLOCK))),
        }
    }
}

/// Where a tap hands over its records.
pub struct Feed {
    block: Vec<u8>,
    handing: Arc<Handing>,
}

impl Feed {
    pub(super) fn new(handing: Arc<Handing>) -> Self {
        Self { block: Vec::with_capacity(BLOCK), handing }
    }

    /// Takes a record. Once the analysis has ended, it is dropped.
    pub(in super::super) fn record(&mut self, head: &[u8], frame: &[u8]) {
        if self.block.len() + head.len() + frame.len() > BLOCK {
            self.wait_and_hand_over();
        }
        self.block.extend_from_slice(head);
        self.block.extend_from_slice(frame);
    }

    /// Hands over the present records, as far as there is room, and reports that nothing stamped before `ns` is to
    /// come.
    pub(in super::super) fn quiet_until(&mut self, ns: i64) {
        let mut waiting = self.handing.waiting();
        // Waiting here would leave frames in the port; the next call reports a later time.
        if waiting.has_room(self.block.len()) {
            waiting.push(&mut self.block);
            waiting.quiet_until_ns = waiting.quiet_until_ns.max(ns);
            self.handing.changed.notify_all();
        }
    }

    /// Reports the number of frames that the port dropped.
    pub(in super::super) fn dropped(&self, frames: u64) {
        self.handing.waiting().dropped = frames;
    }

    fn wait_and_hand_over(&mut self) {
        let bytes = self.block.len();
        let full = |waiting: &mut Waiting| !waiting.has_room(bytes);
        let waited = self.handing.changed.wait_while(self.handing.waiting(), full);
        waited.unwrap_or_else(PoisonError::into_inner).push(&mut self.block);
        self.handing.changed.notify_all();
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.wait_and_hand_over();
        self.handing.waiting().ended = true;
        self.handing.changed.notify_all();
    }
}
