//! A common start of threads: each says when it is ready, and none begins before all are.
//!
//! Instead of barriers, for which everybody waits for ever if one thread ends before it comes there.

use std::sync::mpsc::{Receiver, Sender, channel};

/// Held by who starts the threads. Dropped, it lets those that are ready end without a start.
pub(crate) struct Start<T> {
    ready: Receiver<()>,
    runners: Vec<Sender<T>>,
}

/// Held by each thread. Dropped, no other thread waits for this one.
pub(crate) struct Runner<T> {
    ready: Sender<()>,
    start: Receiver<T>,
}

/// A start of so many threads.
pub(crate) fn together<T: Copy>(count: usize) -> (Start<T>, Vec<Runner<T>>) {
    let (tell, ready) = channel();
    let (runners, starts) = (0..count).map(|_| channel()).unzip::<_, _, Vec<_>, Vec<_>>();
    let runner = |start| Runner { ready: tell.clone(), start };
    (Start { ready, runners }, starts.into_iter().map(runner).collect())
}

impl<T: Copy> Start<T> {
    /// Waits until every thread is ready or has ended. Returns whether all are ready.
    pub(crate) fn all_ready(&self) -> bool {
        // Ends when no thread is left that could still say so.
        self.ready.iter().count() == self.runners.len()
    }

    /// Has them begin.
    pub(crate) fn begin(self, value: T) {
        for runner in self.runners {
            // A thread that has ended meanwhile is found by who joins it.
            let _ = runner.send(value);
        }
    }
}

impl<T> Runner<T> {
    /// Says that this thread is ready, and waits. `None` if there is no start, since another one has ended.
    pub(crate) fn ready(self) -> Option<T> {
        let Self { ready, start } = self;
        ready.send(()).ok()?;
        drop(ready);
        start.recv().ok()
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
                    start.begin(1)
                } else {
                    drop(start)
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
