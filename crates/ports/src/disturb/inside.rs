//! A thread that disturbs its own process.

use super::{Span, repeat};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tailtrim_host::Cpus;
use tailtrim_sys::clock;
use tailtrim_sys::placement::Placement;
use tailtrim_sys::translation::{self, Pages};
use tailtrim_tracer::trace::stay_off;
use tailtrim_wire::traffic::{Disturbance, Disturbing};

/// The name of the thread.
const THREAD: &str = "tt-disturb";
/// Memory that comes and goes: fewer pages than those beyond which everything is flushed
/// (`tlb_single_page_flush_ceiling` is 33).
const PAGES: usize = 32;
/// Time between getting memory, which takes as long as giving it back, and giving it back.
const BREATH: Duration = Duration::from_micros(150);

/// A thread that disturbs until [`finish`](Self::finish).
#[derive(Debug)]
pub struct Disturber {
    stopped: Arc<AtomicBool>,
    pause: Pause,
    thread: JoinHandle<io::Result<Vec<Span>>>,
}

/// Time until which a loop is to sleep.
#[derive(Debug, Clone, Default)]
pub struct Pause(Arc<AtomicI64>);

impl Pause {
    /// Has the loop sleep until this time of `CLOCK_REALTIME`.
    pub(crate) fn set(&self, until_ns: i64) {
        self.0.store(until_ns, Ordering::Relaxed);
    }

    /// Sleeps, if it is time to.
    #[inline]
    pub fn take(&self) {
        let until_ns = self.0.load(Ordering::Relaxed);
        if until_ns != 0 {
            self.0.store(0, Ordering::Relaxed);
            let left_ns = until_ns - clock::realtime_ns();
            thread::sleep(Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0)));
        }
    }
}

impl Disturber {
    /// Begins, on another CPU than `avoided`. With one CPU only, it cannot be disturbed from within.
    ///
    /// # Errors
    /// The kernel refuses the thread, or this disturbance comes from outside of the process.
    pub fn start(disturbance: Disturbance, seed: u64, avoided: Option<usize>) -> io::Result<Self> {
        if !disturbance.from_within() {
            return Err(io::Error::other("is a disturbance from outside of the forwarder"));
        }
        let stopped = Arc::new(AtomicBool::new(false));
        let pause = Pause::default();
        let (ends, pauses) = (Arc::clone(&stopped), pause.clone());
        let work = move || {
            if let Some(cpu) = avoided.and_then(|cpu| u32::try_from(cpu).ok()) {
                stay_off(&[cpu].into_iter().collect::<Cpus>())?;
            }
            // At once, and without waiting in the middle: the times that are written down are to be short.
            drop(Placement::take(None, true));
            if disturbance.kind == Disturbing::Barrier {
                translation::register_barrier()?;
            }
            let mut pages = Pages::new(PAGES)?;
            repeat(&disturbance, seed, &ends, || {
                once(&disturbance, &mut pages, &pauses).map(|span| vec![span])
            })
        };
        let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(work)?;
        Ok(Self { stopped, pause, thread })
    }

    /// The pause that the disturbed loop has to look at.
    #[must_use]
    pub fn pause(&self) -> Pause {
        self.pause.clone()
    }

    /// Ends the disturbance, and returns the times at which it disturbed.
    ///
    /// # Errors
    /// The kernel refused an operation of the disturbance.
    pub fn finish(self) -> io::Result<Vec<Span>> {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread ended early")))
    }
}

fn once(disturbance: &Disturbance, pages: &mut Pages, pause: &Pause) -> io::Result<Span> {
    let start_ns = clock::realtime_ns();
    match disturbance.kind {
        Disturbing::Unmap => {
            let given_back = Pages::new(PAGES)?;
            // Where the generator shares this CPU, the device gets no packets meanwhile: give the generator some time.
            thread::sleep(BREATH);
            let start_ns = clock::realtime_ns();
            drop(given_back);
            return Ok((start_ns, clock::realtime_ns()));
        }
        Disturbing::Protect => {
            // And writable again: that also invalidates entries on other CPUs.
            pages.protect()?;
            pages.release()?;
        }
        Disturbing::Pause => {
            let until_ns = start_ns.saturating_add_unsigned(disturbance.for_ns);
            pause.set(until_ns);
            return Ok((start_ns, until_ns));
        }
        // The other kinds come from outside of the process.
        _ => translation::barrier()?,
    }
    Ok((start_ns, clock::realtime_ns()))
}
