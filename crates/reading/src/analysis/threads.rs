//! Stretches that threads of this process match and count at once.

use super::apart::{ApartError, Matching, Outlined, Told};
use super::stretches::Stretches;
use crate::cores::Cores;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, Scope};
use tailtrim_tail::analysis::{Counts, Options, Order};

/// Threads that take one stretch after the other.
pub(super) struct Threads<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) jobs: NonZeroUsize,
    pub(super) cores: &'env Cores,
    pub(super) stretches: &'env Stretches,
    pub(super) options: &'env Options,
}

impl<'scope> Matching for Threads<'scope, '_> {
    type Error = Infallible;

    const COUNTS_ONCE: bool = true;

    fn outlines(&self, expected: &[Option<Order>]) -> Told<'_, Outlined, Infallible> {
        let (cores, stretches, options) = (self.cores, self.stretches, self.options);
        let orders = Arc::new((AtomicUsize::new(0), expected.to_vec()));
        let (tell, told) = channel();
        for _ in 0..self.jobs.get() {
            let (tell, orders) = (tell.clone(), Arc::clone(&orders));
            let take = move || {
                let (next, orders) = &*orders;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(order) = orders.get(index) else { return };
                    let _working = cores.work();
                    let told = stretches.outlined(index, order.as_ref(), options);
                    if tell.send((index, told)).is_err() {
                        return;
                    }
                }
            };
            let started =
                Builder::new().name("stretches".to_owned()).spawn_scoped(self.scope, take);
            // One that does not start leaves its work to the others.
            if started.is_err() {
                break;
            }
        }
        Ok(Box::new(std::iter::from_fn(move || cores.lend(|| told.recv()).ok().map(Ok))))
    }

    /// To match a second time takes longer than to match all on fewer cores.
    fn counts(&self, _: Vec<(usize, Order)>) -> Told<'_, Counts, Infallible> {
        Err(ApartError::OnePiece)
    }
}
