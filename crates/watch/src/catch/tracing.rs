//! The trace of this host's CPUs, of the last seconds.

use tailtrim_ports::keeper::{Failure, Keeper, Kept};
use tailtrim_tracer::trace::{Around, Leftovers, Request, Ring, TraceError, online};

/// Memory for the trace of the last seconds, in all.
const RING_BYTES: usize = 32 << 20;

/// Memory of the kernel for what is not read yet, of all CPUs, in MiB. It is read once a second: 8 MiB of a CPU hold
/// 130,000 events.
const KERNEL_MB: usize = 64;
const CPU_MB: usize = 8;

/// So long the trace is kept at least.
const LEAST_NS: i64 = 30_000_000_000;

/// Room to write a catch in, before its trace is overwritten.
const ROOM_NS: i64 = 10_000_000_000;

/// A process that removes the trace from the kernel when this one has ended, also after it was killed.
#[derive(Debug)]
pub(crate) struct Guard {
    _keeper: Keeper,
}

struct Guarded(Leftovers);

impl Kept for Guarded {}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl Guard {
    /// Starts it. To be called before other threads are started.
    ///
    /// # Errors
    /// Why there can be no trace here.
    pub(crate) fn start() -> Result<Self, String> {
        let leftovers = Leftovers::of_this_process().map_err(|error| error.to_string())?;
        let started = Keeper::start(|| Ok::<_, Failure>(((), Guarded(leftovers))));
        started.map(|((), keeper)| Self { _keeper: keeper }).map_err(|error| error.to_string())
    }
}

/// The trace.
#[derive(Debug)]
pub(crate) struct Tracing {
    ring: Ring,
    /// Ends behind the trace.
    _guard: Guard,
}

impl Tracing {
    /// Begins to trace all CPUs, for catches that are asked for until `longest_ns` after what they are about.
    ///
    /// # Errors
    /// Why there can be no trace here.
    pub(crate) fn start(guard: Guard, longest_ns: i64) -> Result<Self, String> {
        let cpus = online();
        let buffer_mb = (KERNEL_MB / cpus.len().max(1)).clamp(1, CPU_MB);
        let request = Request { cpus, buffer_mb: buffer_mb as u32, source: None, device: None };
        let keep_ns = LEAST_NS.max(2 * longest_ns + ROOM_NS);
        let prepared = Ring::prepare(&request, keep_ns, RING_BYTES);
        let armed = prepared.and_then(|mut ring| ring.arm().map(|()| ring));
        armed.map(|ring| Self { ring, _guard: guard }).map_err(|error| error.to_string())
    }

    /// Reads what is new. To be called ten times a second.
    ///
    /// # Errors
    /// The trace cannot go on.
    pub(crate) fn look(&mut self) -> Result<(), String> {
        self.ring.look().map_err(|error| error.to_string())
    }

    /// Events within a time.
    ///
    /// # Errors
    /// Why it is not known.
    pub(crate) fn around(&mut self, from_ns: i64, until_ns: i64) -> Result<Around, String> {
        self.ring.around(from_ns, until_ns).map_err(|error: TraceError| error.to_string())
    }
}
