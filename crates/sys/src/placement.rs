//! What this process asks of the host for the sake of its timing, and what it was refused.

pub use crate::capabilities::gain_nothing;
use crate::process;
use serde::Serialize;
use std::io;
use std::path::Path;

/// Priority of real-time threads: above what a distribution starts, below the kernel's own.
const FIFO_PRIORITY: i32 = 50;

/// How the thread that handles packets runs.
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
    /// What was asked for and refused, with the reason.
    pub refused: Vec<String>,
}

impl Placement {
    /// Places the calling thread. Memory is locked and the priority raised in any case; what is
    /// refused is told, not an error: the measurement shows what it costs.
    ///
    /// # Errors
    /// A CPU that cannot be pinned to: whoever names one means it.
    pub fn take(cpu: Option<usize>, fifo: bool) -> Result<Self, PlacementError> {
        if let Some(cpu) = cpu {
            process::pin(cpu).map_err(|source| PlacementError { cpu, source })?;
        }
        let mut placement = Self { cpu, ..Self::default() };
        placement.locked = placement.note("locking memory", process::lock_memory());
        placement.preferred = placement.note("nice -20", prefer());
        if fifo {
            placement.fifo = placement.note("SCHED_FIFO", process::fifo(FIFO_PRIORITY));
        }
        Ok(placement)
    }

    fn note(&mut self, what: &str, result: io::Result<()>) -> bool {
        if let Err(error) = &result {
            self.refused.push(format!("{what}: {error}"));
        }
        result.is_ok()
    }
}

/// Where the scheduler groups tasks by session, as most distributions have it, a nice value only counts
/// within the session; that of the session itself is set apart. A shell's session is not ours to change.
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

/// Names the calling thread, and those that it starts without names of their own, for `top` and for traces: of
/// several parts of the meter at work, who took the CPU? The kernel keeps 15 bytes.
pub fn name_threads(name: &str) {
    // Without /proc the names are not needed either.
    let _ = std::fs::write("/proc/thread-self/comm", name);
}

/// Has the kernel end this process when its parent dies, so that a killed experiment leaves nothing.
pub fn end_with_parent() {
    // It works on every Linux; without it the parent's end of standard input tells as well.
    let _ = process::end_with_parent();
}
