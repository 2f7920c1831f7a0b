//! Queue of the work on stretches, for several threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tailtrim_tail::analysis::{Counted, Room, Stretch, Uncounted};

/// Stretches to be matched, and matched ones to be counted.
pub(super) struct StretchQueue {
    /// Stretches in all, and how many are matched ahead of those that are done with.
    count: usize,
    ahead: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Stretches whose matching was begun.
    begun: usize,
    done_with: usize,
    uncounted: VecDeque<(usize, Box<Uncounted>)>,
    rooms: Vec<Room>,
    ended: bool,
}

/// Work on a stretch.
pub(super) enum Work {
    Match(usize, Room),
    Count(usize, Box<Uncounted>),
}

/// Result of the work.
pub(super) enum Done {
    Matched(usize, Option<Box<Stretch>>),
    Counted(usize, Box<Counted>),
}

/// Ends the queue when this is dropped: always, or by a panic only.
pub(super) struct Ending<'a> {
    queue: &'a StretchQueue,
    always: bool,
}

impl StretchQueue {
    pub(super) fn new(count: usize, ahead: usize) -> Self {
        Self { count, ahead, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for the next work; `None` at the end.
    pub(super) fn take(&self) -> Option<Work> {
        let nothing = |state: &mut State| {
            let all = state.begun == self.count || state.begun > state.done_with + self.ahead;
            !state.ended && state.uncounted.is_empty() && all
        };
        let waited = self.changed.wait_while(self.state(), nothing);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return None;
        }
        if let Some((index, uncounted)) = state.uncounted.pop_front() {
            return Some(Work::Count(index, uncounted));
        }
        state.begun += 1;
        let room = state.rooms.pop().unwrap_or_default();
        Some(Work::Match(state.begun - 1, room))
    }

    /// Has a stretch counted.
    pub(super) fn count(&self, index: usize, uncounted: Box<Uncounted>) {
        self.state().uncounted.push_back((index, uncounted));
        self.changed.notify_one();
    }

    /// A stretch takes no memory any more but this.
    pub(super) fn done_with(&self, room: Room) {
        let mut state = self.state();
        state.done_with += 1;
        state.rooms.push(room);
        self.changed.notify_all();
    }

    /// Guard of the joining thread: dropping it ends the queue.
    pub(super) fn ending(&self) -> Ending<'_> {
        Ending { queue: self, always: true }
    }

    /// Guard of the other threads: dropping it in a panic ends the queue, so that no thread waits for one that failed.
    pub(super) fn ending_by_panic(&self) -> Ending<'_> {
        Ending { queue: self, always: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if self.always || thread::panicking() {
            self.queue.state().ended = true;
            self.queue.changed.notify_all();
        }
    }
}
