//! Whose turn it is: what several threads do with the stretches of two captures.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tailtrim_tail::analysis::{Counted, Room, Stretch, Uncounted};

/// What is to be done.
pub(super) struct Turns {
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

/// What to do with a stretch.
pub(super) enum Work {
    Match(usize, Room),
    Count(usize, Box<Uncounted>),
}

/// What came of it.
pub(super) enum Done {
    Matched(usize, Option<Box<Stretch>>),
    Counted(usize, Box<Counted>),
}

/// Ends the turns when this is dropped: always, or by a panic only.
pub(super) struct Ending<'a> {
    turns: &'a Turns,
    always: bool,
}

impl Turns {
    pub(super) fn new(count: usize, ahead: usize) -> Self {
        Self { count, ahead, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What to do next, when there is something; `None` at the end.
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

    /// For the one who joins.
    pub(super) fn ending(&self) -> Ending<'_> {
        Ending { turns: self, always: true }
    }

    /// For the others: so that none waits for one that failed.
    pub(super) fn ending_by_panic(&self) -> Ending<'_> {
        Ending { turns: self, always: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if self.always || thread::panicking() {
            self.turns.state().ended = true;
            self.turns.changed.notify_all();
        }
    }
}
