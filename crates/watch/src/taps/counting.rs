//! Packets of a device become minutes.

use super::{OverMinute, TapPlan};
use crate::metrics::TapMetrics;
use crate::minute::{MINUTE_NS, Minute, Outcome, Sample, begin_of};
use crate::state::{Share, State};
use crate::tapped::{Egress, Tapped};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tailtrim_sys::clock;
use tailtrim_tail::analysis::{self, Passed, Sink, Tally};
use tailtrim_tail::matching::DISORDER_NS;
use tailtrim_tracer::clock::ClockSteps;

/// From when a packet can have no other outcome until the analysis has told it.
const TOLD_NS: i64 = 1_000_000_000;

/// Time after the end of a minute until when the taps show a frame of it.
const SHOWN_NS: i64 = 1_000_000_000;

/// The minutes of a device that are not over.
pub(super) struct Counting {
    window_ns: i64,
    metrics: TapMetrics,
    states: Vec<State>,
    open: BTreeMap<i64, OverMinute>,
    /// Begin of the next minute that is to be over.
    next_ns: i64,
    steps: ClockSteps,
    /// By how much the clock was stepped since the taps began to record: they are to begin again.
    stepped_ns: Option<i64>,
    /// Since when both taps record.
    tapped_since_ns: Option<i64>,
    /// All packets are decided that entered before this, less twice the window.
    decided_ns: i64,
    passed: [Passed; 2],
    /// Ingress packets whose outcome is known, since the taps began to record, and egress packets.
    told: [u64; 2],
    foreign: u64,
    dropped: [u64; 2],
}

impl Counting {
    pub(super) fn new(plan: &TapPlan, metrics: TapMetrics, now_ns: i64) -> Self {
        Self {
            window_ns: plan.window_ns(),
            metrics,
            states: plan.objectives.iter().cloned().map(State::new).collect(),
            open: BTreeMap::new(),
            next_ns: begin_of(now_ns),
            steps: ClockSteps::watch(),
            stepped_ns: None,
            tapped_since_ns: None,
            decided_ns: i64::MIN,
            passed: Default::default(),
            told: [0; 2],
            foreign: 0,
            dropped: [0; 2],
        }
    }

    /// Both taps record from now on.
    pub(super) fn begin(&mut self, now_ns: i64) {
        self.tapped_since_ns = Some(now_ns);
        self.decided_ns = i64::MIN;
        (self.passed, self.told) = Default::default();
        (self.foreign, self.dropped) = Default::default();
    }

    /// The taps ended after so many frames at each. Those that the analysis did not tell, since it broke off, are cut.
    pub(super) fn end(&mut self, seen: [u64; 2], now_ns: i64) {
        self.record_until(now_ns);
        self.tapped_since_ns = None;
        let [entered, left] = [0, 1].map(|side| seen[side].saturating_sub(self.told[side]));
        let begin_ns = begin_of(now_ns);
        let minute = &mut self.minute(begin_ns).minute;
        (0..entered).for_each(|_| minute.counts.add(Outcome::Cut));
        let egress = &mut tapped(minute).egress;
        egress.cut += left;
        egress.packets += left;
        self.metrics.entered("cut", entered);
        self.metrics.left("cut", left);
    }

    /// Looks whether the clock was stepped since the taps began to record.
    pub(super) fn is_stepped(&mut self) -> bool {
        if let Some(step) = self.steps.look() {
            *self.stepped_ns.get_or_insert(0) += step.by_ns;
        }
        self.stepped_ns.is_some()
    }

    #[cfg(test)]
    pub(super) fn pretend_step(&mut self, by_ns: i64) {
        self.stepped_ns = Some(by_ns);
    }

    /// Ends all minutes after a step of the clock.
    pub(super) fn step(&mut self, now_ns: i64) -> Vec<OverMinute> {
        let Some(by_ns) = self.stepped_ns.take() else { return Vec::new() };
        self.open.values_mut().for_each(|over| over.minute.health.clock_stepped_ns += by_ns);
        self.next_ns = begin_of(now_ns);
        self.all()
    }

    /// All minutes, also those that are not over.
    pub(super) fn all(&mut self) -> Vec<OverMinute> {
        std::mem::take(&mut self.open).into_values().collect()
    }

    /// Takes out the minutes whose packets are all decided. `quiet`: the taps have seen no frame, or do not record.
    pub(super) fn over(&mut self, now_ns: i64, quiet: bool) -> Vec<OverMinute> {
        let wait_ns = 2 * self.window_ns + DISORDER_NS + TOLD_NS;
        let until_ns =
            if quiet { now_ns - SHOWN_NS } else { self.decided_ns.saturating_sub(wait_ns) };
        let mut over = Vec::new();
        self.record_until(now_ns);
        while self.next_ns + MINUTE_NS <= until_ns {
            let begin_ns = self.next_ns;
            // A minute without a packet is one, too.
            self.minute(begin_ns);
            self.next_ns += MINUTE_NS;
            over.extend(self.open.remove(&begin_ns));
        }
        // Packets of an earlier minute, which was written: it has a second line.
        let late = self.open.range(..self.next_ns).map(|(begin_ns, _)| *begin_ns);
        for begin_ns in late.collect::<Vec<_>>() {
            over.extend(self.open.remove(&begin_ns));
        }
        over
    }

    /// Adds the time in which both taps recorded to its minutes.
    fn record_until(&mut self, now_ns: i64) {
        let Some(mut from_ns) = self.tapped_since_ns else { return };
        // Of a time that a step has made longer or shorter only its begin is known.
        let until_ns = now_ns - self.stepped_ns.unwrap_or(0);
        while from_ns < until_ns {
            let begin_ns = begin_of(from_ns);
            let end_ns = until_ns.min(begin_ns + MINUTE_NS);
            tapped(&mut self.minute(begin_ns).minute).tapped_ns += end_ns - from_ns;
            self.metrics.tapped(end_ns - from_ns);
            from_ns = end_ns;
        }
        self.tapped_since_ns = Some(from_ns);
    }

    /// Takes note of frames that were not taken, so far.
    pub(super) fn lose(&mut self, foreign: u64, dropped: [u64; 2]) {
        let new = foreign - self.foreign;
        let lost = [0, 1].map(|side| dropped[side] - self.dropped[side]);
        (self.foreign, self.dropped) = (foreign, dropped);
        if new == 0 && lost == [0; 2] {
            return;
        }
        let minute = &mut self.minute(begin_of(clock::realtime_ns())).minute;
        let tapped = tapped(minute);
        tapped.foreign += new;
        tapped.dropped = [0, 1].map(|side| tapped.dropped[side] + lost[side]);
        self.metrics.lost(new, lost);
    }

    fn minute(&mut self, begin_ns: i64) -> &mut OverMinute {
        opened(&mut self.open, begin_ns, self.states.len())
    }

    fn samples(&mut self, samples: &[analysis::Sample], disturbed: bool) {
        let mut judged = vec![Share::default(); self.states.len()];
        for sample in samples {
            let (ingress_ns, begin_ns) = (sample.ingress_ns, begin_of(sample.ingress_ns));
            let latency_ns = sample.latency_ns();
            let outcome = if disturbed {
                Outcome::Disturbed
            } else {
                let (residence_ns, own_host_ns) = (None, None);
                self.metrics.observe(latency_ns);
                let begin_ns = ingress_ns;
                Outcome::Answered(Sample { begin_ns, latency_ns, residence_ns, own_host_ns })
            };
            self.add(begin_ns, ingress_ns, outcome, &mut judged);
            let left_ns = begin_of(sample.egress_ns);
            let egress = &mut tapped(&mut self.minute(left_ns).minute).egress;
            egress.matched += 1;
            egress.packets += 1;
        }
        let count = samples.len() as u64;
        self.told.iter_mut().for_each(|told| *told += count);
        self.metrics.entered(if disturbed { "disturbed" } else { "matched" }, count);
        self.metrics.left("matched", count);
        self.metrics.judged(&judged);
    }

    fn add(&mut self, begin_ns: i64, at_ns: i64, outcome: Outcome, judged: &mut [Share]) {
        let Self { open, states, .. } = self;
        let over = opened(open, begin_ns, states.len());
        over.minute.add(begin_ns, (at_ns - begin_ns) / 1_000, outcome);
        for ((state, share), sum) in states.iter().zip(&mut over.shares).zip(judged) {
            let one = state.judge(outcome);
            share.add(one);
            sum.add(one);
        }
    }

    fn unpaired(&mut self, outcome: analysis::Outcome, stamp_ns: i64, packets: u64) {
        use analysis::Outcome as Of;
        let stepped = self.stepped_ns.is_some();
        match outcome {
            // The clock tells nothing of what was under way when it was stepped.
            Of::Lost | Of::BeyondWindow if stepped => {
                self.undelivered(stamp_ns, Outcome::Cut, "cut", packets);
            }
            Of::Lost => self.undelivered(stamp_ns, Outcome::Lost, "lost", packets),
            Of::BeyondWindow => self.undelivered(stamp_ns, Outcome::Late, "beyond_window", packets),
            Of::InFlight => self.undelivered(stamp_ns, Outcome::Cut, "cut", packets),
            Of::Duplicate => {
                tapped(&mut self.minute(begin_of(stamp_ns)).minute).duplicate += packets;
                self.told[0] += packets;
                self.metrics.entered("duplicate", packets);
            }
            Of::Copy => self.left(stamp_ns, |egress| &mut egress.copy, "copy", packets),
            Of::Unmatched => {
                self.left(stamp_ns, |egress| &mut egress.unmatched, "unmatched", packets);
            }
            Of::EnteredBefore => self.left(stamp_ns, |egress| &mut egress.cut, "cut", packets),
        }
    }

    /// Packets that entered and were not seen to leave in time.
    fn undelivered(&mut self, stamp_ns: i64, outcome: Outcome, name: &str, packets: u64) {
        let mut judged = vec![Share::default(); self.states.len()];
        for _ in 0..packets {
            self.add(begin_of(stamp_ns), stamp_ns, outcome, &mut judged);
        }
        self.told[0] += packets;
        self.metrics.judged(&judged);
        self.metrics.entered(name, packets);
    }

    /// Packets that left, and that are in no pair.
    fn left(&mut self, stamp_ns: i64, of: fn(&mut Egress) -> &mut u64, name: &str, packets: u64) {
        let egress = &mut tapped(&mut self.minute(begin_of(stamp_ns)).minute).egress;
        *of(egress) += packets;
        egress.packets += packets;
        self.told[1] += packets;
        self.metrics.left(name, packets);
    }

    /// Counts frames that cannot be matched, so far.
    fn passed(&mut self, passed: [Passed; 2]) {
        let [entered, left] =
            [0, 1].map(|side| passed[side].unstamped - self.passed[side].unstamped);
        let copies = passed[0].copies - self.passed[0].copies;
        self.passed = passed;
        if entered + left + copies == 0 {
            return;
        }
        // They have no time but that at which they came.
        let minute = &mut self.minute(begin_of(clock::realtime_ns())).minute;
        let tapped = tapped(minute);
        tapped.unstamped += entered;
        tapped.copy += copies;
        tapped.egress.unstamped += left;
        tapped.egress.packets += left;
        self.told[0] += entered + copies;
        self.told[1] += left;
        self.metrics.entered("unstamped", entered);
        self.metrics.entered("copy", copies);
        self.metrics.left("unstamped", left);
    }
}

fn opened(
    open: &mut BTreeMap<i64, OverMinute>,
    begin_ns: i64,
    objectives: usize,
) -> &mut OverMinute {
    open.entry(begin_ns).or_insert_with(|| {
        let minute = Minute { tapped: Some(Box::default()), ..Minute::default() };
        OverMinute { begin_ns, minute, shares: vec![Share::default(); objectives] }
    })
}

fn tapped(minute: &mut Minute) -> &mut Tapped {
    minute.tapped.get_or_insert_default()
}

/// Takes what an analysis finds.
pub(super) struct Found {
    counting: Arc<Mutex<Counting>>,
    samples: Vec<analysis::Sample>,
    unpaired: Vec<(analysis::Outcome, i64, u64)>,
    passed: [Passed; 2],
}

impl Found {
    pub(super) fn new(counting: Arc<Mutex<Counting>>) -> Self {
        Self { counting, samples: Vec::new(), unpaired: Vec::new(), passed: Default::default() }
    }

    /// Hands on what was found since the last time, before which the clock is looked at.
    pub(super) fn hand_on(&mut self, decided_ns: i64) {
        let mut counting = locked(&self.counting);
        let stepped = counting.is_stepped();
        counting.samples(&self.samples, stepped);
        for (outcome, stamp_ns, packets) in self.unpaired.drain(..) {
            counting.unpaired(outcome, stamp_ns, packets);
        }
        counting.passed(self.passed);
        counting.decided_ns = counting.decided_ns.max(decided_ns);
        self.samples.clear();
    }
}

impl Sink for Found {
    fn sample(&mut self, sample: &analysis::Sample) -> io::Result<()> {
        self.samples.push(*sample);
        Ok(())
    }

    fn unpaired(&mut self, outcome: analysis::Outcome, stamp_ns: i64, packets: u64) {
        self.unpaired.push((outcome, stamp_ns, packets));
    }

    fn passed(&mut self, passed: [Passed; 2]) {
        self.passed = passed;
    }

    fn decided(&mut self, now_ns: i64, _: &Tally, _: &dyn Fn() -> u64) {
        // At the end of the captures all are told, and no time is left.
        self.hand_on(if now_ns == i64::MAX { i64::MIN } else { now_ns });
    }

    fn follows(&self) -> bool {
        true
    }
}

/// A thread that panicked left it whole.
pub(super) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
