//! The statistics of a stream, by the analysis of captures: probes sent are its ingress, replies its egress.
//!
//! The thread that analyses them sleeps until a block of one side is full.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use tailtrim_tail::analysis::{AnalysisError, Numbered, Numbers, Options, analyze};
use tailtrim_tail::summary::Summary;

/// Records in a block: 64 KiB.
const BLOCK: usize = 4_096;

/// One side: records that may come slightly out of order, put in order and handed on in blocks.
#[derive(Debug)]
struct Side {
    waiting: BinaryHeap<Reverse<Numbered>>,
    block: Vec<Numbered>,
    sender: Sender<Vec<Numbered>>,
}

impl Side {
    fn new(sender: Sender<Vec<Numbered>>) -> Self {
        Self { waiting: BinaryHeap::new(), block: Vec::with_capacity(BLOCK), sender }
    }

    fn add(&mut self, stamp_ns: i64, number: u64) {
        self.waiting.push(Reverse(Numbered { stamp_ns, number }));
    }

    /// Hands on records with earlier stamps than this.
    fn release(&mut self, before_ns: i64) {
        while let Some(&Reverse(record)) = self.waiting.peek()
            && record.stamp_ns < before_ns
        {
            self.waiting.pop();
            self.block.push(record);
            if self.block.len() >= BLOCK {
                self.hand_on();
            }
        }
    }

    fn hand_on(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
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
        let options = options.clone().for_round_trips();
        let length = frame_bytes as u32;
        let mut entering = Numbers::new(format!("{name}, sent"), length, entering.into_iter());
        let mut leaving = Numbers::new(format!("{name}, received"), length, leaving.into_iter());
        let thread = thread::spawn(move || -> Result<Summary, AnalysisError> {
            let progress = |_, _| ControlFlow::Continue(());
            let analysis = analyze(&mut entering, &mut leaving, &options, &mut (), progress)?;
            Ok(analysis.summary)
        });
        Self { sent: Side::new(sent), received: Side::new(received), thread }
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
