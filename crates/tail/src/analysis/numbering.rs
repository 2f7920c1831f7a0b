//! Frames that are numbered by their signature, so that they are matched in their order.

use crate::capture::Record;
use crate::signature::Signature;
use std::collections::HashMap;

/// Different frames that are numbered: more are what signatures are for, and would take memory without end.
const MOST: usize = 1 << 20;

/// The number of frames of each signature so far.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    counts: HashMap<Signature, u64>,
    /// Frames of further signatures.
    pub(super) unnumbered: u64,
}

impl Numbering {
    /// Gives the n-th frame of a signature a signature of its own, the same on both sides.
    pub(super) fn number(&mut self, batch: &mut [Record]) {
        for record in batch {
            if self.counts.len() >= MOST && !self.counts.contains_key(&record.signature) {
                self.unnumbered += 1;
                continue;
            }
            let count = self.counts.entry(record.signature).or_default();
            record.signature = record.signature.numbered(*count);
            *count += 1;
        }
    }
}
