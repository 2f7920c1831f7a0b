//! Stretches that threads of this process match at once, joined in their order.

use super::stretches::Stretches;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};
use tailtrim_tail::analysis::{
    Analysis, AnalysisError, Begin, Counted, Ongoing, Options, Order, Stretch,
};

/// A stretch that was matched, and its counts; `None` where it could not be matched on its own.
type Matched = Option<Box<(Stretch, Counted)>>;

/// Analyses the captures without samples; otherwise as [`super::analyze`]. `None` where the first cut is not between two
/// records.
pub(super) fn analyze(
    stretches: &Stretches,
    jobs: NonZeroUsize,
    options: &Options,
    progress: &mut impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<Analysis>, AnalysisError> {
    let mut ongoing = stretches.begun(options);
    let Some(first) = stretches.run_to_first(&mut ongoing, &mut *progress)? else {
        return Ok(None);
    };
    let threads = Threads {
        stretches,
        options,
        begin: ongoing.begin(),
        expected: stretches.expected(first, &ongoing),
        first,
        next: AtomicUsize::new(first),
        as_expected: AtomicBool::new(true),
        free: Mutex::default(),
    };
    let jobs = jobs.get().min(stretches.cuts.len() - first);
    thread::scope(|scope| {
        // Each of them hands one over while this thread matches one itself.
        let (hand_over, matched) = sync_channel(jobs - 1);
        for _ in 1..jobs {
            let (threads, hand_over) = (&threads, hand_over.clone());
            let work = move || threads.work(&hand_over);
            let started = Builder::new().name("stretches".to_owned()).spawn_scoped(scope, work);
            // One that does not start leaves its work to the others.
            if started.is_err() {
                break;
            }
        }
        drop(hand_over);
        let joined = threads.join(&mut ongoing, &matched, progress);
        threads.begin_no_other();
        joined
    })?;
    Ok(Some(ongoing.finish()))
}

/// Threads that match one stretch after the other.
struct Threads<'a> {
    stretches: &'a Stretches,
    options: &'a Options,
    begin: Begin,
    /// Orders of the stretches from the first one on.
    expected: Vec<Option<Order>>,
    first: usize,
    /// Whether all that were joined had the expected order.
    as_expected: AtomicBool,
    /// Index of the next stretch to be matched.
    next: AtomicUsize,
    /// Memory for counts.
    free: Mutex<Vec<Counted>>,
}

impl Threads<'_> {
    /// Matches stretches until none is left.
    fn work(&self, hand_over: &SyncSender<(usize, Matched)>) {
        while let Some(matched) = self.match_next()
            && hand_over.send(matched).is_ok()
        {}
    }

    fn begin_no_other(&self) {
        self.next.store(self.stretches.cuts.len(), Ordering::Relaxed);
    }

    /// Matches the next stretch, if one is left.
    fn match_next(&self) -> Option<(usize, Matched)> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index >= self.stretches.cuts.len() {
            return None;
        }
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let expected = self.expected[index - self.first].as_ref();
        let expected = expected.filter(|_| self.as_expected.load(Ordering::Relaxed));
        let order = (self.begin, expected);
        let matched = self.stretches.matched(index, order, self.options, free).map(Box::new);
        Some((index, matched))
    }

    /// Joins the stretches in their order. While it would wait for the next one, this thread matches another.
    fn join(
        &self,
        ongoing: &mut Ongoing<'_>,
        matched: &Receiver<(usize, Matched)>,
        progress: &mut impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<(), AnalysisError> {
        let mut early = BTreeMap::new();
        for (index, cut) in self.stretches.cuts.iter().enumerate().skip(self.first) {
            let [entered, left] = cut.at;
            if progress(entered, left).is_break() {
                return Err(AnalysisError::Stopped);
            }
            while !early.contains_key(&index)
                && let Some((other, stretch)) = matched
                    .try_recv()
                    .ok()
                    .or_else(|| self.match_next())
                    .or_else(|| matched.recv().ok())
            {
                early.insert(other, stretch);
            }
            let stretch = early.remove(&index).flatten();
            let whole = stretch.is_some();
            let next_ns = self.stretches.next_ns(index + 1);
            if let Some(stretch) = stretch
                && let Some(counted) = ongoing.join(*stretch, next_ns)
            {
                self.free.lock().unwrap_or_else(PoisonError::into_inner).push(counted);
                continue;
            }
            self.as_expected.store(false, Ordering::Relaxed);
            if !whole {
                self.begin_no_other();
                return self.stretches.go_on(ongoing, index, whole, &mut *progress);
            }
            self.stretches.go_on(ongoing, index, whole, &mut *progress)?;
        }
        Ok(())
    }
}
