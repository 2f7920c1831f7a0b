//! Two plain captures on several cores, each of which matches a stretch of both.

use super::cores::Cores;
use super::cuts::{self, Cut, Place, Side};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::thread::Builder;
use tailtrim_tail::analysis::{
    Analysis, AnalysisError, Ongoing, Opened, Options, Sink, Stretch, Terms,
};
use tailtrim_tail::capture::Track;
use tailtrim_tail::matching::MEMORY;

/// Matching begins so many packets before a stretch: the matcher then holds what it would hold otherwise, as long as no
/// more packets are in flight.
const BEFORE: u64 = 2 * MEMORY as u64;

/// Packets of a stretch: those before it take 6 % of the time, its pairs 21 MB.
const PACKETS: u64 = 16 * BEFORE;

/// Two captures and where they are cut.
pub(super) struct Stretches {
    sides: [Side; 2],
    cuts: Vec<Cut>,
    terms: Terms,
}

/// Which stretch is whose turn: at most so many are matched ahead of those that were joined.
struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
    ahead: usize,
}

struct Turn {
    next: usize,
    joined: usize,
}

impl Stretches {
    /// Cuts two captures; `None` where that is not worth it, or not possible.
    pub(super) fn of(sides: [Side; 2], terms: Terms, trim_ns: i64) -> Option<Self> {
        let record_bytes = sides[0].record_bytes()?;
        let from_ns = terms.origin_ns().saturating_add(trim_ns.saturating_mul(2));
        let cuts = cuts::cuts(&sides, PACKETS * record_bytes, BEFORE * record_bytes, from_ns);
        let leads = |side: usize| {
            cuts.first().is_some_and(|cut| sides[side].leads_to(cut.at[side], cut.stamp_ns))
        };
        (leads(0) && leads(1)).then(|| Self { sides, cuts, terms })
    }

    /// Analyses the captures; otherwise as [`analyze`](super::analyze).
    pub(super) fn analyze<S: Sink>(
        &self,
        jobs: NonZeroUsize,
        cores: &Cores,
        options: &Options,
        sink: &mut S,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Analysis, AnalysisError> {
        let state = Mutex::new(Turn { next: 0, joined: 0 });
        let turns = Turns { state, changed: Condvar::new(), ahead: jobs.get() + 1 };
        let (hand_over, matched) = channel();
        thread::scope(|scope| {
            for _ in 0..jobs.get() {
                let (hand_over, turns) = (hand_over.clone(), &turns);
                let work = move || {
                    while let Some(index) = turns.take(self.cuts.len()) {
                        let _working = cores.work();
                        if hand_over.send((index, self.matched(index, options))).is_err() {
                            return;
                        }
                    }
                };
                let started = Builder::new().name("stretches".to_owned()).spawn_scoped(scope, work);
                // One that does not start leaves its work to the others.
                if started.is_err() {
                    break;
                }
            }
            drop(hand_over);
            let _ending = Ending(&turns);
            self.joined(&turns, cores, &matched, options, sink, &mut progress)
        })
    }

    /// A stretch on its own; `None` where its end is no cut, or it is damaged.
    fn matched(&self, index: usize, options: &Options) -> Option<Stretch> {
        let Cut { at, before, .. } = self.cuts[index];
        let sources = self.sources(at, self.end(index + 1), [0; 2], false);
        let before = self.sources(before, at, [0; 2], false);
        let stretch = Stretch::matched(before, sources, &self.terms, options).ok()?;
        let is_cut = self.cuts.get(index + 1).is_none_or(|next| stretch.last_ns() < next.stamp_ns);
        is_cut.then_some(stretch)
    }

    fn joined<S: Sink>(
        &self,
        turns: &Turns,
        cores: &Cores,
        matched: &Receiver<(usize, Option<Stretch>)>,
        options: &Options,
        sink: &mut S,
        progress: &mut impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Analysis, AnalysisError> {
        let [ingress, egress] = self.sources([Track::BEGIN; 2], self.end(0), [0; 2], false);
        let mut ongoing: Ongoing<'_> = Ongoing::new(ingress, egress, &self.terms, options);
        ongoing.run(self.next_ns(0), sink, &mut *progress)?;
        let mut waiting = BTreeMap::new();
        for index in 0..self.cuts.len() {
            let begin = self.cuts[index].at;
            if progress(begin[0], begin[1]).is_break() {
                return Err(AnalysisError::Stopped);
            }
            let stretch = loop {
                if let Some(stretch) = waiting.remove(&index) {
                    break stretch;
                }
                match cores.lend(|| matched.recv()) {
                    Ok((other, stretch)) => waiting.insert(other, stretch),
                    Err(_) => break None,
                };
            };
            turns.joined();
            let whole = stretch.is_some();
            if let Some(stretch) = stretch
                && ongoing
                    .join(stretch, self.next_ns(index + 1), sink)
                    .map_err(AnalysisError::Sink)?
            {
                continue;
            }
            // Where no stretch came of it, its end is no place to cut at, or a capture is damaged: from here on the
            // captures are read as one.
            let end = if whole { index + 1 } else { self.cuts.len() };
            let [ingress, egress] = self.sources(begin, self.end(end), ongoing.packets(), !whole);
            ongoing.go_on(ingress, egress);
            ongoing.run(self.next_ns(end), sink, &mut *progress)?;
            if !whole {
                break;
            }
        }
        Ok(ongoing.finish())
    }

    /// Where the stretch before that cut ends.
    fn end(&self, cut: usize) -> Place {
        let sizes = [0, 1].map(|side| self.sides[side].plain.size);
        self.cuts.get(cut).map_or(sizes, |cut| cut.at)
    }

    /// The time of a cut behind which the egress capture goes on.
    fn next_ns(&self, cut: usize) -> Option<i64> {
        let goes_on = |cut: &&Cut| cut.at[1] < self.sides[1].plain.size;
        self.cuts.get(cut).filter(goes_on).map(|cut| cut.stamp_ns)
    }

    /// What lies between two places, behind so many records; damage is left out only with `salvage`.
    fn sources(&self, from: Place, to: Place, records: [u64; 2], salvage: bool) -> [Opened; 2] {
        [0, 1].map(|side| {
            let Side { name, salvage: salvages, plain, track, .. } = &self.sides[side];
            let input = plain.input(from[side]..to[side]);
            let place = (from[side], records[side]);
            Box::new(track.capture(name.as_str(), input, place, salvage && *salvages)) as Opened
        })
    }
}

/// Ends the turns when this is dropped, however that comes.
struct Ending<'a>(&'a Turns);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Turns {
    /// The next of so many stretches, when it may be begun; `None` when all are.
    fn take(&self, count: usize) -> Option<usize> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let early = |turn: &mut Turn| turn.next < count && turn.next > turn.joined + self.ahead;
        let mut turn =
            self.changed.wait_while(state, early).unwrap_or_else(PoisonError::into_inner);
        turn.next = turn.next.saturating_add(1);
        (turn.next <= count).then(|| turn.next - 1)
    }

    fn joined(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).joined += 1;
        self.changed.notify_all();
    }

    /// No stretch is begun any more.
    fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).next = usize::MAX;
        self.changed.notify_all();
    }
}
