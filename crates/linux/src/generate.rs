//! The load generator: an open loop that sends probes when they are due.
//!
//! A probe that is late is sent at once, and its lateness recorded; nothing is shifted to make up for it.
//! What the port does not take is counted and not offered again: it would be later still.

use crate::port::{Counters, Port, PortError};
use crate::sys::clock;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use tailtrim_model::stats::{Histogram, Probability, Ranked};
use tailtrim_model::traffic::{Builder, Probe, Schedule, Sizes};

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

/// What is to be sent.
pub struct Load {
    /// When.
    pub schedule: Schedule,
    /// How long.
    pub sizes: Sizes,
    /// What it looks like.
    pub builder: Builder,
    /// How much.
    pub stop: Stop,
}

/// What became of the load.
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
    /// From the first to the last intended departure, in ns.
    pub intended_ns: u64,
    /// From the first to the last actual departure, in ns.
    pub actual_ns: u64,
    /// Intended packets a second.
    pub intended_pps: f64,
    /// Packets a second that were sent.
    pub achieved_pps: f64,
    /// Departure lateness of the probes sent.
    pub lateness_ns: Lateness,
    /// What the port counted.
    pub port: Counters,
}

/// Actual minus intended departure, in ns.
#[derive(Debug, Clone, Serialize)]
pub struct Lateness {
    /// The quantiles by nearest rank.
    pub quantiles: Vec<Quantile>,
    /// The largest.
    pub max: Option<i64>,
}

/// A quantile.
#[derive(Debug, Clone, Serialize)]
pub struct Quantile {
    /// The probability as decimal text.
    pub p: String,
    /// The value in ns.
    pub value: Option<i64>,
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

/// Sends a load through a port, until its end or until `stopped`. To `log` goes the sequence number, the
/// intended and the actual departure (`CLOCK_REALTIME`, ns) of every probe sent, as 64-bit little-endian
/// integers. `started` is called when all is ready.
///
/// The actual departure is read right before the batch is handed to the kernel: what follows, the way
/// through the driver, is not the generator's but the path's.
///
/// # Errors
/// [`GenerateError`].
pub fn generate(
    port: &mut dyn Port,
    load: Load,
    mut log: Option<&mut dyn Write>,
    stopped: &AtomicBool,
    started: impl FnOnce(),
) -> Result<Generated, GenerateError> {
    let Load { mut schedule, sizes, builder, stop } = load;
    let mut pool = Pool::new(&builder, &sizes);
    let mut lateness = Histogram::new();
    let (mut due, mut sent, mut sent_bytes) = (0_u64, 0_u64, 0_u64);
    let (mut last_intended_ns, mut first_actual_ns, mut last_actual_ns) = (0, i64::MAX, i64::MIN);
    let is_over = |number: u64, offset_ns: u64| match stop {
        Stop::Packets(most) => number >= most,
        Stop::After(end_ns) => offset_ns >= end_ns,
    };
    started();
    let start_ns = clock::realtime_ns() + LEAD_NS;
    let mut next = schedule.next();
    while let Some(offset_ns) = next.filter(|offset_ns| !is_over(due, *offset_ns)) {
        let mut now_ns = clock::realtime_ns();
        while now_ns < start_ns + offset_ns as i64 {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            std::hint::spin_loop();
            now_ns = clock::realtime_ns();
        }
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let batch_from = due;
        pool.clear();
        while let Some(offset_ns) = next
            && pool.len() < BATCH
            && start_ns + offset_ns as i64 <= now_ns
            && !is_over(due, offset_ns)
        {
            let intended_ns = start_ns + offset_ns as i64;
            let probe =
                Probe { flow: builder.flow(due), sequence: due, intended_ns: intended_ns as u64 };
            pool.add(&builder, sizes.of(due), probe);
            last_intended_ns = offset_ns;
            due += 1;
            next = schedule.next();
        }
        let (frames, intended) = pool.batch();
        let actual_ns = clock::realtime_ns();
        let mut taken = 0;
        while taken < frames.len() {
            let count = port.send(&frames[taken..])?;
            // Sent short: the port has no room.
            taken += count;
            if count == 0 {
                break;
            }
        }
        for (number, intended_ns) in (batch_from..).zip(&intended[..taken]) {
            lateness.record(actual_ns - intended_ns);
            if let Some(log) = &mut log {
                for value in [number as i64, *intended_ns, actual_ns] {
                    log.write_all(&value.to_le_bytes()).map_err(GenerateError::Log)?;
                }
            }
        }
        if taken > 0 {
            first_actual_ns = first_actual_ns.min(actual_ns);
            last_actual_ns = actual_ns;
        }
        sent += taken as u64;
        sent_bytes += frames[..taken].iter().map(|frame| frame.len() as u64).sum::<u64>();
    }
    if let Some(log) = &mut log {
        log.flush().map_err(GenerateError::Log)?;
    }
    let port = port.counters()?;
    let sent = sent.saturating_sub(port.discarded);
    let actual_ns = last_actual_ns.saturating_sub(first_actual_ns).max(0) as u64;
    let per_second = |count: u64, ns: u64| {
        if ns == 0 { 0.0 } else { count.saturating_sub(1) as f64 * 1e9 / ns as f64 }
    };
    Ok(Generated {
        due,
        sent,
        sent_bytes,
        refused: due - sent,
        intended_ns: last_intended_ns,
        actual_ns,
        intended_pps: per_second(due, last_intended_ns),
        achieved_pps: per_second(sent, actual_ns),
        lateness_ns: quantiles(&lateness),
        port,
    })
}

fn quantiles(lateness: &Histogram) -> Lateness {
    let ranked = Ranked::new(lateness);
    let quantiles = ["0.5", "0.9", "0.99", "0.999", "0.9999"]
        .into_iter()
        .filter_map(|p| {
            let value = ranked.quantile(p.parse::<Probability>().ok()?);
            Some(Quantile { p: p.to_owned(), value })
        })
        .collect();
    Lateness { quantiles, max: lateness.max() }
}

/// Frames of each size, made once.
struct Pool {
    /// For each size, as many frames as a batch may hold.
    frames: Vec<(usize, Vec<Vec<u8>>)>,
    /// Of each frame of the batch: its size's and its own place.
    batch: Vec<(usize, usize)>,
    used: Vec<usize>,
    intended_ns: Vec<i64>,
}

impl Pool {
    fn new(builder: &Builder, sizes: &Sizes) -> Self {
        let frames: Vec<(usize, Vec<Vec<u8>>)> = sizes
            .distinct()
            .into_iter()
            .map(|bytes| (bytes, vec![builder.frame(bytes); BATCH]))
            .collect();
        let used = vec![0; frames.len()];
        Self {
            frames,
            batch: Vec::with_capacity(BATCH),
            used,
            intended_ns: Vec::with_capacity(BATCH),
        }
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.used.fill(0);
        self.intended_ns.clear();
    }

    fn len(&self) -> usize {
        self.batch.len()
    }

    fn add(&mut self, builder: &Builder, bytes: usize, probe: Probe) {
        let Some(size) = self.frames.iter().position(|(size, _)| *size == bytes) else { return };
        let place = self.used[size];
        self.used[size] += 1;
        builder.stamp(&mut self.frames[size].1[place], probe);
        self.batch.push((size, place));
        self.intended_ns.push(probe.intended_ns as i64);
    }

    fn batch(&self) -> (Vec<&[u8]>, &[i64]) {
        let frames =
            self.batch.iter().map(|&(size, place)| self.frames[size].1[place].as_slice()).collect();
        (frames, &self.intended_ns)
    }
}
