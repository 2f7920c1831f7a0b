//! Both taps of a device from when they are open until one of them ends, and the analysis of what they see.

use super::counting::{Counting, Found};
use super::{Ports, TapPlan};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tailtrim_ports::capture::{TapCounts, TapError, TapSink, Tapped, online, tap};
use tailtrim_ports::port::Port;
use tailtrim_tail::analysis::{AnalysisError, analyze};
use tailtrim_tail::capture::CaptureError;

/// Names of the taps.
const SIDES: [&str; 2] = ["ingress", "egress"];

/// Taps that record.
pub(super) struct Session {
    stopped: Arc<AtomicBool>,
    seen: [Arc<AtomicU64>; 2],
    counts: [Arc<TapCounts>; 2],
    taps: [JoinHandle<Result<Tapped, TapError>>; 2],
    analysis: JoinHandle<Result<(), AnalysisError>>,
}

/// The rest of a session.
pub(super) struct Ended {
    /// Frames at each tap.
    pub(super) seen: [u64; 2],
    pub(super) foreign: u64,
    pub(super) dropped: [u64; 2],
    /// Why it ended, if it was not told to.
    pub(super) why: Option<String>,
}

impl Session {
    pub(super) fn begin(
        plan: &Arc<TapPlan>,
        ports: Ports,
        counting: &Arc<Mutex<Counting>>,
    ) -> Result<Self, CaptureError> {
        let stopped = Arc::<AtomicBool>::default();
        let seen: [Arc<AtomicU64>; 2] = Default::default();
        let counts: [Arc<TapCounts>; 2] = Default::default();
        let (into, ingress) = online(SIDES[0], plan.snap, false)?;
        let (out_of, egress) = online(SIDES[1], plan.snap, true)?;
        let [first, second] = ports;
        let start = |side: usize, mut port: Box<dyn Port>, feed| {
            let (filter, counts) = (plan.filter.clone(), Arc::clone(&counts[side]));
            let sink = TapSink { feed: Some(feed), filter, counts, ..TapSink::default() };
            let (stopped, seen) = (Arc::clone(&stopped), Arc::clone(&seen[side]));
            let snap = plan.snap as usize;
            thread::spawn(move || {
                // The other one ends with it.
                let ended = OnEnd(stopped);
                tap(port.as_mut(), sink, snap, &ended.0, &seen)
            })
        };
        let taps = [start(0, first, into), start(1, second, out_of)];
        let (plan, mut found) = (Arc::clone(plan), Found::new(Arc::clone(counting)));
        let ended = OnEnd(Arc::clone(&stopped));
        let analysis = thread::spawn(move || {
            let (mut ingress, mut egress) = (ingress, egress);
            let _ended = ended;
            let go_on = |_, _| ControlFlow::Continue(());
            let analysed = analyze(&mut ingress, &mut egress, &plan.options, &mut found, go_on);
            found.hand_on(i64::MIN);
            analysed.map(|_| ())
        });
        Ok(Self { stopped, seen, counts, taps, analysis })
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.taps.iter().any(JoinHandle::is_finished) || self.analysis.is_finished()
    }

    /// Whether no frame has come.
    pub(super) fn is_quiet(&self) -> bool {
        self.seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 0)
    }

    /// Frames so far that the filter did not take, and those that each tap has dropped.
    pub(super) fn lost(&self) -> (u64, [u64; 2]) {
        let foreign = self.counts.iter().map(|counts| counts.foreign.load(Ordering::Relaxed)).sum();
        (foreign, [0, 1].map(|side| self.counts[side].dropped.load(Ordering::Relaxed)))
    }

    /// Waits until all that was seen is analysed.
    pub(super) fn end(self) -> Ended {
        self.stop();
        let mut why = None;
        let taps = self.taps.into_iter().zip(SIDES).map(|(thread, side)| {
            if let Err(error) = joined(thread) {
                why.get_or_insert(format!("{side}: {error}"));
            }
        });
        taps.for_each(drop);
        if let Err(error) = joined(self.analysis) {
            why.get_or_insert(error.to_string());
        }
        let [seen, dropped] = [
            self.seen.map(|seen| seen.load(Ordering::Relaxed)),
            self.counts.each_ref().map(|counts| counts.dropped.load(Ordering::Relaxed)),
        ];
        let foreign = self.counts.iter().map(|counts| counts.foreign.load(Ordering::Relaxed)).sum();
        Ended { seen, foreign, dropped, why }
    }
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sets a flag when it is dropped, however its thread ends.
struct OnEnd(Arc<AtomicBool>);

impl Drop for OnEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
