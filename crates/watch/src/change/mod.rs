//! Changes: each target's percentiles and loss beside a pinned baseline, and beside last week.
//!
//! 1. [`Reader`] is a thread that reads baselines from the minutes on disk, and what was written since the state was saved;
//! 2. [`Followed`] is the state of a target: each minute that is written is entered, and changes begin and end;
//! 3. [`Changes`] has those of all targets, and tells them: as events, metrics and the [`Board`].
//!
//! Minutes on disk are the truth, the saved state is a shortcut to it. After a crash the minutes since are entered again, with
//! the same result; a change that `events.jsonl` has is not told again.

mod asked;
mod days;
mod followed;
mod gauges;
mod measuring;
mod reader;
#[cfg(test)]
mod tests;

pub use asked::Asked;
pub(crate) use asked::Span;
pub(crate) use followed::{Change, Followed};
pub(crate) use gauges::Gauges;

use crate::minute::{MINUTE_NS, Minute};
use crate::values::Values;
use reader::{Answer, Question, Reader};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the saved state in the folder of a target.
pub(crate) const SAVED: &str = "change.json";

/// States are saved once in so many minutes, and when a change begins or ends.
const SAVE_EACH: i64 = 60;

/// Changes of all targets by name, for those who show them.
pub(crate) type Board = Arc<Mutex<BTreeMap<String, TargetChanges>>>;

/// Changes of a target.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct TargetChanges {
    /// Each reference, and whether it is there.
    pub(crate) against: Vec<Referred>,
    /// The last changes, the newest last.
    pub(crate) changes: Vec<Change>,
}

/// A reference of a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Referred {
    /// `baseline` or `last week`.
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) span: Span,
    /// Percentiles, and loss, that are judged; none without a baseline.
    pub(crate) judged: Vec<&'static str>,
}

/// A line of `events.jsonl`.
#[derive(Serialize)]
struct Event<'a> {
    event: &'a str,
    target: &'a str,
    #[serde(flatten)]
    change: &'a Change,
}

/// Things to write and to show since the last call.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Lines of `events.jsonl`, to be written first.
    pub(crate) events: Vec<Vec<u8>>,
    /// Files that are replaced, below the folder of the watch.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    /// Target, quantity, reference, and 1 for worse, −1 for better, 0 for neither; `None` if it is not judged.
    pub(crate) states: Vec<(String, &'static str, &'static str, Option<i64>)>,
}

struct Place {
    name: String,
    /// `None` while the reader has it.
    followed: Option<Box<Followed>>,
    /// The last minute that was written.
    written: i64,
    saved: i64,
}

/// Changes of all targets.
pub(crate) struct Changes {
    reader: Reader,
    asked: Asked,
    places: BTreeMap<usize, Place>,
    /// Events that were written before.
    known: BTreeSet<String>,
    board: Board,
    told: Told,
}

impl Changes {
    /// Begins, with what the folder of the watch has.
    pub(crate) fn new(folder: &Path, asked: Asked) -> Self {
        Self {
            reader: Reader::start(folder.to_owned()),
            asked,
            places: BTreeMap::new(),
            known: known(&fs::read_to_string(folder.join("events.jsonl")).unwrap_or_default()),
            board: Board::default(),
            told: Told::default(),
        }
    }

    /// Changes for those who show them.
    pub(crate) fn board(&self) -> Board {
        Arc::clone(&self.board)
    }

    /// Follows a target from now on.
    pub(crate) fn begin(&mut self, place: usize, name: &str, now_ns: i64) {
        let written = now_ns.div_euclid(MINUTE_NS) - 1;
        let of = Place { name: name.to_owned(), followed: None, written, saved: written };
        self.places.insert(place, of);
        self.ask(place, None);
    }

    /// Follows a target no longer. What it has is saved.
    pub(crate) fn end(&mut self, place: usize) {
        let Some(of) = self.places.remove(&place) else { return };
        if let Some(followed) = of.followed {
            self.told.files.extend(followed.saved(&of.name));
        }
        for (quantity, against) in followed::keys() {
            self.told.states.push((of.name.clone(), quantity, against, None));
        }
        lock(&self.board).remove(&of.name);
    }

    /// Takes another baseline or margin from now on.
    pub(crate) fn ask_for(&mut self, asked: Asked) {
        if asked == self.asked {
            return;
        }
        self.asked = asked;
        let places: Vec<usize> = self.places.keys().copied().collect();
        for place in places {
            let followed = self.places.get_mut(&place).and_then(|of| of.followed.take());
            // One that is being read comes back with the former baseline, and goes there again.
            if followed.is_some() {
                self.ask(place, followed);
            }
        }
    }

    /// Enters a minute that was written.
    pub(crate) fn enter(&mut self, place: usize, begin_ns: i64, minute: &Minute) {
        let Some(of) = self.places.get_mut(&place) else { return };
        let number = begin_ns.div_euclid(MINUTE_NS);
        of.written = number;
        let Some(mut followed) = of.followed.take() else { return };
        if followed.is_due(&self.asked, number) {
            self.ask(place, Some(followed));
            return;
        }
        let turned =
            followed.enter(number, &counted(minute), minute.counts.unanswered(), disturbed(minute));
        let is_old = number >= of.saved + SAVE_EACH;
        if turned || is_old {
            of.saved = number;
            self.told.files.extend(followed.saved(&of.name));
        }
        of.followed = Some(followed);
        if turned {
            self.measure(place);
            self.show(place);
        }
    }

    /// Takes the answers of the reader, and gives what is to be written.
    pub(crate) fn turn(&mut self) -> Told {
        while let Some(answer) = self.reader.answer() {
            match answer {
                Answer::Followed { place, followed, asked } => {
                    self.followed(place, followed, &asked)
                }
                Answer::Measured { place, change } => self.measured(place, &change),
            }
        }
        std::mem::take(&mut self.told)
    }

    fn ask(&mut self, place: usize, followed: Option<Box<Followed>>) {
        let Some(of) = self.places.get(&place) else { return };
        let (name, asked) = (of.name.clone(), self.asked.clone());
        self.reader.ask(Question::Follow { place, name, asked, until: of.written, followed });
    }

    fn followed(&mut self, place: usize, followed: Box<Followed>, asked: &Asked) {
        let Some(of) = self.places.get_mut(&place) else { return };
        // Minutes were written meanwhile.
        if followed.until < of.written || *asked != self.asked {
            self.ask(place, Some(followed));
            return;
        }
        self.told.files.extend(followed.saved(&of.name));
        of.followed = Some(followed);
        self.measure(place);
        self.show(place);
    }

    /// Asks for the sizes of changes that were not told yet.
    fn measure(&self, place: usize) {
        let Some(of) = self.places.get(&place) else { return };
        let Some(followed) = &of.followed else { return };
        let name = &of.name;
        for untold in followed.untold() {
            let of = Box::new(untold);
            self.reader.ask(Question::Measure { place, name: name.clone(), of });
        }
    }

    fn measured(&mut self, place: usize, change: &Change) {
        let Some(of) = self.places.get_mut(&place) else { return };
        let name = if change.ended_ns.is_some() { "change_end" } else { "change" };
        let event = Event { event: name, target: &of.name, change };
        if self.known.insert(key(name, &of.name, change))
            && let Ok(mut line) = serde_json::to_vec(&event)
        {
            line.push(b'\n');
            self.told.events.push(line);
        }
        if let Some(followed) = &mut of.followed {
            followed.tell(change);
            self.told.files.extend(followed.saved(&of.name));
        }
        self.show(place);
    }

    fn show(&mut self, place: usize) {
        let Some(of) = self.places.get(&place) else { return };
        let Some(followed) = &of.followed else { return };
        for (quantity, against, state) in followed.states() {
            self.told.states.push((of.name.clone(), quantity, against, state));
        }
        lock(&self.board).insert(of.name.clone(), followed.shown());
    }
}

fn lock(board: &Board) -> std::sync::MutexGuard<'_, BTreeMap<String, TargetChanges>> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Latencies of a minute, with how many probes have each.
fn counted(minute: &Minute) -> Vec<(i64, u64)> {
    match &minute.values {
        Values::Probes(probes) => probes.iter().filter_map(|(_, ns)| Some(((*ns)?, 1))).collect(),
        Values::Counted(counted) => counted.sorted(),
    }
}

/// Whether the meter itself had a fault that moves latencies.
fn disturbed(minute: &Minute) -> bool {
    minute.health.clock_stepped_ns != 0
}

/// Tells an event from others.
fn key(event: &str, target: &str, change: &Change) -> String {
    let Change { of, direction, against, at_ns, .. } = change;
    format!("{event} {target} {of} {direction:?} {against} {at_ns}")
}

/// Changes that events tell.
fn known(events: &str) -> BTreeSet<String> {
    #[derive(serde::Deserialize)]
    struct Known {
        event: String,
        target: String,
        #[serde(flatten)]
        change: Change,
    }
    let lines = events.lines().filter(|line| line.contains("\"event\":\"change"));
    lines
        .filter_map(|line| serde_json::from_str::<Known>(line).ok())
        .map(|known| key(&known.event, &known.target, &known.change))
        .collect()
}
