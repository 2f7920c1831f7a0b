//! Settings of the host that this process asks for to improve its timing, and refusals.

pub use crate::capabilities::gain_nothing;
use crate::process;
use serde::Serialize;
use std::io;
use std::path::Path;

/// Priority of real-time threads: above what a distribution starts, below the kernel's own.
const FIFO_PRIORITY: i32 = 50;

/// CPU, priority and memory of the thread that handles packets.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Placement {
    /// The CPU it is pinned to.
    pub cpu: Option<usize>,
    /// Whether it runs under `SCHED_FIFO`.
    pub fifo: bool,
    /// Whether it has the highest priority of its class (nice -20).
    pub preferred: bool,
    /// Whether its memory is locked.
    pub locked: bool,
    /// Settings that were refused, with the reason.
    pub refused: Vec<String>,
}

impl Placement {
    /// Places the calling thread. Memory is locked and the priority raised in any case; refusals are reported, not
    /// errors: the measurement shows their effect.
    ///
    /// # Errors
    /// The CPU cannot be pinned to: a CPU that was named must be used.
    pub fn take(cpu: Option<usize>, fifo: bool) -> Result<Self, PlacementError> {
        let mut placement = Self::share(cpu)?;
        placement.locked = placement.note("locking memory", process::lock_memory());
        if fifo {
            placement.fifo = placement.note("SCHED_FIFO", process::fifo(FIFO_PRIORITY));
        }
        Ok(placement)
    }

    /// Places the calling thread of a program that shares its host for days: the priority is raised as with
    /// [`take`](Self::take), memory is not locked.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub fn share(cpu: Option<usize>) -> Result<Self, PlacementError> {
        if let Some(cpu) = cpu {
            process::pin(cpu).map_err(|source| PlacementError { cpu, source })?;
        }
        let mut placement = Self { cpu, ..Self::default() };
        placement.preferred = placement.note("nice -20", prefer());
        Ok(placement)
    }

    fn note(&mut self, what: &str, result: io::Result<()>) -> bool {
        if let Err(error) = &result {
            self.refused.push(format!("{what}: {error}"));
        }
        result.is_ok()
    }
}

/// Where the scheduler groups tasks by session, as most distributions have it, a nice value only counts within the
/// session; the nice value of the session itself is separate. That of a shell's session must not be changed.
fn prefer() -> io::Result<()> {
    process::prefer()?;
    let group = Path::new("/proc/self/autogroup");
    if group.exists() && process::leads_session() {
        std::fs::write(group, "-20")?;
    }
    Ok(())
}

/// A CPU that cannot be pinned to.
#[derive(Debug, thiserror::Error)]
#[error("CPU {cpu}: {source} (this process may use the CPUs that `taskset -p $$` shows)")]
pub struct PlacementError {
    cpu: usize,
    source: io::Error,
}

/// Names the calling thread, and those that it starts without names of their own, for `top` and for traces: they show
/// which part of the meter took the CPU. The kernel keeps 15 bytes.
pub fn name_threads(name: &str) {
    // Without /proc there are no traces that need the names.
    let _ = std::fs::write("/proc/thread-self/comm", name);
}

/// Has the kernel end this process when its parent dies, so that a killed experiment leaves nothing.
pub fn end_with_parent() {
    // This works on every Linux. If it fails, the end of standard input still shows that the parent has ended.
    let _ = process::end_with_parent();
}
