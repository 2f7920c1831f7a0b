//! Clocks of NICs compared with that of another NIC for as long as a measurement takes, by a thread that mostly sleeps.

use super::Phc;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tailtrim_trace::compared::{Compared, Comparison, FEWEST, LONGEST_GAP_NS, Piece};
use tailtrim_trace::phc::{DRIFT_PPM, Offset, Step};

/// Between two comparisons: most servos set a clock once a second, and it takes few readings of the NIC's registers.
const INTERVAL: Duration = Duration::from_millis(250);
/// Times that a comparison is made again where something came between its readings.
const TRIES: usize = 4;
/// A comparison with an error so many times that of the best one is made again.
const WIDE: i64 = 2;

/// A clock that can be read.
pub trait Readable: Send {
    /// Its device, such as `ptp0`.
    fn device(&self) -> &str;

    /// Its offset from the system's clock now.
    ///
    /// # Errors
    /// It cannot be read.
    fn offset(&self) -> Result<Offset, String>;
}

impl Readable for Phc {
    fn device(&self) -> &str {
        self.names()[0]
    }

    fn offset(&self) -> Result<Offset, String> {
        Self::offset(self)
    }
}

/// Why clocks cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ComparingError {
    /// A clock cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// One was set before anything was measured.
    #[error("{0}")]
    Jumped(String),
    /// No clock of a NIC does that.
    #[error(
        "{device} runs {times:.4} times as fast as the system's clock: no time can be told by it"
    )]
    Fast {
        /// The device.
        device: String,
        /// Its pace.
        times: f64,
    },
}

/// A jump of a clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepOf {
    /// The clock that jumped.
    pub device: String,
    /// When it was noticed, by the compared clock, and by how much.
    #[serde(flatten)]
    pub step: Step,
}

/// Findings on a clock beside the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairTold {
    /// The compared clock.
    pub device: String,
    /// Number of comparisons.
    pub readings: usize,
    /// The largest error of a comparison, either way.
    pub reading_error_ns: i64,
    /// The largest error of a stamp that was converted, either way; nothing where the run does not prove one.
    pub clock_error_ns: Option<i64>,
    /// Lead of the clock over the reference, at the first and at the last comparison.
    pub ahead_ns: Option<[i64; 2]>,
    /// Surplus of its speed, in millionths.
    pub drift_ppm: Option<f64>,
    /// The longest time without a comparison.
    pub longest_gap_ns: i64,
    /// Jumps of one of the two.
    pub steps: Vec<StepOf>,
    /// Reasons why stamps of the two cannot be subtracted.
    pub invalid: Vec<String>,
}

/// A thread that compares clocks.
pub struct Comparing {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    pairs: Mutex<Vec<Pair>>,
    /// Comparisons so far.
    made: AtomicU64,
    ended: Mutex<bool>,
    ends: Condvar,
}

/// A compared clock and what is known of it.
#[derive(Default)]
struct Pair {
    device: String,
    compared: Compared,
    /// Offsets of the reference and of the clock when they were read last.
    offsets: Option<[Offset; 2]>,
    best_ns: i64,
    steps: Vec<StepOf>,
    /// Why it could not be read, whenever that was; whether it was read since.
    failed: Option<String>,
    is_read: bool,
}

/// Stamps of a clock as times of the reference.
pub struct Conversion {
    shared: Arc<Shared>,
    pair: usize,
    piece: Option<Piece>,
    made: u64,
}

impl Comparing {
    /// Compares clocks with the first of them from now on. Returns when stamps can be converted, after two seconds.
    ///
    /// # Errors
    /// [`ComparingError`].
    pub fn start<R: Readable + 'static>(clocks: Vec<R>) -> Result<Self, ComparingError> {
        Self::every(INTERVAL, clocks)
    }

    /// The same at another interval.
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn every<R: Readable + 'static>(
        interval: Duration,
        clocks: Vec<R>,
    ) -> Result<Self, ComparingError> {
        let pair = |clock: &R| Pair {
            device: clock.device().to_owned(),
            best_ns: i64::MAX,
            ..Pair::default()
        };
        let pairs = Mutex::new(clocks.iter().skip(1).map(pair).collect());
        let shared = Arc::new(Shared { pairs, ..Shared::default() });
        let offsets = || -> Result<Vec<Offset>, ComparingError> {
            clocks
                .iter()
                .map(Readable::offset)
                .collect::<Result<_, _>>()
                .map_err(ComparingError::Unreadable)
        };
        let first = offsets()?;
        for made in 0..FEWEST {
            if made > 0 {
                thread::sleep(interval);
            }
            shared.compare(&clocks).map_err(ComparingError::Unreadable)?;
        }
        if let Some(step) = locked(&shared.pairs).iter().flat_map(|pair| &pair.steps).next() {
            return Err(ComparingError::Jumped(step.text()));
        }
        for ((clock, from), to) in clocks.iter().zip(first).zip(offsets()?) {
            let span = to.at_ns.saturating_sub(from.at_ns) as f64;
            let grown = to.offset_ns.saturating_sub(from.offset_ns) as f64;
            if grown.abs() > (from.error_ns + to.error_ns) as f64 + DRIFT_PPM * 1e-6 * span {
                let device = clock.device().to_owned();
                return Err(ComparingError::Fast { device, times: 1.0 + grown / span });
            }
        }
        let thread = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                while !shared.is_ended_within(interval) {
                    shared.try_to_compare(&clocks);
                }
                // The last stamps are before this comparison.
                shared.try_to_compare(&clocks);
            })
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The conversion of stamps of a device; nothing for those of the reference.
    #[must_use]
    pub fn conversion(&self, device: &str) -> Option<Conversion> {
        let pair = locked(&self.shared.pairs).iter().position(|pair| pair.device == device)?;
        Some(Conversion { shared: Arc::clone(&self.shared), pair, piece: None, made: 0 })
    }

    /// Compares once more, and ends.
    #[must_use]
    pub fn end(mut self) -> Vec<PairTold> {
        self.stop();
        locked(&self.shared.pairs).iter().map(Pair::told).collect()
    }

    fn stop(&mut self) {
        *locked(&self.shared.ended) = true;
        self.shared.ends.notify_all();
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Comparing {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn is_ended_within(&self, interval: Duration) -> bool {
        let ended = locked(&self.ended);
        let waited = self.ends.wait_timeout_while(ended, interval, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn try_to_compare<R: Readable>(&self, clocks: &[R]) {
        if let Err(error) = self.compare(clocks) {
            for pair in locked(&self.pairs).iter_mut() {
                pair.failed = Some(error.clone());
                pair.is_read = false;
            }
        }
    }

    /// Compares all clocks with the first, and again where that was disturbed.
    fn compare<R: Readable>(&self, clocks: &[R]) -> Result<(), String> {
        let Some((reference, others)) = clocks.split_first() else { return Ok(()) };
        let best_ns: Vec<i64> = locked(&self.pairs).iter().map(|pair| pair.best_ns).collect();
        let mut narrowest: Vec<Option<(Comparison, [Offset; 2])>> = vec![None; others.len()];
        for _ in 0..TRIES {
            let before = reference.offset()?;
            let read: Vec<Offset> = others.iter().map(R::offset).collect::<Result<_, _>>()?;
            let after = reference.offset()?;
            for (kept, other) in narrowest.iter_mut().zip(read) {
                let next = Comparison::of(before, other, after);
                if kept.is_none_or(|(kept, _)| next.error_ns < kept.error_ns) {
                    *kept = Some((next, [before, other]));
                }
            }
            let fine = |(kept, best_ns): (&Option<(Comparison, _)>, &i64)| {
                kept.is_some_and(|(kept, _)| kept.error_ns / WIDE <= *best_ns)
            };
            if narrowest.iter().zip(&best_ns).all(fine) {
                break;
            }
        }
        for (pair, (next, offsets)) in
            locked(&self.pairs).iter_mut().zip(narrowest.into_iter().flatten())
        {
            pair.take(next, offsets, reference.device());
        }
        self.made.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl Pair {
    fn take(&mut self, next: Comparison, offsets: [Offset; 2], reference: &str) {
        self.is_read = true;
        self.best_ns = self.best_ns.min(next.error_ns);
        let before = self.offsets.replace(offsets);
        let Some(step) = self.compared.push(next) else { return };
        // The clock that moved most against the system's.
        let moved = |at: usize| {
            before.map_or(0, |before| {
                offsets[at].offset_ns.saturating_sub(before[at].offset_ns).saturating_abs()
            })
        };
        let device = if moved(0) > moved(1) { reference } else { &self.device };
        self.steps.push(StepOf { device: device.to_owned(), step });
    }

    fn told(&self) -> PairTold {
        let mut invalid: Vec<String> = self.steps.iter().map(StepOf::text).collect();
        let longest_gap_ns = self.compared.longest_gap_ns();
        let why = self.failed.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
        if longest_gap_ns > LONGEST_GAP_NS {
            let seconds = longest_gap_ns as f64 / 1e9;
            invalid
                .push(format!("the clocks of the NICs were not compared for {seconds:.1} s{why}"));
        }
        if !self.is_read {
            invalid.push(format!("the clocks of the NICs could not be compared at the end{why}"));
        }
        PairTold {
            device: self.device.clone(),
            readings: self.compared.readings(),
            reading_error_ns: self.compared.reading_error_ns(),
            clock_error_ns: self.compared.error_ns().filter(|_| invalid.is_empty()),
            ahead_ns: self.compared.ends_ns(),
            drift_ppm: self.compared.drift_ppm(),
            longest_gap_ns,
            steps: self.steps.clone(),
            invalid,
        }
    }
}

impl StepOf {
    fn text(&self) -> String {
        let by = self.step.by_ns.unsigned_abs() as f64 / 1e6;
        let way = if self.step.by_ns < 0 { "behind" } else { "ahead of" };
        format!(
            "the clock {} jumped, so that the one of the NICs was {by:.3} ms {way} the other",
            self.device
        )
    }
}

impl Conversion {
    /// The time of the reference at a stamp.
    #[inline]
    pub fn of_reference(&mut self, stamp_ns: i64) -> i64 {
        match self.piece {
            Some(piece) if piece.has(stamp_ns) && (!piece.is_last() || self.is_newest()) => {
                piece.of_reference(stamp_ns)
            }
            _ => self.looked_up(stamp_ns),
        }
    }

    fn is_newest(&self) -> bool {
        self.shared.made.load(Ordering::Acquire) == self.made
    }

    fn looked_up(&mut self, stamp_ns: i64) -> i64 {
        self.made = self.shared.made.load(Ordering::Acquire);
        self.piece = locked(&self.shared.pairs)[self.pair].compared.piece(stamp_ns);
        self.piece.map_or(stamp_ns, |piece| piece.of_reference(stamp_ns))
    }
}

/// A thread that panicked left it whole.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
