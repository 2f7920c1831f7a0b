//! Stretches that threads match, joined in their order with their pairs.

use super::stretch_queue::{Done, StretchQueue, Work};
use super::stretches::Stretches;
use crate::cores::Cores;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, Builder};
use tailtrim_tail::analysis::{
    Analysis, AnalysisError, Counted, Ongoing, Options, Room, Sink, Stretch, Uncounted,
};

/// Analyses the captures; otherwise as [`super::analyze`].
pub(super) fn analyze<S: Sink>(
    stretches: &Stretches,
    jobs: NonZeroUsize,
    cores: &Cores,
    options: &Options,
    sink: &mut S,
    mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Analysis, AnalysisError> {
    let queue = StretchQueue::new(stretches.cuts.len(), jobs.get() + 1);
    let (hand_over, answers) = channel();
    thread::scope(|scope| {
        for _ in 0..jobs.get() {
            let (hand_over, queue) = (hand_over.clone(), &queue);
            let work = move || {
                let _ending = queue.ending_by_panic();
                while let Some(work) = queue.take() {
                    let _working = cores.work();
                    if hand_over.send(done(stretches, work, options)).is_err() {
                        return;
                    }
                }
            };
            let started = Builder::new().name("stretches".to_owned()).spawn_scoped(scope, work);
            // One that does not start leaves its work to the others.
            if started.is_err() {
                break;
            }
        }
        drop(hand_over);
        let _ending = queue.ending();
        Joining::new(stretches, &queue, cores, answers, options).run(sink, &mut progress)
    })
}

fn done(stretches: &Stretches, work: Work, options: &Options) -> Done {
    match work {
        Work::Match(index, room) => {
            Done::Matched(index, stretches.matched(index, options, room).map(Box::new))
        }
        Work::Count(index, uncounted) => Done::Counted(index, Box::new(uncounted.count())),
    }
}

/// State of the thread that joins.
pub(super) struct Joining<'a> {
    stretches: &'a Stretches,
    queue: &'a StretchQueue,
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
        queue: &'a StretchQueue,
        cores: &'a Cores,
        done: Receiver<Done>,
        options: &'a Options,
    ) -> Self {
        let ongoing = stretches.begun(options);
        let (matched, counts) = (BTreeMap::new(), BTreeMap::new());
        Self { stretches, queue, cores, done, matched, counts, ongoing }
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
            self.queue.done_with(Room::default());
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
                self.queue.done_with(Room::default());
            }
            return Ok(joined);
        }
        let joined = self.ongoing.join(stretch, next_ns);
        Ok(joined.is_some_and(|uncounted: Uncounted| {
            self.counts.insert(index, None);
            self.queue.count(index, Box::new(uncounted));
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
            self.queue.done_with(room);
        }
    }

    /// Adds all counts.
    fn add_all(&mut self) {
        while !self.counts.is_empty() && self.receive() {}
    }
}
