//! What is looked at ten times a second meanwhile: counters of interrupts, the clocks, the device's quota.
//!
//! Memory that a process gives back has to go from the translations of every CPU on which a thread of it runs, by an
//! interrupt; so does memory that moves when a list grows. `noise` measures in the process that samples. So samples lie
//! in blocks that are given back after the end, and what a look needs beside is there before recording begins.

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
            // Kept open, as is the kernel's own memory for it.
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
            // What was read before an error is used.
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

/// A list that grows block by block: what is in it never moves, and nothing is given back before the end.
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
