//! Noise of CPUs as a program sees it: gaps of a polling loop, or lateness of timers.

mod awake;
mod counters;
mod poll;
mod smi;
mod timer;

pub use awake::Awake;
pub use counters::{Delta, Snapshot, Watch};

use crate::start::{Runner, Start, together};
use counters::Scheduled;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tailtrim_host::Cpus;
use tailtrim_sys::placement::{Placement, PlacementError};
use tailtrim_sys::process;

/// Name of the measuring threads, by which traces recognise them.
pub const THREAD: &str = "tailtrim-noise";
/// Gaps that are kept one by one, on each CPU: 32 MB.
const KEPT: usize = 1 << 21;

/// Method of measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A loop that reads the time-stamp counter and keeps gaps of so many ticks or more.
    Poll {
        /// At least so many.
        threshold_ticks: u64,
    },
    /// Timers at absolute times, one after the other.
    Timer {
        /// From one to the next.
        interval_ns: i64,
    },
}

/// Result of one CPU.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The CPU.
    pub cpu: u32,
    /// Gaps in ticks, or for each timer the time from when it was due until its thread ran, in ns of the monotonic
    /// clock.
    pub gaps: Vec<(u64, u64)>,
    /// Gaps that were not kept one by one, since there were too many.
    pub not_kept: u64,
    /// The longest of all, kept or not, in the same unit.
    pub longest: u64,
    /// Turns of the loop, or timers.
    pub turns: u64,
    /// The shortest turn of the loop in ticks: shorter gaps cannot be seen.
    pub shortest_turn: u64,
    /// Timers that were skipped since the one before was late by more than the interval.
    pub skipped: u64,
    /// First and last look at the counter, in ticks.
    pub span: (u64, u64),
    /// Number of times that the thread gave up its CPU, and that it was preempted.
    pub context_switches: (u64, u64),
    /// Time that it waited for the CPU while others had it; `None` where the kernel does not count that.
    pub waited_ns: Option<u64>,
    /// CPU and priority of the thread.
    pub placement: Placement,
}

impl Measured {
    fn keep(&mut self, start: u64, end: u64) {
        self.longest = self.longest.max(end - start);
        if self.gaps.len() < KEPT {
            self.gaps.push((start, end));
        } else {
            self.not_kept += 1;
        }
    }
}

/// Reason why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    /// The CPU.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The thread.
    #[error(
        "a thread to measure with cannot be started: {0}; look at the limits of this process (ulimit -u)"
    )]
    Thread(#[from] io::Error),
}

/// The measuring threads, each on its CPU and with its memory.
pub struct Measuring<'a> {
    start: &'a Start<()>,
    end: &'a Start<()>,
    stopped: &'a AtomicBool,
}

impl Measuring<'_> {
    /// Measures until stopped, or for so long. Threads that are done keep their memory until the closure of [`measure`]
    /// returns: ending a thread, or giving memory back, interrupts the CPUs of the others.
    pub fn run(&self, at_most: Option<Duration>) {
        self.start.begin(());
        if let Some(at_most) = at_most
            && !self.end.wait(at_most)
        {
            self.stopped.store(true, Ordering::Release);
        }
        self.end.all_ready();
    }
}

/// Measures all CPUs at once. `during` is called when all threads are on their CPUs and have their memory; they run
/// while it calls [`Measuring::run`], until its time is over or `stopped`.
///
/// # Errors
/// A CPU that this process may not use, or the error of `during`.
///
/// # Panics
/// A measuring thread panicked.
pub fn measure<E: From<NoiseError>>(
    cpus: &Cpus,
    mode: Mode,
    fifo: bool,
    stopped: &AtomicBool,
    during: impl FnOnce(&Measuring<'_>) -> Result<(), E>,
) -> Result<Vec<Measured>, E> {
    let (start, starting) = together(cpus.len());
    let (end, ending) = together(cpus.len());
    let mut begun = Ok(());
    let all = thread::scope(|scope| {
        // Dropped before the threads are joined, so that none waits for ever.
        let (start, end) = (start, end);
        let mut threads = Vec::new();
        let mut problem = None;
        for (cpu, runners) in cpus.iter().zip(starting.into_iter().zip(ending)) {
            let builder = thread::Builder::new().name(THREAD.to_owned());
            match builder.spawn_scoped(scope, move || on(cpu, mode, fifo, stopped, runners)) {
                Ok(thread) => threads.push(thread),
                Err(error) => problem = Some(error),
            }
        }
        if start.all_ready() {
            begun = during(&Measuring { start: &start, end: &end, stopped });
        }
        stopped.store(true, Ordering::Release);
        drop((start, end));
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(measured) => measured,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let measured = joined.collect::<Result<Vec<_>, NoiseError>>();
        problem.map_or(measured, |error| Err(error.into()))
    });
    begun?;
    Ok(all?)
}

fn on(
    cpu: u32,
    mode: Mode,
    fifo: bool,
    stopped: &AtomicBool,
    (start, end): (Runner<()>, Runner<()>),
) -> Result<Measured, NoiseError> {
    let mut measured = Measured { cpu, ..Measured::default() };
    measured.gaps = vec![(0, 0); KEPT];
    // Locking touches every page of it, so that no page fault is measured.
    let placed = Placement::take(Some(cpu as usize), fifo);
    measured.gaps.clear();
    let _ = process::wake_promptly();
    let scheduled = Scheduled::open();
    if start.ready().is_none() {
        return Ok(measured);
    }
    measured.placement = placed?;
    let (before, waited) = (scheduled.context_switches(), scheduled.waited_ns());
    match mode {
        Mode::Poll { threshold_ticks } => poll::run(threshold_ticks, stopped, &mut measured),
        Mode::Timer { interval_ns } => timer::run(interval_ns, stopped, &mut measured),
    }
    let after = scheduled.context_switches();
    measured.waited_ns = scheduled.waited_ns().zip(waited).map(|(now, then)| now - then);
    measured.context_switches = (after.0 - before.0, after.1 - before.1);
    end.ready();
    Ok(measured)
}
