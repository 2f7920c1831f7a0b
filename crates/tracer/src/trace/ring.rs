//! A trace of the last seconds, in memory: the events around a packet are written once it is known to be late.
//!
//! The kernel's buffers are read once a second from another CPU. A reader takes whole sub-buffers away from the writer
//! and sends no interrupts; sub-buffers are decoded only when they are to be written.

use super::drained::Drained;
use super::source::{Vocabulary, Wanted};
use super::throttled::Quota;
use super::tracefs::Tracefs;
use super::{Counts, Request, TraceError, read};
use crate::clock::{self, Clock, Counter, Phc};
use std::collections::VecDeque;
use tailtrim_host::Cpus;
use tailtrim_trace::axis::{Axis, Reading};
use tailtrim_trace::lines::{Header, SCHEMA, Source, Throttled};
use tailtrim_trace::{Event, Kind};

/// Memory for sub-buffers that were read, as runs of hours have it: at 60 bytes a record, four million records.
pub const RING_BYTES: usize = 256 << 20;
/// Interval at which buffers are read: long before they are full, and seldom.
const EVERY_NS: i64 = 1_000_000_000;
/// Decoding begins 1 s before the requested time. Within it, a switch or a tick on each CPU tells which thread runs there.
const BEFORE_NS: i64 = 1_000_000_000;

/// Records of the CPUs, for as long as they are kept. When it is dropped, nothing is left in the kernel.
#[derive(Debug)]
pub struct Ring {
    cpus: Cpus,
    keep_ns: i64,
    most_bytes: usize,
    tracefs: Tracefs,
    vocabulary: Vocabulary,
    counts: Counts,
    drained: Drained,
    /// Tick from which on nothing is missing.
    since: u64,
    /// Clock readings, one for each look.
    readings: VecDeque<Reading>,
    /// Time until which everything was read.
    read_ns: i64,
    /// Clocks of NICs, and when they were read first.
    clocks: VecDeque<(i64, Vec<Phc>)>,
    quota: Quota,
    throttled: VecDeque<Throttled>,
}

/// Events within a time.
#[derive(Debug, Clone)]
pub struct Around {
    /// The first line of the file.
    pub header: Header,
    /// In order of their starts.
    pub events: Vec<Event>,
    /// Whether all of this time was recorded and still there.
    pub complete: bool,
}

impl Ring {
    /// Sets everything up, to keep records for this time in so much memory. CPUs are interrupted by this, not
    /// afterwards.
    ///
    /// # Errors
    /// What is missing on this host: only tracefs overwrites the oldest records and can be read meanwhile.
    pub fn prepare(request: &Request, keep_ns: i64, most_bytes: usize) -> Result<Self, TraceError> {
        let sending = request.sending()?;
        let wanted =
            Wanted { cpus: &request.cpus, sending: &sending, kilobytes: request.kilobytes() };
        let (mut vocabulary, mut counts) = (Vocabulary::default(), Counts::default());
        let tracefs = Tracefs::open(wanted, &mut vocabulary, &mut counts)?;
        counts.refused.append(&mut vocabulary.refused);
        Ok(Self {
            cpus: request.cpus.clone(),
            keep_ns,
            most_bytes,
            tracefs,
            vocabulary,
            counts,
            drained: Drained::default(),
            since: 0,
            readings: VecDeque::new(),
            read_ns: i64::MIN,
            clocks: VecDeque::new(),
            quota: Quota::new(request.device),
            throttled: VecDeque::new(),
        })
    }

    /// Begins to record.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn arm(&mut self) -> Result<(), TraceError> {
        self.look()?;
        self.tracefs.start()?;
        self.since = Counter::Tsc.now();
        Ok(())
    }

    /// Looks at clocks and quotas, and once a second reads what was recorded. To be called ten times a second.
    ///
    /// # Errors
    /// The buffers cannot be read.
    pub fn look(&mut self) -> Result<(), TraceError> {
        let reading = clock::read(Clock::Realtime);
        let now_ns = reading.ns;
        self.readings.push_back(reading);
        self.throttled.extend(self.quota.look(now_ns));
        if now_ns.saturating_sub(self.read_ns) < EVERY_NS {
            return Ok(());
        }
        self.read()?;
        // A chain of readings from the start would not show how a clock was slewed for hours.
        if self.clocks.back().is_none_or(|(since_ns, _)| now_ns - since_ns > self.keep_ns) {
            let (clocks, refused) = Phc::begin();
            if self.clocks.is_empty() {
                self.counts.refused.extend(refused);
            }
            self.clocks.push_back((now_ns, clocks));
        }
        self.forget(now_ns);
        Ok(())
    }

    fn read(&mut self) -> Result<(), TraceError> {
        let read_ns = clock::of_the_kernel().0;
        self.drained.append(self.tracefs.drained()?);
        self.read_ns = read_ns;
        Ok(())
    }

    fn forget(&mut self, now_ns: i64) {
        let oldest_ns = now_ns.saturating_sub(self.keep_ns);
        // One reading that is older is kept: it applies to the time after it.
        while self.readings.get(1).is_some_and(|second| second.ns < oldest_ns) {
            self.readings.pop_front();
        }
        while self.clocks.get(1).is_some_and(|(since_ns, _)| *since_ns < oldest_ns) {
            self.clocks.pop_front();
        }
        while self.throttled.front().is_some_and(|first| first.until_ns < oldest_ns) {
            self.throttled.pop_front();
        }
        let oldest = self.readings.front().map_or(0, |first| first.ticks);
        self.since = self.since.max(self.drained.forget(oldest, self.most_bytes));
    }

    /// Time on the packets' clock until which all records can be written.
    #[must_use]
    pub fn until_ns(&self) -> i64 {
        self.read_ns
    }

    /// Counts, with the settings and sources that were refused.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Events within a time, both ends included.
    ///
    /// # Errors
    /// The buffers cannot be read, or the clock was set.
    pub fn around(&mut self, from_ns: i64, until_ns: i64) -> Result<Around, TraceError> {
        self.read()?;
        let now = clock::read(Clock::Realtime);
        let first = self.readings.front().copied().unwrap_or(now);
        let between: Vec<Reading> = self.readings.iter().skip(1).copied().collect();
        let axis = Axis::fit(first, now, &between)?;
        let tick = |ns: i64| now.ticks.saturating_sub(axis.ticks_of(now.ns.saturating_sub(ns)));
        let complete = self.since <= tick(from_ns) && until_ns <= self.read_ns;
        let begin = tick(from_ns.saturating_sub(BEFORE_NS)).max(self.since);
        let ticks = begin..=tick(until_ns).max(begin);
        let mut recorded = self.tracefs.decoded(&self.drained, &ticks, &self.vocabulary.decoder)?;
        recorded.only(&ticks);
        let ours = read::ours();
        let span = read::Span { axis: &axis, armed: begin, disarmed: *ticks.end(), ours: &ours };
        let mut events = read::events(recorded, span, Source::Tracefs, &mut Counts::default());
        events.retain(|event| event.end_ns >= from_ns && event.start_ns <= until_ns);
        let clocks = self.clocks.front().map_or(&[][..], |(_, clocks)| clocks.as_slice());
        let throttled = self.throttled.iter().copied();
        let header = Header {
            schema: SCHEMA.to_owned(),
            error_ns: axis.error_ns,
            holes: events.iter().filter(|event| event.kind == Kind::Hole).count() as u64,
            cpus: self.cpus.to_string(),
            missing: self.vocabulary.missing.clone(),
            source: Source::Tracefs,
            clocks: clocks.iter().filter_map(|clock| clock.again().ok()).collect(),
            armed_ns: Some(axis.ns(begin).max(from_ns)),
            disarmed_ns: Some(until_ns.min(now.ns)),
            throttled: throttled
                .filter(|one| one.until_ns >= from_ns && one.from_ns <= until_ns)
                .collect(),
        };
        Ok(Around { header, events, complete })
    }
}
