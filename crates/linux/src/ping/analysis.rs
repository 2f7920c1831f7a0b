//! The statistics of a stream, by the analysis of captures: probes sent are its ingress, replies its egress.
//!
//! Both sides are pcap in memory, in blocks, with the probe's number as the whole frame. The thread that reads
//! them sleeps until a block is full.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, analyze};
use tailtrim_tail::capture::{Capture, StampSource, Streamed, write};
use tailtrim_tail::signature::Selection;
use tailtrim_tail::summary::Summary;

/// Bytes of the number.
const FRAME_LEN: u32 = 8;

/// Bytes in a block.
const BLOCK: usize = 1 << 16;

/// One side: records that may come slightly out of order, put in order and handed on in blocks.
#[derive(Debug)]
struct Side {
    waiting: BinaryHeap<Reverse<(i64, u64)>>,
    block: Vec<u8>,
    sender: Sender<Vec<u8>>,
    length: u32,
}

impl Side {
    fn new(sender: Sender<Vec<u8>>, length: u32) -> Self {
        let block = write::header(FRAME_LEN).to_vec();
        Self { waiting: BinaryHeap::new(), block, sender, length }
    }

    fn add(&mut self, stamp_ns: i64, number: u64) {
        self.waiting.push(Reverse((stamp_ns, number)));
    }

    /// Hands on what is stamped before this.
    fn release(&mut self, before_ns: i64) {
        while let Some(&Reverse((stamp_ns, number))) = self.waiting.peek()
            && stamp_ns < before_ns
        {
            self.waiting.pop();
            let length = self.length.max(FRAME_LEN);
            self.block.extend(write::record_header(stamp_ns, FRAME_LEN, length));
            self.block.extend(number.to_be_bytes());
            if self.block.len() >= BLOCK {
                self.hand_on();
            }
        }
    }

    fn hand_on(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK + 64));
        // A reader that has failed says so when it is joined.
        let _ = self.sender.send(block);
    }

    fn close(mut self) {
        self.release(i64::MAX);
        self.hand_on();
    }
}

/// The analysis under way.
#[derive(Debug)]
pub(super) struct Analyser {
    sent: Side,
    received: Side,
    thread: JoinHandle<Result<Summary, AnalysisError>>,
}

impl Analyser {
    /// `frame_bytes` are those of a probe on the wire, without FCS.
    pub(super) fn start(name: &str, frame_bytes: usize, options: &Options) -> Self {
        let (sent, entering) = channel();
        let (received, leaving) = channel();
        let mut options = options.clone();
        options.trim_ns = 0;
        options.watched_to_the_end = true;
        options.selection = format!("0:{FRAME_LEN}").parse::<Selection>().ok();
        let names = [format!("{name}, sent"), format!("{name}, received")];
        let thread = thread::spawn(move || -> Result<Summary, AnalysisError> {
            let [sent, received] = names;
            let mut ingress = open(sent, entering)?;
            let mut egress = open(received, leaving)?;
            let progress = |_, _| ControlFlow::Continue(());
            let analysis: Analysis =
                analyze(&mut ingress, &mut egress, &options, &mut (), progress)?;
            Ok(analysis.summary)
        });
        let length = frame_bytes as u32;
        Self { sent: Side::new(sent, length), received: Side::new(received, length), thread }
    }

    pub(super) fn sent(&mut self, number: u64, stamp_ns: i64) {
        self.sent.add(stamp_ns, number);
    }

    pub(super) fn received(&mut self, number: u64, stamp_ns: i64) {
        self.received.add(stamp_ns, number);
    }

    /// Nothing that is still to come is stamped before this.
    pub(super) fn release(&mut self, before_ns: i64) {
        self.sent.release(before_ns);
        self.received.release(before_ns);
    }

    pub(super) fn finish(self) -> Result<Summary, AnalysisError> {
        self.sent.close();
        self.received.close();
        match self.thread.join() {
            Ok(summary) => summary,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn open(name: String, receiver: Receiver<Vec<u8>>) -> Result<Capture, AnalysisError> {
    let input = Streamed::new(Blocks { receiver, block: Vec::new(), at: 0 });
    Ok(Capture::open(name, Box::new(input), StampSource::Header, false, false)?)
}

/// Blocks as a stream of bytes.
struct Blocks {
    receiver: Receiver<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            match self.receiver.recv() {
                Ok(block) => (self.block, self.at) = (block, 0),
                // The other end is closed: this is all.
                Err(_) => return Ok(0),
            }
        }
        let count = (&self.block[self.at..]).read(buffer)?;
        self.at += count;
        Ok(count)
    }
}
