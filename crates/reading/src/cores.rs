//! Limit on the number of threads that work at the same time.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, PoisonError};

/// Cores that threads share. A thread that waits for another one gives its core back until then.
#[derive(Debug)]
pub(crate) struct Cores {
    count: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

/// A core being used, until this is dropped.
#[derive(Debug)]
pub(crate) struct Working<'a>(&'a Cores);

impl Cores {
    pub(crate) fn new(cores: NonZeroUsize) -> Self {
        Self { count: cores.get(), free: Mutex::new(cores.get()), freed: Condvar::new() }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Waits for a core.
    pub(crate) fn work(&self) -> Working<'_> {
        self.take();
        Working(self)
    }

    /// Gives the core of this thread to others while it waits for one of them.
    pub(crate) fn lend<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.give();
        let awaited = wait();
        self.take();
        awaited
    }

    fn take(&self) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let none = |free: &mut usize| *free == 0;
        *self.freed.wait_while(free, none).unwrap_or_else(PoisonError::into_inner) -= 1;
    }

    fn give(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.give();
    }
}
