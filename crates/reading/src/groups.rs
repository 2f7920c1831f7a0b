//! Ingress packets by a field: each group is matched with the whole egress capture.

use crate::source::{CaptureInput, Reading, open};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, analyze};
use tailtrim_tail::groups::{group, largest};
use tailtrim_wire::flow::{Field, Value};

/// The analysis of a group; that of all packets in no group of their own has no value.
pub type Group = (Option<Value>, Analysis);

/// Analyses the largest groups of ingress packets, and then the rest, each as if the others had not been there. At most
/// `jobs` at the same time. Egress packets without a group are those of all others, and say nothing.
///
/// # Errors
/// The first error of a capture.
pub fn analyze_by(
    captures: [&Path; 2],
    readings: &[Reading; 2],
    field: Field,
    groups: usize,
    options: &Options,
    jobs: NonZeroUsize,
) -> Result<Vec<Group>, AnalysisError> {
    let values = largest(&mut open(captures[0], readings[0].clone())?.capture, field, groups)?;
    let count = values.len() + 1;
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Result<Group, AnalysisError>)>> = Mutex::default();
    let work = || {
        loop {
            let index = next.fetch_add(1, Relaxed);
            if index >= count {
                return;
            }
            let value = values.get(index).copied();
            let one = || {
                let CaptureInput { capture, .. } = open(captures[0], readings[0].clone())?;
                let mut egress = open(captures[1], readings[1].clone())?.capture;
                let mut ingress = group(capture, field, &values, value);
                let go_on = |_, _| ControlFlow::Continue(());
                let analysis = analyze(&mut ingress, &mut egress, options, &mut (), go_on)?;
                Ok((value, analysis))
            };
            let result = one();
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
