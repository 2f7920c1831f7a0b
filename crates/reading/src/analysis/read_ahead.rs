//! A capture that a thread reads ahead.

use crate::cores::Cores;
use std::collections::VecDeque;
use std::panic;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::{io, mem};
use tailtrim_tail::analysis::Source;
use tailtrim_tail::capture::{CaptureError, CaptureReader, NEXT_STAMPS, Record, Unread};
use tailtrim_tail::signature::Signer;

/// Batches that are handed over at a time: 32,768 records, a millisecond of work. Waking the other thread takes up to
/// 0.05 ms on a virtual machine: with a quarter of this, 30 million pairs took 5 to 15 % longer on two cores.
const BLOCK: usize = 128;

/// Batches that wait to be asked for. With those in work they take 10 MB a capture, whatever its length.
const WAITING: usize = 8 * BLOCK;

/// Blocks that are looked into for the next stamps, which the first ones have as a rule.
const MOST_NEXT: usize = 2 * NEXT_STAMPS;

/// A capture whose records are decoded and signed before they are asked for.
pub(super) struct ReadAhead {
    name: String,
    wraps: bool,
    waits_for_others: bool,
    cores: Arc<Cores>,
    reading: Reading,
}

/// State of reading, with the reader.
enum Reading {
    /// No record was asked for yet.
    NotYet(Box<CaptureReader>),
    Thread(Thread),
    /// The end was reached.
    Over(Box<CaptureReader>),
    /// The thread did not start.
    Failed,
}

/// Result of reading to the end, with the reader.
type Read = (Box<CaptureReader>, Result<(), CaptureError>);

/// A thread that reads.
struct Thread {
    decoded: Receiver<Block>,
    used: Sender<Block>,
    block: Block,
    /// Blocks behind it that were looked into.
    next: VecDeque<Block>,
    /// Batches of the block that were handed out.
    taken: usize,
    offset: u64,
    handle: JoinHandle<Read>,
}

/// Batches. Those behind the filled ones are there to be used again.
#[derive(Debug, Default)]
struct Block {
    batches: Vec<Batch>,
    filled: usize,
}

#[derive(Debug, Default)]
struct Batch {
    records: Vec<Record>,
    /// [`CaptureReader::offset`] behind them.
    offset: u64,
}

impl ReadAhead {
    /// A capture that `waits_for_others`, a pipe, uses no core while it waits, and hands on each batch at once: its
    /// writer may wait until the other capture is read.
    pub(super) fn new(capture: CaptureReader, waits_for_others: bool, cores: Arc<Cores>) -> Self {
        Self {
            name: capture.name().to_owned(),
            wraps: capture.wraps(),
            waits_for_others,
            cores,
            reading: Reading::NotYet(Box::new(capture)),
        }
    }

    /// Starts the thread when the first record is asked for: only then the signer is known.
    fn start(&mut self, signer: &Signer) -> Result<(), CaptureError> {
        let reading = mem::replace(&mut self.reading, Reading::Failed);
        let Reading::NotYet(capture) = reading else {
            self.reading = reading;
            return Ok(());
        };
        self.wraps = capture.wraps();
        let batches = if self.waits_for_others { 1 } else { BLOCK };
        let (hand_over, decoded) = sync_channel(WAITING / batches);
        let (used, again) = channel();
        let cores = (!self.waits_for_others).then(|| Arc::clone(&self.cores));
        let (signer, offset) = (signer.clone(), capture.offset());
        let read = move || read(capture, &signer, batches, cores.as_deref(), &hand_over, &again);
        let handle = Builder::new().name("read-ahead".to_owned()).spawn(read).map_err(|error| {
            let told = format!("no thread to read ahead, which one job goes without: {error}");
            let source = io::Error::new(error.kind(), told);
            CaptureError::Io { path: self.name.clone(), offset, source }
        })?;
        let block = Block::default();
        let next = VecDeque::new();
        self.reading =
            Reading::Thread(Thread { decoded, used, block, next, taken: 0, offset, handle });
        Ok(())
    }
}

impl Source for ReadAhead {
    fn name(&self) -> &str {
        &self.name
    }

    fn peek(&mut self, signer: &Signer) -> Result<Vec<Record>, CaptureError> {
        match &mut self.reading {
            Reading::NotYet(capture) => capture.peek(signer),
            _ => Ok(Vec::new()),
        }
    }

    fn peek_forms(&mut self) -> Vec<u64> {
        match &mut self.reading {
            Reading::NotYet(capture) => capture.peek_forms(),
            _ => Vec::new(),
        }
    }

    fn read(&mut self, signer: &Signer, batch: &mut Vec<Record>) -> Result<bool, CaptureError> {
        self.start(signer)?;
        batch.clear();
        match mem::replace(&mut self.reading, Reading::Failed) {
            Reading::Thread(mut thread) => {
                if thread.take(batch, &self.cores) {
                    self.reading = Reading::Thread(thread);
                    return Ok(true);
                }
                let (capture, read) = thread.end();
                self.reading = Reading::Over(capture);
                read.map(|()| false)
            }
            over => {
                self.reading = over;
                Ok(false)
            }
        }
    }

    fn offset(&self) -> u64 {
        match &self.reading {
            Reading::NotYet(capture) | Reading::Over(capture) => capture.offset(),
            Reading::Thread(thread) => thread.offset,
            Reading::Failed => 0,
        }
    }

    fn wraps(&self) -> bool {
        match &self.reading {
            Reading::NotYet(capture) | Reading::Over(capture) => capture.wraps(),
            Reading::Thread(_) | Reading::Failed => self.wraps,
        }
    }

    fn unit_ps(&self) -> u64 {
        match &self.reading {
            Reading::NotYet(capture) | Reading::Over(capture) => capture.unit_ps(),
            // Asked for at the end.
            Reading::Thread(_) | Reading::Failed => 0,
        }
    }

    fn tap_drops(&self) -> Option<u64> {
        match &self.reading {
            Reading::NotYet(capture) | Reading::Over(capture) => capture.tap_drops(),
            Reading::Thread(_) | Reading::Failed => None,
        }
    }

    fn unread(&self) -> Vec<Unread> {
        match &self.reading {
            Reading::NotYet(capture) | Reading::Over(capture) => capture.unread(),
            Reading::Thread(_) | Reading::Failed => Vec::new(),
        }
    }

    fn next_stamps(&mut self, signer: &Signer) -> Vec<i64> {
        match &mut self.reading {
            Reading::NotYet(capture) => capture.next_stamps(signer),
            Reading::Thread(thread) => thread.next_stamps(&self.cores),
            Reading::Over(_) | Reading::Failed => Vec::new(),
        }
    }

    fn damage(&self) -> Option<&CaptureError> {
        match &self.reading {
            Reading::NotYet(capture) | Reading::Over(capture) => capture.damage(),
            Reading::Thread(_) | Reading::Failed => None,
        }
    }
}

impl Thread {
    /// Waits for the next batch. Returns `false` behind the last.
    fn has_next(&mut self, cores: &Cores) -> bool {
        if self.taken == self.block.filled {
            let next = self.next.pop_front().or_else(|| self.receive(cores));
            let Some(next) = next else { return false };
            let used = mem::replace(&mut self.block, next);
            // The thread may have ended, and needs no batches then.
            drop(self.used.send(used));
            self.taken = 0;
        }
        true
    }

    fn receive(&self, cores: &Cores) -> Option<Block> {
        match self.decoded.try_recv() {
            Err(TryRecvError::Empty) => cores.lend(|| self.decoded.recv()).ok(),
            known => known.ok(),
        }
    }

    /// The next stamps, as many as [`CaptureReader::next_stamps`] gives at least. A block may have a single one.
    fn next_stamps(&mut self, cores: &Cores) -> Vec<i64> {
        loop {
            let batches = self.block.batches[self.taken..self.block.filled].iter();
            let next = self.next.iter().flat_map(|block| &block.batches[..block.filled]);
            let records = batches.chain(next).flat_map(|batch| &batch.records);
            let stamps = records.filter(|record| record.stamped).map(|record| record.stamp_ns);
            let stamps: Vec<i64> = stamps.take(NEXT_STAMPS).collect();
            if stamps.len() == NEXT_STAMPS || self.next.len() == MOST_NEXT {
                return stamps;
            }
            let Some(block) = self.receive(cores) else { return stamps };
            self.next.push_back(block);
        }
    }

    /// Exchanges an empty batch for the next one. Returns `false` behind the last.
    fn take(&mut self, batch: &mut Vec<Record>, cores: &Cores) -> bool {
        if !self.has_next(cores) {
            return false;
        }
        let next = &mut self.block.batches[self.taken];
        mem::swap(&mut next.records, batch);
        self.offset = next.offset;
        self.taken += 1;
        true
    }

    fn end(self) -> Read {
        self.handle.join().unwrap_or_else(|failure| panic::resume_unwind(failure))
    }
}

/// Reads to the end, or until nobody waits for its batches any more.
fn read(
    mut capture: Box<CaptureReader>,
    signer: &Signer,
    batches: usize,
    cores: Option<&Cores>,
    hand_over: &SyncSender<Block>,
    again: &Receiver<Block>,
) -> Read {
    loop {
        let mut block = again.try_recv().unwrap_or_default();
        let read = {
            let _working = cores.map(Cores::work);
            block.fill(batches, &mut capture, signer)
        };
        let wanted = block.filled == 0 || hand_over.send(block).is_ok();
        match read {
            Ok(true) if wanted => {}
            ended => return (capture, ended.map(|_| ())),
        }
    }
}

impl Block {
    /// Reads so many batches. Returns `false` at the end of the capture.
    fn fill(
        &mut self,
        batches: usize,
        capture: &mut CaptureReader,
        signer: &Signer,
    ) -> Result<bool, CaptureError> {
        self.batches.resize_with(batches.max(self.batches.len()), Batch::default);
        self.filled = 0;
        for batch in &mut self.batches[..batches] {
            if !capture.read(signer, &mut batch.records)? {
                return Ok(false);
            }
            batch.offset = capture.offset();
            self.filled += 1;
        }
        Ok(true)
    }
}
