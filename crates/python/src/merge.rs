//! Runs of pairs, each in order, as one: engines match bucket by bucket, and the books want one order.

use crate::ledger::decided;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3_arrow::PyRecordBatch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use tailtrim_model::analysis::{DecidedPair, Place};

/// The merge of some runs.
pub(crate) struct Merge<'py> {
    runs: Vec<Run<'py>>,
    /// The next pair of each run that has one.
    heads: BinaryHeap<Reverse<(Place, usize)>>,
}

/// Batches of Python's, of which the first is held.
struct Run<'py> {
    batches: Bound<'py, PyIterator>,
    pairs: Vec<DecidedPair>,
    next: usize,
}

impl<'py> Merge<'py> {
    /// Reads the first batch of each run.
    pub(crate) fn new(batches: Vec<Bound<'py, PyIterator>>) -> PyResult<Self> {
        let runs = batches.into_iter().map(|batches| Run { batches, pairs: Vec::new(), next: 0 });
        let mut merge = Self { runs: runs.collect(), heads: BinaryHeap::new() };
        for (number, run) in merge.runs.iter_mut().enumerate() {
            if let Some(place) = run.head()? {
                merge.heads.push(Reverse((place, number)));
            }
        }
        Ok(merge)
    }

    /// Clears `merged` and fills it with so many pairs; `false` when none follow.
    pub(crate) fn read(&mut self, merged: &mut Vec<DecidedPair>, many: usize) -> PyResult<bool> {
        merged.clear();
        while merged.len() < many {
            let Some(mut first) = self.heads.peek_mut() else { return Ok(false) };
            let run = &mut self.runs[first.0.1];
            merged.push(run.pairs[run.next]);
            run.next += 1;
            match run.head()? {
                Some(place) => first.0.0 = place,
                None => {
                    PeekMut::pop(first);
                }
            }
        }
        Ok(true)
    }
}

impl Run<'_> {
    /// The place of the next pair, of the next batch where this one is done; `None` at the end.
    #[inline]
    fn head(&mut self) -> PyResult<Option<Place>> {
        while self.next == self.pairs.len() {
            let Some(batch) = self.batches.next() else { return Ok(None) };
            self.pairs = decided(&batch?.extract::<PyRecordBatch>()?.into_inner())?;
            self.next = 0;
        }
        Ok(Some(self.pairs[self.next].place))
    }
}
