//! The reference forwarder, and with a delay model the device of known truth.

use crate::port::{Counters, Port, PortError};
use crate::sys::clock;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tailtrim_model::traffic::{Builder, Delay};

/// How soon the end is noticed when nothing comes.
const WAIT: Duration = Duration::from_millis(20);

/// After so many looks at an empty ring, some tenths of a millisecond, the port is asked how it is.
const LOOK: u32 = 1 << 16;

/// How frames are forwarded.
#[derive(Debug, Clone)]
pub struct Forwarding {
    /// Sleep until a frame comes, instead of asking all the time.
    pub wait: bool,
    /// Most frames handled in one go, 1 to 64.
    pub batch: usize,
    /// Work for each frame, in ns of busy waiting.
    pub work_ns: u64,
    /// New source MAC address.
    pub source_mac: Option<[u8; 6]>,
    /// New destination MAC address.
    pub destination_mac: Option<[u8; 6]>,
    /// How long to keep each packet, and the seed of it.
    pub delay: Option<(Delay, u64)>,
}

/// What became of the frames.
#[derive(Debug, Clone, Serialize)]
pub struct Forwarded {
    /// Frames that came in.
    pub received: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Frames that the outgoing port did not take.
    pub refused: u64,
    /// Frames that the kernel dropped before this process saw them.
    pub dropped: u64,
    /// Frames without a probe, which were forwarded but are not in the log of delays.
    pub no_probe: u64,
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

/// Moves frames from one port to the other until `stopped`. With a delay, to `log` goes for each probe its
/// sequence number and the ns from its receive stamp to the moment before it was sent, as 64-bit
/// little-endian integers: what really was, not what was asked for.
///
/// # Errors
/// [`ForwardError`].
pub fn forward(
    from: &mut dyn Port,
    to: &mut dyn Port,
    how: &Forwarding,
    mut log: Option<&mut dyn Write>,
    stopped: &AtomicBool,
    seen: &AtomicU64,
) -> Result<Forwarded, ForwardError> {
    let mut forwarded = Forwarded { received: 0, sent: 0, refused: 0, dropped: 0, no_probe: 0 };
    let mut batch: Vec<Held> = (0..how.batch).map(|_| Held::default()).collect();
    let start_ns = clock::realtime_ns();
    let mut idle = 0_u32;
    loop {
        let ending = stopped.load(Ordering::Acquire);
        let mut count = 0;
        from.receive(how.batch, &mut |frame| {
            let held = &mut batch[count];
            held.bytes.clear();
            held.bytes.extend_from_slice(frame.bytes);
            held.arrival_ns = frame.stamp.map_or_else(clock::realtime_ns, |stamp| stamp.ns);
            count += 1;
        })?;
        if count == 0 {
            if ending {
                break;
            }
            idle = idle.wrapping_add(1);
            if how.wait {
                from.wait(WAIT)?;
            } else if idle.is_multiple_of(LOOK) {
                // An interface that is gone says so only to who asks.
                from.wait(Duration::ZERO)?;
            } else {
                std::hint::spin_loop();
            }
            continue;
        }
        forwarded.received += count as u64;
        for held in &mut batch[..count] {
            held.rewrite(how);
            if how.work_ns > 0 {
                busy_until(clock::monotonic_ns() + how.work_ns as i64, clock::monotonic_ns);
            }
        }
        if let Some((delay, seed)) = &how.delay {
            // One by one: each has a moment of its own at which it is to leave.
            for held in &batch[..count] {
                let Some(probe) = Builder::probe(&held.bytes) else {
                    forwarded.no_probe += 1;
                    forwarded.count(to.send(&[&held.bytes])?, 1);
                    continue;
                };
                let arrival_ns = held.arrival_ns.saturating_sub(start_ns).max(0) as u64;
                let kept_ns = delay.delay_ns(*seed, probe.sequence, arrival_ns) as i64;
                let leaving_ns = busy_until(held.arrival_ns + kept_ns, clock::realtime_ns);
                let sent = to.send(&[&held.bytes])?;
                forwarded.count(sent, 1);
                if let Some(log) = log.as_mut().filter(|_| sent == 1) {
                    for value in [probe.sequence as i64, leaving_ns - held.arrival_ns] {
                        log.write_all(&value.to_le_bytes()).map_err(ForwardError::Log)?;
                    }
                }
            }
        } else {
            let frames: Vec<&[u8]> =
                batch[..count].iter().map(|held| held.bytes.as_slice()).collect();
            let sent = to.send(&frames)?;
            forwarded.count(sent, count);
        }
        seen.store(forwarded.received, Ordering::Relaxed);
    }
    if let Some(log) = &mut log {
        log.flush().map_err(ForwardError::Log)?;
    }
    let Counters { dropped, .. } = from.counters()?;
    forwarded.dropped = dropped;
    Ok(forwarded)
}

impl Forwarded {
    fn count(&mut self, sent: usize, offered: usize) {
        self.sent += sent as u64;
        self.refused += (offered - sent) as u64;
    }
}

/// A frame between its ports.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    arrival_ns: i64,
}

impl Held {
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
