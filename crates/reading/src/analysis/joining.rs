//! Stretches joined in their order.

use super::stretches::Stretches;
use super::turns::{Done, Turns};
use crate::cores::Cores;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::Receiver;
use tailtrim_tail::analysis::{
    Analysis, AnalysisError, Counted, Ongoing, Options, Room, Sink, Stretch, Uncounted,
};

/// Who joins, and what came of the work of others.
pub(super) struct Joining<'a> {
    stretches: &'a Stretches,
    turns: &'a Turns,
    cores: &'a Cores,
    done: Receiver<Done>,
    matched: BTreeMap<usize, Option<Box<Stretch>>>,
    /// Counts of stretches that are joined; `None` until they are there.
    counts: BTreeMap<usize, Option<Box<Counted>>>,
    ongoing: Ongoing<'a>,
}

impl<'a> Joining<'a> {
    pub(super) fn new(
        stretches: &'a Stretches,
        turns: &'a Turns,
        cores: &'a Cores,
        done: Receiver<Done>,
        options: &'a Options,
    ) -> Self {
        let ongoing = stretches.begun(options);
        let (matched, counts) = (BTreeMap::new(), BTreeMap::new());
        Self { stretches, turns, cores, done, matched, counts, ongoing }
    }

    /// Joins all stretches.
    pub(super) fn run<S: Sink>(
        mut self,
        sink: &mut S,
        progress: &mut impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Analysis, AnalysisError> {
        let Stretches { cuts, .. } = self.stretches;
        self.ongoing.run(self.stretches.next_ns(0), sink, &mut *progress)?;
        for (index, cut) in cuts.iter().enumerate() {
            let [entered, left] = cut.at;
            if progress(entered, left).is_break() {
                return Err(AnalysisError::Stopped);
            }
            let stretch = self.take(index);
            let whole = stretch.is_some();
            if let Some(stretch) = stretch
                && self.join(index, *stretch, sink)?
            {
                continue;
            }
            self.add_all();
            self.stretches.go_on(&mut self.ongoing, index, whole, sink, &mut *progress)?;
            self.turns.done_with(Room::default());
            if !whole {
                break;
            }
        }
        self.add_all();
        Ok(self.ongoing.finish())
    }

    /// The stretch of this index, once it is matched.
    fn take(&mut self, index: usize) -> Option<Box<Stretch>> {
        while !self.matched.contains_key(&index) {
            if !self.receive() {
                return None;
            }
        }
        self.matched.remove(&index).flatten()
    }

    /// Returns whether the stretch is joined.
    fn join<S: Sink>(
        &mut self,
        index: usize,
        stretch: Stretch,
        sink: &mut S,
    ) -> Result<bool, AnalysisError> {
        let next_ns = self.stretches.next_ns(index + 1);
        if sink.takes_samples() {
            let joined = self.ongoing.join_here(stretch, next_ns, sink);
            let joined = joined.map_err(AnalysisError::Sink)?;
            if joined {
                self.turns.done_with(Room::default());
            }
            return Ok(joined);
        }
        let joined = self.ongoing.join(stretch, next_ns);
        Ok(joined.is_some_and(|uncounted: Uncounted| {
            self.counts.insert(index, None);
            self.turns.count(index, Box::new(uncounted));
            self.add();
            true
        }))
    }

    /// Waits until a thread is done with something; `false` when none works any more.
    fn receive(&mut self) -> bool {
        match self.cores.lend(|| self.done.recv()) {
            Ok(Done::Matched(index, stretch)) => {
                self.matched.insert(index, stretch);
            }
            Ok(Done::Counted(index, counted)) => {
                self.counts.insert(index, Some(counted));
                self.add();
            }
            Err(_) => return false,
        }
        true
    }

    /// Adds the counts that are there, as far as those before them are.
    fn add(&mut self) {
        while let Some(mut first) = self.counts.first_entry()
            && let Some(counted) = first.get_mut().take()
        {
            first.remove();
            let room = self.ongoing.add(*counted);
            self.turns.done_with(room);
        }
    }

    /// Adds all counts.
    fn add_all(&mut self) {
        while !self.counts.is_empty() && self.receive() {}
    }
}
