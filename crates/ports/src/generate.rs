//! The load generator: an open loop that sends probes when they are due.
//!
//! A probe that is late is sent at once, and its lateness recorded; nothing is shifted to make up for it. Probes that
//! the port does not take are counted and not offered again: they would be later still.

mod back;
mod pool;
mod sender;
mod stalls;

pub use back::{Late, Stamped, TransmitStamps};
pub use stalls::{Stall, Stalls, Sum};

use crate::port::{Counters, Port, PortError};
use back::Back;
use sender::send;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use tailtrim_stats::{DepartureLateness, LatenessSummary};
use tailtrim_tracer::clock::Unstepped;
use tailtrim_tracer::start::together;
use tailtrim_wire::traffic::{Builder, Schedule, Sizes};

/// Most probes in one batch: those that are due while the one before is sent.
const BATCH: usize = 64;

/// From the start of the clock to the first departure.
const LEAD_NS: i64 = 2_000_000;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After so many probes.
    Packets(u64),
    /// With the last departure intended before this many ns.
    After(u64),
}

/// A load: schedule, sizes, frames and end.
#[derive(Debug, Clone)]
pub struct Load {
    /// Times of the departures.
    pub schedule: Schedule,
    /// Lengths of the frames.
    pub sizes: Sizes,
    /// Contents of the frames.
    pub builder: Builder,
    /// End of the load.
    pub stop: Stop,
}

/// Result of sending a load.
#[derive(Debug, Clone, Serialize)]
pub struct Generated {
    /// Probes that were due.
    pub due: u64,
    /// Probes that left.
    pub sent: u64,
    /// Bytes without FCS of those that the port took.
    pub sent_bytes: u64,
    /// Probes that the port did not take, or that its driver threw away at once.
    pub refused: u64,
    /// Probes that the port took and the kernel dropped, because their time had passed (`etf`).
    pub missed: u64,
    /// From the first to the last intended departure, in ns.
    pub intended_ns: u64,
    /// From the first to the last actual departure, in ns.
    pub actual_ns: u64,
    /// Intended packets a second.
    pub intended_pps: f64,
    /// Packets a second that were sent.
    pub achieved_pps: f64,
    /// Departure lateness of the probes sent.
    pub lateness_ns: LatenessSummary,
    /// The probes sent, by the stamps of sent packets; `None` where the interface has none.
    pub transmit_stamps: Option<TransmitStamps>,
    /// When the CPUs of the senders stood still, and probes were late.
    pub stalls: Stalls,
    /// The port's counters.
    pub port: Counters,
}

/// Why a load was not sent.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The log of departures.
    #[error("the log of departures cannot be written: {0}")]
    Log(#[source] io::Error),
}

/// Sends a load through a port, until its end or until `stopped`. For every probe sent, `log` gets the sequence number
/// and the intended and the actual departure (`CLOCK_REALTIME` without its steps since the start, ns), as 64-bit
/// little-endian integers. `started` is called when all is ready.
///
/// The actual departure is read right before the batch is handed to the kernel: the way through the driver after that
/// belongs to the path, not to the generator. Of a port that is given probes ahead of their time
/// ([`Departing`](crate::port::Departing)) it is the kernel's stamp.
///
/// # Errors
/// [`GenerateError`].
pub fn generate(
    port: &mut dyn Port,
    load: Load,
    log: Option<&mut dyn Write>,
    stopped: &AtomicBool,
    started: impl FnOnce(),
) -> Result<Generated, GenerateError> {
    started();
    let clock = Unstepped::from_now();
    let share = Share { clock, start_ns: clock.now_ns() + LEAD_NS, first: 0, step: 1 };
    Ok(send(port, load, share, log, stopped)?.told())
}

/// As [`generate`], by several senders that take turns with the probes of one schedule, each a thread with
/// a port of its own. `place` is called first in each of them, with its number.
///
/// # Errors
/// [`GenerateError`] of the first sender that has one; it ends the others.
///
/// # Panics
/// `place` panicked in a sender, which ends the others, too.
pub fn generate_together(
    ports: &mut [Box<dyn Port>],
    load: &Load,
    stopped: &AtomicBool,
    place: &(dyn Fn(usize) + Sync),
    started: impl FnOnce(),
) -> Result<Generated, GenerateError> {
    let step = ports.len() as u64;
    let clock = Unstepped::from_now();
    let (start, runners) = together(ports.len());
    let results: Vec<_> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..)
            .zip(ports)
            .zip(runners)
            .map(|((number, port), runner)| {
                let load = load.clone();
                scope.spawn(move || {
                    let _ends_others = EndsOthers(stopped);
                    place(number as usize);
                    let Some(start_ns) = runner.ready() else { return Ok(Departures::default()) };
                    let share = Share { clock, start_ns, first: number, step };
                    let sent = send(port.as_mut(), load, share, None, stopped);
                    if sent.is_err() {
                        stopped.store(true, Ordering::Relaxed);
                    }
                    sent
                })
            })
            .collect();
        // If one thread is missing, none starts.
        if start.all_ready() {
            started();
            start.begin(clock.now_ns() + LEAD_NS);
        } else {
            drop(start);
        }
        senders.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut together = Departures::default();
    for result in results {
        match result {
            Ok(departures) => together.add(departures?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(together.told())
}

/// Ends the other senders when its own panics.
struct EndsOthers<'a>(&'a AtomicBool);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// A sender's probes of a schedule, and the start of the schedule.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// A step of the clock neither delays nor hastens departures.
    clock: Unstepped,
    start_ns: i64,
    first: u64,
    step: u64,
}

/// Result of one sender.
struct Departures {
    due: u64,
    sent: u64,
    sent_bytes: u64,
    last_intended_ns: u64,
    first_actual_ns: i64,
    last_actual_ns: i64,
    lateness: DepartureLateness,
    stalls: Stalls,
    back: Back,
    port: Counters,
}

impl Default for Departures {
    fn default() -> Self {
        Self {
            due: 0,
            sent: 0,
            sent_bytes: 0,
            last_intended_ns: 0,
            first_actual_ns: i64::MAX,
            last_actual_ns: i64::MIN,
            lateness: DepartureLateness::default(),
            stalls: Stalls::default(),
            back: Back::default(),
            port: Counters::default(),
        }
    }
}

impl Departures {
    fn add(&mut self, other: Self) {
        self.due += other.due;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.last_intended_ns = self.last_intended_ns.max(other.last_intended_ns);
        self.first_actual_ns = self.first_actual_ns.min(other.first_actual_ns);
        self.last_actual_ns = self.last_actual_ns.max(other.last_actual_ns);
        self.lateness.merge(&other.lateness);
        self.stalls.add(other.stalls);
        self.back.add(other.back);
        self.port += other.port;
    }

    fn told(self) -> Generated {
        let actual_ns = self.last_actual_ns.saturating_sub(self.first_actual_ns).max(0) as u64;
        let per_second = |count: u64, ns: u64| {
            if ns == 0 { 0.0 } else { count.saturating_sub(1) as f64 * 1e9 / ns as f64 }
        };
        Generated {
            due: self.due,
            sent: self.sent,
            sent_bytes: self.sent_bytes,
            refused: self.due - self.sent - self.back.missed,
            missed: self.back.missed,
            intended_ns: self.last_intended_ns,
            actual_ns,
            intended_pps: per_second(self.due, self.last_intended_ns),
            achieved_pps: per_second(self.sent, actual_ns),
            lateness_ns: self.lateness.summary(),
            transmit_stamps: self.back.told(self.sent),
            stalls: self.stalls,
            port: self.port,
        }
    }
}
