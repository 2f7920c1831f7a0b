//! Runs of pairs, each in order, as one: engines match bucket by bucket, and the books want one order.

use crate::rows::decided;
use arrow_array::RecordBatch;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use tailtrim_tail::analysis::{DecidedPair, Place};

/// The merge of some runs.
pub(crate) struct Merge<'py> {
    /// Iterators over the batches of each run.
    batches: Vec<Bound<'py, PyIterator>>,
    held: PairRuns,
}

/// Runs with the pairs that are read and not yet merged.
struct PairRuns {
    runs: Vec<Run>,
    /// The next pair of each run that has one.
    heads: BinaryHeap<Reverse<(Place, usize)>>,
}

#[derive(Default)]
struct Run {
    pairs: Vec<DecidedPair>,
    next: usize,
}

impl<'py> Merge<'py> {
    /// Reads the first batch of each run.
    pub(crate) fn new(batches: Vec<Bound<'py, PyIterator>>) -> PyResult<Self> {
        let runs = batches.iter().map(|_| Run::default()).collect();
        let mut merge = Self { batches, held: PairRuns { runs, heads: BinaryHeap::new() } };
        for number in 0..merge.batches.len() {
            merge.refill(number)?;
        }
        Ok(merge)
    }

    /// Clears `merged` and fills it with so many pairs; `false` when none follow. Other threads may read
    /// batches meanwhile.
    pub(crate) fn read(
        &mut self,
        py: Python<'py>,
        merged: &mut Vec<DecidedPair>,
        many: usize,
    ) -> PyResult<bool> {
        merged.clear();
        loop {
            let held = &mut self.held;
            match py.detach(|| held.merge(merged, many)) {
                Some(dry) => self.refill(dry)?,
                None => return Ok(merged.len() == many),
            }
        }
    }

    /// Takes the next batch of a run that has no pairs left.
    fn refill(&mut self, number: usize) -> PyResult<()> {
        for batch in self.batches[number].by_ref() {
            let pairs = decided(&batch?.extract::<PyArrowType<RecordBatch>>()?.0)?;
            if let Some(first) = pairs.first() {
                self.held.heads.push(Reverse((first.place, number)));
                self.held.runs[number] = Run { pairs, next: 0 };
                break;
            }
        }
        Ok(())
    }
}

impl PairRuns {
    /// Merges until there are so many pairs (`None`), all are merged (`None`), or a run has run dry.
    fn merge(&mut self, merged: &mut Vec<DecidedPair>, many: usize) -> Option<usize> {
        while merged.len() < many {
            let mut first = self.heads.peek_mut()?;
            let number = first.0.1;
            let run = &mut self.runs[number];
            merged.push(run.pairs[run.next]);
            run.next += 1;
            match run.pairs.get(run.next) {
                Some(pair) => first.0.0 = pair.place,
                None => {
                    PeekMut::pop(first);
                    return Some(number);
                }
            }
        }
        None
    }
}
