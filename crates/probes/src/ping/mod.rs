//! Round trips: probes on a schedule to one or more reflectors, an open loop as that of the generator.
//!
//! One thread sends and receives. It hands its round trips, in blocks, to one analysing thread a stream, which treats
//! them as a pair of captures: sent probes enter, replies leave.

mod analysis;
mod log;
mod result;
mod stream;

pub use log::{Field, RECORD_FIELDS};
pub use result::{Pinged, StreamResult};
pub use stream::StreamPlan;

use crate::socket::{self, SocketError};
use crate::target::{Buffers, Probing};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use stream::Stream;
use tailtrim_ports::generate::Stop;
use tailtrim_stats::DepartureLateness;
use tailtrim_sys::{clock, process};
use tailtrim_tail::analysis::{AnalysisError, Options};
use tailtrim_tracer::clock::{ClockSteps, Unstepped};
use tailtrim_wire::traffic::Schedule;

/// From the start of the clock to the first departure: the kernel begins to stamp received packets some milliseconds
/// after the first socket has asked for it.
const LEAD_NS: i64 = 20_000_000;

/// The last stretch before a departure is not slept: waking takes up to as long.
const AWAKE_NS: i64 = 60_000;

/// Rounds after which the error queues are read in a loop that does not sleep.
const IDLE_ROUNDS: u32 = 32;

/// Parameters of a measurement.
#[derive(Debug)]
pub struct Plan {
    /// Targets, each with its protocol; each departure of the schedule sends a probe of each.
    pub streams: Vec<StreamPlan>,
    /// When probes depart.
    pub schedule: Schedule,
    /// When to stop.
    pub stop: Stop,
    /// Properties of the probes.
    pub probing: Probing,
    /// Never sleep between departures.
    pub spin: bool,
    /// Options of the analysis of latencies: window and trim are set here.
    pub options: Options,
    /// Where every round trip is written down.
    pub log: Option<PathBuf>,
}

/// Events of the last second, for a live line.
#[derive(Debug, Clone)]
pub struct Live {
    /// Seconds since the start.
    pub seconds: u64,
    /// Probes sent so far.
    pub sent: u64,
    /// Probes answered so far.
    pub answered: u64,
    /// Probes without a reply in time, as far as that is known.
    pub unanswered: u64,
    /// Round-trip times of this second, unsorted.
    pub round_trips_ns: Vec<i64>,
}

/// Why round trips were not measured.
#[derive(Debug, thiserror::Error)]
pub enum PingError {
    /// A socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The round trips cannot be written down.
    #[error("{path}: the round trips cannot be written: {source}")]
    Log {
        /// Where.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The statistics.
    #[error("the round trips cannot be analysed: {0}")]
    Analysis(#[from] AnalysisError),
}

/// Measures until the schedule's end or until `stopped`. `started` is called when all is ready; `place` before that,
/// after the analysing threads have started, so that its settings apply to this thread alone.
///
/// # Errors
/// [`PingError`].
pub fn ping<P>(
    plan: Plan,
    stopped: &AtomicBool,
    live: Option<Sender<Live>>,
    place: impl FnOnce() -> P,
    started: impl FnOnce(),
) -> Result<(Pinged, P), PingError> {
    let streams: Vec<Stream> = plan
        .streams
        .iter()
        .enumerate()
        .map(|(index, stream)| Stream::open(index, stream, &plan))
        .collect::<Result<_, _>>()?;
    let placement = place();
    // Without it, sleeping ends up to 50 µs late; refused, it does no harm.
    let _ = process::wake_promptly();
    started();
    let mut steps = ClockSteps::watch();
    let clock = Unstepped::from_now();
    let start_ns = clock.now_ns() + LEAD_NS;
    let mut run = Run {
        streams,
        buffers: Buffers::new(plan.probing.payload_bytes),
        clock,
        start_ns,
        spin: plan.spin,
        unstamped: !plan.probing.level.stamps_sent(),
        lateness: DepartureLateness::default(),
        live: live.map(|sender| (sender, 0)),
    };
    run.drive(plan.schedule, plan.stop, stopped)?;
    let finished = run.streams.into_iter().map(|stream| stream.finish(&mut run.buffers));
    let streams = finished.collect::<Result<_, _>>()?;
    let pinged = Pinged {
        level: plan.probing.level,
        timeout_ns: plan.probing.timeout_ns,
        lateness_ns: run.lateness.summary(),
        clock_stepped_ns: steps.sum_ns(),
        streams,
    };
    Ok((pinged, placement))
}

struct Run {
    streams: Vec<Stream>,
    buffers: Buffers,
    /// The clock of the departures.
    clock: Unstepped,
    start_ns: i64,
    spin: bool,
    /// Probes are not stamped on their way out: error queues have errors only.
    unstamped: bool,
    lateness: DepartureLateness,
    /// Receiver of live lines, and the number of seconds for which there were lines.
    live: Option<(Sender<Live>, u64)>,
}

impl Run {
    fn drive(
        &mut self,
        schedule: Schedule,
        stop: Stop,
        stopped: &AtomicBool,
    ) -> Result<(), PingError> {
        let is_over = |(number, offset_ns): &(u64, u64)| match stop {
            Stop::Packets(most) => *number >= most,
            Stop::After(end_ns) => *offset_ns >= end_ns,
        };
        let mut departures = (0..).zip(schedule);
        let mut next = departures.next().filter(|one| !is_over(one));
        let mut due = Vec::with_capacity(socket::BATCH);
        let (mut idle, mut unheard) = (0, 0);
        while !stopped.load(Ordering::Relaxed) {
            let mut now_ns = self.clock.now_ns();
            while let Some((_, offset_ns)) = next
                && due.len() < socket::BATCH
                && self.start_ns + offset_ns as i64 <= now_ns
            {
                due.push(self.start_ns + offset_ns as i64);
                next = departures.next().filter(|one| !is_over(one));
            }
            if next.is_none() && due.is_empty() {
                self.streams.iter_mut().for_each(Stream::no_more);
            }
            if !due.is_empty() {
                self.send(&due)?;
                due.clear();
                idle = 0;
                now_ns = self.clock.now_ns();
            }
            let received = self.receive()?;
            idle = if received { 0 } else { idle + 1 };
            // With `spin` and no stamps to wait for, error queues are read seldom, so that replies are read at once.
            unheard += 1;
            if unheard >= IDLE_ROUNDS || (idle < 2 && !(self.spin && self.unstamped)) {
                unheard = 0;
                self.listen()?;
            }
            self.tell(now_ns);
            let next_ns = next.map(|(_, offset_ns)| self.start_ns + offset_ns as i64);
            // Every probe is decided some time: answered, or its timeout is over.
            if next_ns.is_none() && self.streams.iter().all(Stream::is_idle) {
                // A far host that answers twice does so to the last probe, too.
                if self.streams.iter().any(Stream::is_answered_twice) {
                    self.rest(now_ns, None)?;
                    self.receive()?;
                }
                break;
            }
            if !received && idle > 1 && !self.spin {
                self.rest(now_ns, next_ns)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, due: &[i64]) -> Result<(), PingError> {
        for stream in &mut self.streams {
            stream.send(due, &mut self.buffers)?;
        }
        // The first stream's departure is the schedule's; those of the others follow it.
        let actual_ns =
            self.streams.first().map_or(0, |stream| stream.target().last_departure_ns());
        for intended_ns in due {
            self.lateness.record(actual_ns - intended_ns);
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<bool, PingError> {
        let mut any = false;
        for stream in &mut self.streams {
            any |= stream.receive(&mut self.buffers)?;
        }
        Ok(any)
    }

    fn listen(&mut self) -> Result<(), PingError> {
        for stream in &mut self.streams {
            stream.listen(&mut self.buffers)?;
            stream.settle(clock::realtime_ns(), &mut self.buffers)?;
        }
        Ok(())
    }

    fn rest(&self, now_ns: i64, next_ns: Option<i64>) -> Result<(), PingError> {
        // Long enough to cost nothing, short enough to notice a signal and to settle.
        const LONGEST_NS: i64 = 50_000_000;
        let left_ns = next_ns.map_or(LONGEST_NS, |next_ns| next_ns - AWAKE_NS - now_ns);
        if left_ns > 0 {
            let timeout = Duration::from_nanos(left_ns.min(LONGEST_NS) as u64);
            socket::wait_any(self.streams.iter().map(|stream| stream.target().socket()), timeout)?;
        }
        Ok(())
    }

    fn tell(&mut self, now_ns: i64) {
        let Some((sender, told)) = &mut self.live else { return };
        let seconds = (now_ns - self.start_ns).max(0) as u64 / 1_000_000_000;
        if seconds <= *told {
            return;
        }
        *told = seconds;
        let mut live =
            Live { seconds, sent: 0, answered: 0, unanswered: 0, round_trips_ns: Vec::new() };
        for stream in &mut self.streams {
            stream.tell(&mut live);
        }
        // The receiver may be gone; the measurement goes on.
        let _ = sender.send(live);
    }
}

/// The place of a stream's round trips in the folder of the log.
#[must_use]
pub fn log_path(folder: &Path, index: usize) -> PathBuf {
    folder.join(format!("{index}.roundtrips"))
}
