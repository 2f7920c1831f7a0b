//! The reference forwarder, which with a delay model is the device of known truth.

use crate::disturb::{Pause, Span};
use crate::grace::GracePeriod;
use crate::port::{Capabilities, Counters, Port, PortError, wait_either};
use crate::work::Work;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tailtrim_sys::clock;
use tailtrim_wire::traffic::{Builder, Delay};

/// Longest wait for a frame before `stopped` is looked at again.
const WAIT: Duration = Duration::from_millis(20);

/// After so many looks at an empty ring, some tenths of a millisecond, the port is asked for errors.
const LOOK: u32 = 1 << 16;

/// Most frames in one go.
const MOST_BATCH: usize = 64;

/// Settings of a forwarder.
#[derive(Debug, Clone)]
pub struct Forwarding {
    /// Sleep until a frame arrives, instead of asking all the time.
    pub wait: bool,
    /// Most frames handled in one batch, 1 to 64.
    pub batch: usize,
    /// Work for each frame: its time on an undisturbed CPU, in ns.
    pub work_ns: u64,
    /// New source MAC address.
    pub source_mac: Option<[u8; 6]>,
    /// New destination MAC address.
    pub destination_mac: Option<[u8; 6]>,
    /// Which directions.
    pub ways: Ways,
    /// Times at which to sleep although there may be frames.
    pub pause: Option<Pause>,
    /// Watch for times in which the work stood still.
    pub watch: bool,
}

/// Directions in which frames are forwarded.
#[derive(Debug, Clone)]
pub enum Ways {
    /// From the first port to the second.
    One {
        /// Model of the time for which each packet is kept, and the seed. Only in one direction: the loop waits while
        /// it keeps a packet, which would delay those of the other direction, too.
        delay: Option<(Delay, u64)>,
    },
    /// There and back, in one loop.
    Both,
}

impl Ways {
    fn delay(&self) -> Option<&(Delay, u64)> {
        match self {
            Self::One { delay } => delay.as_ref(),
            Self::Both => None,
        }
    }
}

/// Frames of one direction by outcome.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Forwarded {
    /// Frames that came in.
    pub received: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Frames that the outgoing port did not take, or that its driver threw away at once.
    pub refused: u64,
    /// Frames that were longer than the incoming port keeps or the outgoing one carries.
    pub too_long: u64,
    /// Frames that the kernel dropped before this process saw them.
    pub dropped: u64,
    /// Frames that came to another queue of the interface and went to the kernel instead.
    pub elsewhere: u64,
    /// Frames without a probe, which were forwarded but are not in the log of delays.
    pub no_probe: u64,
}

/// Result of forwarding.
#[derive(Debug, Clone)]
pub struct ForwardResult {
    /// From the first port to the second.
    pub there: Forwarded,
    /// From the second port to the first, if that was asked for.
    pub back: Option<Forwarded>,
    /// When the loop stood still, if that was watched.
    pub stalls: Vec<Span>,
    /// Time in which it was busy with frames, both directions together, in ns.
    pub busy_ns: u64,
}

/// Why forwarding ended early.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The log of delays.
    #[error("the log of delays cannot be written: {0}")]
    Log(#[source] io::Error),
}

/// Moves frames between two ports until `stopped`; `seen` has the number of frames so far. With a delay, to `log` goes
/// for each probe its sequence number, its receive stamp (`CLOCK_REALTIME`, ns) and the ns from there to the moment
/// before it was sent, as 64-bit little-endian integers: the real delay, not the one that was asked for.
///
/// # Errors
/// [`ForwardError`].
pub fn forward(
    one: &mut dyn Port,
    other: &mut dyn Port,
    how: &Forwarding,
    mut log: Option<&mut dyn Write>,
    stopped: &AtomicBool,
    seen: &AtomicU64,
) -> Result<ForwardResult, ForwardError> {
    let mut there = Way::new(how, other);
    let mut back = matches!(how.ways, Ways::Both).then(|| Way::new(how, one));
    // One for the loop, not one a direction: it stands still for both.
    let mut work = Work::lasting(how.work_ns, how.watch);
    let mut idle = Idle::default();
    let mut busy_ns = 0;
    let mut last = GracePeriod::default();
    loop {
        let ending = stopped.load(Ordering::Acquire);
        if let Some(pause) = &how.pause {
            pause.take();
        }
        let start_ns = clock::monotonic_ns();
        let mut came = there.pass(one, other, how, &mut work, &mut log)?;
        let mut received = there.forwarded.received;
        if let Some(back) = &mut back {
            came += back.pass(other, one, how, &mut work, &mut None)?;
            received += back.forwarded.received;
        }
        if came > 0 {
            busy_ns += clock::monotonic_ns().saturating_sub(start_ns).unsigned_abs();
            seen.store(received, Ordering::Relaxed);
            if ending && last.is_over() {
                break;
            }
            continue;
        }
        if ending {
            break;
        }
        let Some(timeout) = idle.next(how.wait) else {
            std::hint::spin_loop();
            continue;
        };
        if back.is_some() {
            wait_either(one, other, timeout)?;
        } else {
            one.wait(timeout)?;
            other.wait(Duration::ZERO)?;
        }
        if how.wait {
            work.slept();
        }
    }
    if let Some(log) = &mut log {
        log.flush().map_err(ForwardError::Log)?;
    }
    let back = back.map(|back| back.end(other, one)).transpose()?;
    Ok(ForwardResult { there: there.end(one, other)?, back, stalls: work.stalls, busy_ns })
}

/// Action when nothing has come.
#[derive(Debug, Default)]
struct Idle(u32);

impl Idle {
    /// Time to wait; `None` to look again at once.
    fn next(&mut self, wait: bool) -> Option<Duration> {
        self.0 = self.0.wrapping_add(1);
        // Only a call that asks returns the error of an interface that is gone.
        let asks = self.0.is_multiple_of(LOOK);
        if wait { Some(WAIT) } else { asks.then_some(Duration::ZERO) }
    }
}

/// One direction.
struct Way {
    forwarded: Forwarded,
    batch: Vec<HeldFrame>,
    carries: Capabilities,
    start_ns: i64,
}

impl Way {
    fn new(how: &Forwarding, to: &dyn Port) -> Self {
        let batch = how.batch.clamp(1, MOST_BATCH);
        Self {
            forwarded: Forwarded::default(),
            batch: (0..batch).map(|_| HeldFrame::default()).collect(),
            carries: to.capabilities(),
            start_ns: clock::realtime_ns(),
        }
    }

    /// Handles one batch. Returns the number of frames.
    fn pass(
        &mut self,
        from: &mut dyn Port,
        to: &mut dyn Port,
        how: &Forwarding,
        work: &mut Work,
        log: &mut Option<&mut dyn Write>,
    ) -> Result<usize, ForwardError> {
        let Self { forwarded, batch, carries, .. } = self;
        work.round();
        let mut count = 0;
        let came = from.receive(batch.len(), &mut |frame| {
            // A truncated frame is not forwarded: it would differ from the one that was sent.
            if frame.bytes.len() < frame.length || !carries.carries(frame.bytes) {
                forwarded.too_long += 1;
                return;
            }
            let held = &mut batch[count];
            held.bytes.clear();
            held.bytes.extend_from_slice(frame.bytes);
            held.arrival_ns = frame.stamp.map_or_else(clock::realtime_ns, |stamp| stamp.ns);
            count += 1;
        })?;
        forwarded.received += came as u64;
        for held in &mut batch[..count] {
            held.rewrite(how);
            work.once();
        }
        if how.ways.delay().is_some() {
            self.send_delayed(count, to, how, log)?;
        } else if count > 0 {
            let mut frames: [&[u8]; MOST_BATCH] = [&[]; MOST_BATCH];
            for (frame, held) in frames.iter_mut().zip(&batch[..count]) {
                *frame = &held.bytes;
            }
            let sent = to.send(&frames[..count])?;
            forwarded.count(sent, count);
        }
        Ok(came)
    }

    /// Sends one by one: each has its own time at which it is to leave.
    fn send_delayed(
        &mut self,
        count: usize,
        to: &mut dyn Port,
        how: &Forwarding,
        log: &mut Option<&mut dyn Write>,
    ) -> Result<(), ForwardError> {
        let Some((delay, seed)) = how.ways.delay() else { return Ok(()) };
        for held in &self.batch[..count] {
            let Some(probe) = Builder::probe(&held.bytes) else {
                self.forwarded.no_probe += 1;
                self.forwarded.count(to.send(&[&held.bytes])?, 1);
                continue;
            };
            let arrival_ns = held.arrival_ns.saturating_sub(self.start_ns).max(0) as u64;
            let kept_ns = delay.delay_ns(*seed, probe.sequence, arrival_ns) as i64;
            let leaving_ns = busy_until(held.arrival_ns + kept_ns, clock::realtime_ns);
            let sent = to.send(&[&held.bytes])?;
            self.forwarded.count(sent, 1);
            if let Some(log) = log.as_mut().filter(|_| sent == 1) {
                let kept_ns = leaving_ns - held.arrival_ns;
                for value in [probe.sequence as i64, held.arrival_ns, kept_ns] {
                    log.write_all(&value.to_le_bytes()).map_err(ForwardError::Log)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the counts of the ports.
    fn end(mut self, from: &mut dyn Port, to: &mut dyn Port) -> Result<Forwarded, ForwardError> {
        let Counters { dropped, elsewhere, .. } = from.counters()?;
        let Counters { discarded, .. } = to.counters()?;
        let forwarded = &mut self.forwarded;
        (forwarded.dropped, forwarded.elsewhere) = (dropped, elsewhere);
        forwarded.sent = forwarded.sent.saturating_sub(discarded);
        forwarded.refused += discarded;
        Ok(self.forwarded)
    }
}

impl Forwarded {
    fn count(&mut self, sent: usize, offered: usize) {
        self.sent += sent as u64;
        self.refused += (offered - sent) as u64;
    }
}

/// A frame between its ports.
#[derive(Debug, Default)]
struct HeldFrame {
    bytes: Vec<u8>,
    arrival_ns: i64,
}

impl HeldFrame {
    fn rewrite(&mut self, how: &Forwarding) {
        for (at, mac) in [(0, how.destination_mac), (6, how.source_mac)] {
            if let (Some(mac), Some(place)) = (mac, self.bytes.get_mut(at..at + 6)) {
                place.copy_from_slice(&mac);
            }
        }
    }
}

/// Waits without sleeping, and returns the time then.
fn busy_until(end_ns: i64, now_ns: impl Fn() -> i64) -> i64 {
    loop {
        let now_ns = now_ns();
        if now_ns >= end_ns {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests;
