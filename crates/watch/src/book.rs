//! Reports become minutes, and minutes go to disk when they are over.

use crate::change::Changes;
use crate::keeping::Keep;
use crate::metrics::{Metrics, TargetMetrics};
use crate::minute::{MINUTE_NS, Minute, Outcome, begin_of};
use crate::page::{About, Board};
use crate::plan::TargetPlan;
use crate::probing::MISSED_NS;
use crate::report::Report;
use crate::state::{Share, State};
use crate::steal::Stolen;
use crate::store::{Store, StoreError};
use crate::subject::{self, Subject};
use crate::taps::OverMinute;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tailtrim_probes::target::STAMPS_NS;

/// A minute is on disk so long after its end and the timeout of its last probe: another second is for what writes it.
pub(crate) const WRITTEN_NS: i64 = MISSED_NS + STAMPS_NS + 1_000_000_000;

/// Takes reports.
pub(crate) struct Book {
    store: Store,
    keep: Keep,
    changes: Changes,
    metrics: Arc<Metrics>,
    board: Arc<Board>,
    kept: BTreeMap<usize, Kept>,
    /// `CLOCK_REALTIME` minus the clock of departures.
    stepped_ns: i64,
    stolen: Stolen,
    retained_ns: i64,
    /// `CLOCK_REALTIME` of the last report that tells it.
    now_ns: i64,
    warn: Box<dyn Fn(&str) + Send>,
}

struct Kept {
    plan: Subject,
    metrics: TargetMetrics,
    states: Vec<State>,
    /// Minutes that are not written, by their begin.
    minutes: BTreeMap<i64, Minute>,
    shares: BTreeMap<i64, Vec<Share>>,
    /// Begin of the next minute that is to be written.
    next_ns: i64,
    /// The last failure, which is told once, and again after a minute without one.
    failure: Option<String>,
    /// It is a device, whose minutes come when they are over.
    tapped: bool,
}

/// A line of `events.jsonl`.
#[derive(Serialize)]
struct Note<'a> {
    at_ns: i64,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    told: Option<String>,
}

impl Book {
    pub(crate) fn new(
        store: Store,
        keep: Keep,
        changes: Changes,
        metrics: Arc<Metrics>,
        board: Arc<Board>,
        now_ns: i64,
        warn: Box<dyn Fn(&str) + Send>,
    ) -> Result<Self, StoreError> {
        let mut book = Self {
            store,
            keep,
            changes,
            metrics,
            board,
            kept: BTreeMap::new(),
            stepped_ns: 0,
            stolen: Stolen::begin(),
            retained_ns: i64::MIN,
            now_ns,
            warn,
        };
        book.note("start", None, None)?;
        book.retain(now_ns);
        Ok(book)
    }

    /// Enters reports in their order. What they write is on disk afterwards.
    pub(crate) fn enter(&mut self, reports: Vec<Report>) {
        for report in reports {
            match report {
                Report::Started { place, plan, now_ns } => {
                    self.now_ns = now_ns + self.stepped_ns;
                    self.start(place, plan);
                }
                Report::Ended { place } => self.end(place),
                Report::Directed { place, address, why } => {
                    let told = why.or_else(|| address.map(|address| address.to_string()));
                    self.tell(place, "address", told);
                }
                Report::Failed { place, why } => {
                    let kept = self.kept.get_mut(&place);
                    let before = kept.and_then(|kept| kept.failure.replace(why.clone()));
                    if before.as_ref() != Some(&why) {
                        self.tell(place, "failed", Some(why));
                    }
                }
                Report::Decided { place, due_ns, outcome } => self.decided(place, due_ns, outcome),
                Report::Departed { place, due_ns, lateness_ns } => {
                    if let Some(Minute { health, .. }) = self.minute(place, due_ns) {
                        health.lateness_max_ns = health.lateness_max_ns.max(lateness_ns);
                    }
                }
                Report::Arrived { place, arrivals, now_ns } => {
                    if let Some(minute) = self.minute(place, now_ns) {
                        minute.arrivals.add(&arrivals);
                    }
                    if let Some(kept) = self.kept.get(&place) {
                        kept.metrics.arrived(&arrivals);
                    }
                }
                Report::Tapping { place, plan, metrics } => {
                    self.keep(place, plan.subject(), About::of_tap(&plan), plan.described().ok());
                    // A thread that has ended needs none.
                    let _ = metrics.send(self.metrics.packets(&plan.name, &plan.objectives));
                }
                Report::Tapped { place } => {
                    self.kept.get_mut(&place).map(|kept| kept.failure.take());
                    self.tell(place, "tapped", None);
                }
                Report::Over { place, minutes } => self.over(place, minutes),
                Report::Stepped { by_ns } => self.step(by_ns),
                Report::Swept { now_ns } => {
                    self.now_ns = now_ns + self.stepped_ns;
                    self.pass(self.now_ns);
                }
                Report::Kept(keep) => self.keep = keep,
                Report::Told { event, target, told } => {
                    let told = Some(told);
                    self.unwritten(|book| book.note(event, target.as_deref(), told.clone()));
                }
                Report::Stopped => {}
                Report::Compared(asked) => self.changes.ask_for(asked),
                Report::Refused(why) => {
                    self.metrics.meter.reloads_refused.inc();
                    self.unwritten(|book| book.note("refused", None, Some(why.clone())));
                }
            }
        }
        self.sync();
    }

    fn start(&mut self, place: usize, plan: Arc<TargetPlan>) {
        let described = subject::described(&plan).ok();
        self.keep(place, Subject::of(&plan), About::of(&plan), described);
    }

    /// Begins the minutes of a target or a device.
    fn keep(&mut self, place: usize, plan: Subject, about: About, described: Option<Vec<u8>>) {
        // A name that moves between targets and taps: another thread reports the end of the former one later.
        let former = self.kept.iter().find(|(_, kept)| kept.plan.name == plan.name);
        if let Some((&former, _)) = former {
            self.end(former);
        }
        if let Some(text) = described {
            let path = Path::new(&plan.name).join("target.json");
            self.unwritten(|book| book.store.replace(&path, &text));
        }
        let tapped = about.interval_ns.is_none();
        let metrics = if tapped { Metrics::tap } else { Metrics::target };
        let kept = Kept {
            metrics: metrics(&self.metrics, &plan.name, &plan.objectives),
            states: plan.objectives.iter().cloned().map(State::new).collect(),
            minutes: BTreeMap::new(),
            shares: BTreeMap::new(),
            next_ns: begin_of(self.now_ns),
            failure: None,
            tapped,
            plan,
        };
        self.board.begin(&kept.plan.name, about, &kept.states);
        self.changes.begin(place, &kept.plan.name, self.now_ns);
        self.kept.insert(place, kept);
        self.tell(place, "target", None);
    }

    /// Takes minutes of a device, which are over. They are written when the time is looked at.
    fn over(&mut self, place: usize, over: Vec<OverMinute>) {
        let Some(kept) = self.kept.get_mut(&place) else { return };
        for OverMinute { begin_ns, minute, shares } in over {
            kept.minutes.insert(begin_ns, minute);
            kept.shares.insert(begin_ns, shares);
        }
    }

    /// Writes what a target has, also of the minute that is not over.
    fn end(&mut self, place: usize) {
        self.tell(place, "end", None);
        let Some(mut kept) = self.kept.remove(&place) else { return };
        let minutes = kept.take(i64::MAX);
        self.write(&kept.plan.name, &minutes);
        self.changes.end(place);
        self.metrics.forget(&kept.plan, kept.tapped);
        self.board.end(&kept.plan.name);
    }

    /// Writes changes: events first, so that a crash between both loses none.
    fn changed(&mut self) {
        let told = self.changes.turn();
        for line in &told.events {
            self.unwritten(|book| book.store.note("events.jsonl", line));
        }
        for (path, text) in &told.files {
            self.unwritten(|book| book.store.replace(path, text));
        }
        for (target, of, against, state) in told.states {
            self.metrics.changes.set(target, of, against, state);
        }
    }

    fn minute(&mut self, place: usize, due_ns: i64) -> Option<&mut Minute> {
        let begin_ns = begin_of(due_ns + self.stepped_ns);
        Some(self.kept.get_mut(&place)?.minutes.entry(begin_ns).or_default())
    }

    fn decided(&mut self, place: usize, due_ns: i64, outcome: Outcome) {
        let begin_ns = begin_of(due_ns + self.stepped_ns);
        let Some(kept) = self.kept.get_mut(&place) else { return };
        let due_us = (due_ns + self.stepped_ns - begin_ns) / 1_000;
        kept.minutes.entry(begin_ns).or_default().add(begin_ns, due_us, outcome);
        let judged: Vec<Share> = kept.states.iter().map(|state| state.judge(outcome)).collect();
        kept.metrics.decided(begin_ns, due_us, outcome, &judged);
        let shares = kept.shares.entry(begin_ns).or_default();
        shares.resize(judged.len(), Share::default());
        for (sum, share) in shares.iter_mut().zip(judged) {
            sum.add(share);
        }
    }

    /// Marks and ends the minutes that a step of the clock has ended.
    fn step(&mut self, by_ns: i64) {
        self.metrics.meter.clock_steps.inc();
        self.unwritten(|book| book.note("clock_step", None, Some(format!("{by_ns} ns"))));
        self.stepped_ns += by_ns;
        self.now_ns += by_ns;
        let begin_ns = begin_of(self.now_ns);
        let mut kept = std::mem::take(&mut self.kept);
        for (place, kept) in kept.iter_mut().filter(|(_, kept)| !kept.tapped) {
            kept.minutes.entry(kept.next_ns).or_default();
            for minute in kept.minutes.values_mut() {
                minute.health.clock_stepped_ns += by_ns;
            }
            let minutes = kept.take(i64::MAX);
            self.end_minutes(*place, kept, &minutes);
            kept.next_ns = begin_ns;
        }
        self.kept = kept;
    }

    /// Judges and writes minutes, and hands them to those who show and compare them.
    fn end_minutes(&mut self, place: usize, kept: &mut Kept, minutes: &[(i64, Minute)]) {
        for (begin_ns, minute) in minutes {
            let shares = kept.shares.remove(begin_ns).unwrap_or_default();
            for (index, state) in kept.states.iter_mut().enumerate() {
                state.end_minute(shares.get(index).copied().unwrap_or_default());
            }
            let verdicts: Vec<_> = kept.states.iter().map(State::verdict).collect();
            kept.metrics.minute(&minute.health, &verdicts);
            self.board.minute(&kept.plan.name, *begin_ns, minute, &kept.states, &verdicts);
            if !kept.tapped && minute.counts.due > 0 && minute.counts.refused == 0 {
                kept.failure = None;
            }
        }
        self.write(&kept.plan.name, minutes);
        for (begin_ns, minute) in minutes {
            self.changes.enter(place, *begin_ns, minute);
        }
    }

    /// Ends the minutes whose probes are all decided.
    fn pass(&mut self, now_ns: i64) {
        if let Some(stolen_ns) = self.stolen.look(now_ns) {
            self.metrics.meter.stolen_seconds.inc_by(stolen_ns as f64 / 1e9);
        }
        let mut kept = std::mem::take(&mut self.kept);
        let mut written = false;
        for (place, kept) in &mut kept {
            let until_ns = match kept.tapped {
                true => i64::MAX,
                false => now_ns - kept.plan.timeout_ns - MISSED_NS - STAMPS_NS,
            };
            // A minute without a probe is written when its time is over, too.
            while !kept.tapped && kept.next_ns + MINUTE_NS <= until_ns {
                kept.minutes.entry(kept.next_ns).or_default();
                kept.next_ns += MINUTE_NS;
            }
            let mut minutes = kept.take(until_ns);
            for (begin_ns, minute) in &mut minutes {
                minute.health.stolen_ns = self.stolen.of(*begin_ns);
            }
            written |= !minutes.is_empty();
            self.end_minutes(*place, kept, &minutes);
        }
        self.kept = kept;
        self.changed();
        if written {
            self.retain(now_ns);
        }
    }

    fn write(&mut self, target: &str, minutes: &[(i64, Minute)]) {
        for (begin_ns, minute) in minutes {
            // Numbers always have a form in JSON.
            let Ok(line) = minute.line(*begin_ns) else { continue };
            if self.unwritten(|book| book.store.append(target, *begin_ns, &line)) {
                self.metrics.meter.lines_written.inc();
                self.metrics.meter.last_minute.set(begin_ns / 1_000_000_000);
            } else {
                self.metrics.meter.lines_unwritten.inc();
            }
        }
    }

    /// Writes; on a full disk the oldest days make room. Returns whether it was written.
    fn unwritten(&mut self, mut write: impl FnMut(&mut Self) -> Result<(), StoreError>) -> bool {
        loop {
            let Err(error) = write(self) else { return true };
            let now_ns = self.now_ns;
            let removed =
                if error.is_full() { self.store.remove_oldest(now_ns).unwrap_or(0) } else { 0 };
            if removed == 0 {
                // Told to whoever reads the journal: the disk takes nothing.
                (self.warn)(&error.to_string());
                return false;
            }
            let told = format!("{error}: {removed} of the oldest files removed");
            (self.warn)(&told);
        }
    }

    fn sync(&mut self) {
        self.unwritten(|book| book.store.sync());
    }

    /// Removes old days at the start, and once an hour.
    fn retain(&mut self, now_ns: i64) {
        const HOUR_NS: i64 = 60 * MINUTE_NS;
        if now_ns < self.retained_ns.saturating_add(HOUR_NS) && now_ns >= self.retained_ns {
            return;
        }
        self.retained_ns = now_ns;
        let keep = self.keep;
        self.unwritten(|book| book.store.retain(keep, now_ns).map(|_| ()));
    }

    fn tell(&mut self, place: usize, event: &str, told: Option<String>) {
        let Some(name) = self.kept.get(&place).map(|kept| kept.plan.name.clone()) else { return };
        self.unwritten(|book| book.note(event, Some(&name), told.clone()));
    }

    fn note(
        &mut self,
        event: &str,
        target: Option<&str>,
        told: Option<String>,
    ) -> Result<(), StoreError> {
        let note = Note { at_ns: self.now_ns, event, target, told };
        let Ok(mut line) = serde_json::to_vec(&note) else { return Ok(()) };
        line.push(b'\n');
        self.store.note("events.jsonl", &line)
    }
}

impl Kept {
    /// Takes out the minutes that ended before this.
    fn take(&mut self, until_ns: i64) -> Vec<(i64, Minute)> {
        let over: Vec<i64> = self
            .minutes
            .keys()
            .copied()
            .filter(|begin_ns| begin_ns.saturating_add(MINUTE_NS) <= until_ns)
            .collect();
        over.into_iter().filter_map(|ns| Some((ns, self.minutes.remove(&ns)?))).collect()
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
