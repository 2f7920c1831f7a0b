//! A common start of threads: each says when it is ready, and none begins before all are.
//!
//! Barriers would wait for ever if one thread ended before it came there. Nothing is allocated or given back between
//! the first thread that is ready and the end of [`Start`]: memory that a process gives back interrupts each CPU on
//! which it runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Held by the code that starts the threads. Dropped before [`begin`](Self::begin), it lets those that are ready end
/// without a start.
pub struct Start<T: Copy>(Arc<Shared<T>>);

/// Held by each thread. After it is dropped, no other thread waits for this one.
pub struct Runner<T: Copy> {
    shared: Arc<Shared<T>>,
    was_ready: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// Threads that are neither ready nor gone.
    awaited: usize,
    gone: usize,
    order: Order<T>,
}

#[derive(Clone, Copy)]
enum Order<T> {
    Wait,
    Begin(T),
    End,
}

/// A start of so many threads.
pub fn together<T: Copy>(count: usize) -> (Start<T>, Vec<Runner<T>>) {
    let state = Mutex::new(State { awaited: count, gone: 0, order: Order::Wait });
    let shared = Arc::new(Shared { state, changed: Condvar::new() });
    let runner = |_| Runner { shared: Arc::clone(&shared), was_ready: false };
    let runners = (0..count).map(runner).collect();
    (Start(shared), runners)
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // A panic of another thread leaves the state valid: nothing between two changes can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State<T>)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}

impl<T: Copy> Start<T> {
    /// Waits until every thread is ready or has ended. Returns whether all are ready.
    pub fn all_ready(&self) -> bool {
        let awaited = |state: &mut State<T>| state.awaited > 0;
        let state = self.0.changed.wait_while(self.0.state(), awaited);
        state.unwrap_or_else(PoisonError::into_inner).gone == 0
    }

    /// As [`all_ready`](Self::all_ready), but at most so long. Returns whether every thread is ready or has ended.
    pub fn wait(&self, at_most: Duration) -> bool {
        let awaited = |state: &mut State<T>| state.awaited > 0;
        let waited = self.0.changed.wait_timeout_while(self.0.state(), at_most, awaited);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Has them begin.
    pub fn begin(&self, value: T) {
        self.0.change(|state| state.order = Order::Begin(value));
    }
}

impl<T: Copy> Drop for Start<T> {
    fn drop(&mut self) {
        self.0.change(|state| {
            if matches!(state.order, Order::Wait) {
                state.order = Order::End;
            }
        });
    }
}

impl<T: Copy> Runner<T> {
    /// Reports that this thread is ready, and waits. `None` if there is no start, since another one has ended.
    pub fn ready(mut self) -> Option<T> {
        self.was_ready = true;
        self.shared.change(|state| state.awaited -= 1);
        let waits = |state: &mut State<T>| matches!(state.order, Order::Wait);
        let state = self.shared.changed.wait_while(self.shared.state(), waits);
        match state.unwrap_or_else(PoisonError::into_inner).order {
            Order::Begin(value) => Some(value),
            Order::Wait | Order::End => None,
        }
    }
}

impl<T: Copy> Drop for Runner<T> {
    fn drop(&mut self) {
        if !self.was_ready {
            self.shared.change(|state| {
                state.awaited -= 1;
                state.gone += 1;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    #[test]
    fn all_begin_with_the_same_value() {
        let (start, runners) = together(3);
        thread::scope(|scope| {
            let threads: Vec<_> =
                runners.into_iter().map(|runner| scope.spawn(|| runner.ready())).collect();
            assert!(start.all_ready());
            start.begin(7);
            for thread in threads {
                assert_eq!(thread.join().unwrap(), Some(7));
            }
        });
    }

    #[test]
    fn nobody_waits_for_a_thread_that_ended_or_never_was() {
        for begins in [true, false] {
            let (start, mut runners) = together::<i32>(3);
            drop(runners.pop());
            thread::scope(|scope| {
                let panics = scope.spawn({
                    let runner = runners.pop();
                    || {
                        let _runner = runner;
                        std::panic::resume_unwind(Box::new("before it was ready"));
                    }
                });
                let waits = runners.pop().map(|runner| scope.spawn(|| runner.ready()));
                assert!(!start.all_ready());
                if begins {
                    start.begin(1);
                } else {
                    drop(start);
                }
                assert!(panics.join().is_err());
                assert_eq!(waits.unwrap().join().unwrap(), begins.then_some(1));
            });
        }
    }

    #[test]
    fn threads_end_when_who_starts_them_panics() {
        let (start, runners) = together::<i32>(2);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                for runner in runners {
                    scope.spawn(|| assert_eq!(runner.ready(), None));
                }
                let start = start;
                assert!(start.all_ready());
                std::panic::resume_unwind(Box::new("before it let them begin"));
            });
        }));
        assert!(panicked.is_err());
    }
}
