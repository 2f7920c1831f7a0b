//! Samples taken ten times a second during a recording: counters of interrupts, the clocks, the device's quota.
//!
//! When a process gives memory back, or when a list moves as it grows, the old pages have to be removed from the
//! translations of every CPU on which a thread of the process runs, by an interrupt. `noise` measures in the process
//! that samples. So samples are in blocks that are freed after the end, and the other memory of a sample is allocated
//! before recording begins.

use super::throttled::Quota;
use crate::clock::{self, Clock, Counter};
use std::collections::LinkedList;
use std::fs::File;
use std::io::{Read, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tailtrim_trace::axis::Reading;
use tailtrim_trace::counters::Table;
use tailtrim_trace::lines::Throttled;

/// As often as the published measurements.
const INTERVAL: Duration = Duration::from_millis(100);

/// Samples of a recording.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Readings of the counter and the packets' clock.
    pub(super) readings: Vec<Reading>,
    /// The file of counters.
    pub(super) csv: String,
    /// Interrupts that appeared later and have no column.
    pub(super) unlisted: Vec<String>,
    /// Times in which the device's group was throttled.
    pub(super) throttled: Vec<Throttled>,
}

/// Samples until its result is asked for, or until it is dropped. Its thread runs on the CPUs of its creator.
#[derive(Debug)]
pub(super) struct Sampler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Samples>>,
}

impl Sampler {
    pub(super) fn start(counter: Counter, cpus: Vec<u32>, device: Option<u32>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let mut sampling = Sampling::new(counter, cpus, device);
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Acquire) {
                thread::park_timeout(INTERVAL);
                sampling.look();
            }
            sampling.samples()
        });
        let thread = Some(thread);
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

/// Samples, and the memory to take the next one.
struct Sampling {
    counter: Counter,
    cpus: Vec<u32>,
    interrupts: Option<File>,
    text: Vec<u8>,
    table: Table,
    row: String,
    rows: Blocks<u8>,
    readings: Blocks<Reading>,
    quota: Quota,
    throttled: Vec<Throttled>,
}

impl Sampling {
    /// Takes the first sample, and with it the memory for the next ones.
    fn new(counter: Counter, cpus: Vec<u32>, device: Option<u32>) -> Self {
        let mut sampling = Self {
            counter,
            cpus,
            // The file stays open, and with it the kernel's own memory for it.
            interrupts: File::open("/proc/interrupts").ok(),
            text: Vec::new(),
            table: Table::default(),
            row: String::new(),
            rows: Blocks::default(),
            readings: Blocks::default(),
            quota: Quota::new(device),
            throttled: Vec::new(),
        };
        sampling.look();
        // The first row has the header. Of the text, some numbers become longer.
        sampling.text.reserve(sampling.text.len());
        sampling
    }

    fn look(&mut self) {
        let reading = clock::read_by(self.counter, Clock::Realtime);
        self.text.clear();
        if let Some(file) = &mut self.interrupts
            && file.rewind().is_ok()
        {
            // After an error, the part that was read is used.
            let _ = file.read_to_end(&mut self.text);
        }
        self.row.clear();
        let text = str::from_utf8(&self.text).unwrap_or("");
        self.table.append(&mut self.row, reading.ns, text, &self.cpus);
        self.rows.extend(self.row.as_bytes());
        self.readings.extend(&[reading]);
        // `noise` has no device. With one, this thread stays off the CPUs that are recorded.
        self.throttled.extend(self.quota.look(reading.ns));
    }

    fn samples(self) -> Samples {
        Samples {
            readings: self.readings.joined(),
            csv: String::from_utf8(self.rows.joined()).unwrap_or_default(),
            unlisted: self.table.unlisted(),
            throttled: self.throttled,
        }
    }
}

/// A list that grows block by block: its elements never move, and nothing is freed before the end.
struct Blocks<T>(LinkedList<Vec<T>>);

/// Elements of a block, unless more are added at once.
const BLOCK: usize = 1 << 14;

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self(LinkedList::new())
    }
}

impl<T: Copy> Blocks<T> {
    fn extend(&mut self, items: &[T]) {
        let room = |block: &&mut Vec<T>| block.capacity() - block.len() >= items.len();
        match self.0.back_mut().filter(room) {
            Some(block) => block.extend_from_slice(items),
            None => {
                let mut block = Vec::with_capacity(BLOCK.max(items.len()));
                block.extend_from_slice(items);
                self.0.push_back(block);
            }
        }
    }

    fn joined(self) -> Vec<T> {
        self.0.into_iter().flatten().collect()
    }
}
