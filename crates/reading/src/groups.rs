//! Ingress packets by a field: each group is matched with the whole egress capture.

use crate::analysis::second_look::SecondLook;
use crate::source::CaptureInput;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, analyze};
use tailtrim_tail::groups::{group, largest};
use tailtrim_tail::twice::is_likely;
use tailtrim_wire::flow::{Field, Value};

/// The analysis of a group; that of all packets in no group of their own has no value.
pub type Group = (Option<Value>, Analysis);

/// Analyses the largest groups of ingress packets, and then the rest, each as if the others had not been there. At most
/// `jobs` at the same time. Egress packets without a group are those of all others, and say nothing.
///
/// # Errors
/// The first error of a capture; [`AnalysisError::Pipe`] where one is a pipe.
pub fn analyze_by(
    ingress: &CaptureInput,
    egress: &CaptureInput,
    field: Field,
    groups: usize,
    options: &Options,
    jobs: NonZeroUsize,
) -> Result<Vec<Group>, AnalysisError> {
    let again = SecondLook::at(ingress, egress).ok_or(AnalysisError::Pipe)?.asked(options)?;
    let values = largest(&mut again.open(0)?.capture, field, groups)?;
    let count = values.len() + 1;
    let copies = OnceLock::new();
    let told_apart = OnceLock::new();
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Result<Group, AnalysisError>)>> = Mutex::default();
    let work = || {
        loop {
            let index = next.fetch_add(1, Relaxed);
            if index >= count {
                return;
            }
            let value = values.get(index).copied();
            let one_of = |again: &SecondLook, options: &Options| {
                let (ingress, mut egress) = (again.open(0)?.capture, again.open(1)?.capture);
                let mut ingress = group(ingress, field, &values, value);
                let go_on = |_, _| ControlFlow::Continue(());
                analyze(&mut ingress, &mut egress, options, &mut (), go_on)
            };
            let one = |options: &Options| one_of(&again, options);
            let result = one(options).and_then(|found| {
                if is_likely(&found.summary, options)
                    && let Some((twice, apart)) =
                        told_apart.get_or_init(|| again.told_apart(options))
                    && twice.concerns(&found.summary)
                {
                    return Ok((value, one_of(apart, options)?));
                }
                if found.summary.ingress.duplicate == 0 {
                    return Ok((value, found));
                }
                // A group may have too few copies of a mirror port to tell that they are some.
                let all = copies.get_or_init(|| again.copies_within_ns(options).ok().flatten());
                let options = Options { copies_within_ns: *all, ..options.clone() };
                let found = if all.is_some() { one(&options)? } else { found };
                Ok((value, found))
            });
            if let Ok(mut found) = found.lock() {
                found.push((index, result));
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (1..jobs.get().min(count)).map(|_| scope.spawn(work)).collect();
        work();
        for thread in threads {
            thread.join().unwrap_or_else(|failure| panic::resume_unwind(failure));
        }
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_unstable_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, result)| result).collect()
}
