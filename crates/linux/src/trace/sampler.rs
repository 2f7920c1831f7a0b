//! What is looked at ten times a second meanwhile: counters of interrupts, the clocks, the device's quota.

use crate::clock::{self, Clock, Counter};
use crate::quota::Throttling;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tailtrim_trace::axis::Reading;
use tailtrim_trace::counters::{Counters, Table};
use tailtrim_trace::lines::Throttled;

/// As often as the published measurements.
const INTERVAL: Duration = Duration::from_millis(100);

/// What was looked at.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// The counter beside the packets' clock.
    pub(super) readings: Vec<Reading>,
    /// `interrupts.csv`.
    pub(super) csv: String,
    /// Interrupts that appeared later and have no column.
    pub(super) unlisted: Vec<String>,
    /// When the device's group was throttled.
    pub(super) throttled: Vec<Throttled>,
}

/// Looks until it is asked for what it has seen, or dropped. Its thread runs where its creator does.
#[derive(Debug)]
pub(super) struct Sampler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Samples>>,
}

impl Sampler {
    pub(super) fn start(counter: Counter, cpus: Vec<u32>, device: Option<u32>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = Some(thread::spawn(move || sample(counter, &cpus, device, &ends)));
        Self { over, thread }
    }

    pub(super) fn finish(mut self) -> Samples {
        match self.end().map(JoinHandle::join) {
            Some(Ok(samples)) => samples,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Samples::default(),
        }
    }

    fn end(&mut self) -> Option<JoinHandle<Samples>> {
        self.over.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        Some(thread)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(thread) = self.end() {
            let _ = thread.join();
        }
    }
}

fn sample(counter: Counter, cpus: &[u32], device: Option<u32>, over: &AtomicBool) -> Samples {
    let mut samples = Samples::default();
    let mut before: Option<(i64, Throttling)> = None;
    let mut table = Table::default();
    loop {
        let reading = clock::read_by(counter, Clock::Realtime);
        let text = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        table.append(&mut samples.csv, reading.ns, &Counters::parse(&text), cpus);
        samples.readings.push(reading);
        let now = device.and_then(Throttling::of).map(|throttling| (reading.ns, throttling));
        if let (Some((from_ns, was)), Some((until_ns, is))) = (&before, &now)
            && was.group == is.group
            && was.ns < is.ns
        {
            let throttled_ns = is.ns - was.ns;
            samples.throttled.push(Throttled {
                from_ns: *from_ns,
                until_ns: *until_ns,
                throttled_ns,
            });
        }
        before = now;
        if over.load(Ordering::Acquire) {
            samples.unlisted = table.unlisted();
            return samples;
        }
        thread::park_timeout(INTERVAL);
    }
}
