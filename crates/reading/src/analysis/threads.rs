//! Stretches that threads of this process match and count at once.

use super::coordinator::{Answered, Coordinator, StretchError, Workers};
use super::stretches::{Outlined, Stretches};
use crate::cores::Cores;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, Builder, Scope};
use tailtrim_tail::analysis::{Analysis, AnalysisError, Counts, Options, Order};

/// Analyses the captures without samples; otherwise as [`super::analyze`]. `None` where the number of samples before a
/// stretch is unknown, or as soon as there are others than expected.
pub(super) fn analyze(
    stretches: &Stretches,
    jobs: NonZeroUsize,
    cores: &Cores,
    options: &Options,
    progress: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<Analysis>, AnalysisError> {
    thread::scope(|scope| {
        let others = Threads { scope, jobs, cores, stretches, options };
        match (Coordinator { stretches, others, options, progress }).analyze() {
            Ok(analysis) => Ok(Some(analysis)),
            Err(StretchError::Analysis(error)) => Err(error),
            Err(StretchError::OnePiece | StretchError::Answer(_)) => Ok(None),
        }
    })
}

/// Threads that take one stretch after the other.
pub(super) struct Threads<'scope, 'env> {
    pub(super) scope: &'scope Scope<'scope, 'env>,
    pub(super) jobs: NonZeroUsize,
    pub(super) cores: &'env Cores,
    pub(super) stretches: &'env Stretches,
    pub(super) options: &'env Options,
}

impl<'scope> Workers for Threads<'scope, '_> {
    type Error = Infallible;

    const COUNTS_ONCE: bool = true;

    fn outlines(&self, expected: &[Option<Order>]) -> Answered<'_, Outlined, Infallible> {
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
    fn counts(&self, _: Vec<(usize, Order)>) -> Answered<'_, Counts, Infallible> {
        Err(StretchError::OnePiece)
    }
}
