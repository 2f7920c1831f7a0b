//! State of a target beside its references.

use super::asked::{Asked, Span};
use super::measuring::Size;
use super::{Referred, SAVED, TargetChanges};
use crate::minute::MINUTE_NS;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use tailtrim_stats::Probability;
use tailtrim_stats::change::{Direction, Line, Quantity, Reference, Tracker};

/// Changes that are remembered.
const REMEMBERED: usize = 20;

/// Minutes of a week.
const WEEK: i64 = 7 * 1_440;

/// Name and version of the saved state.
const SCHEMA: &str = "tailtrim.watch.change/1";

pub(super) const BASELINE: &str = "baseline";
pub(super) const LAST_WEEK: &str = "last week";

/// A change of a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// `p50`, `p99`, `p99.9` or `loss`.
    pub(crate) of: String,
    pub(crate) direction: Direction,
    /// `baseline` or `last week`.
    pub(crate) against: String,
    /// Begin of the minute from which on it is most likely.
    pub(crate) since_ns: i64,
    /// End of the minute that showed that it began, or ended.
    pub(crate) at_ns: i64,
    /// Begin of the minute from which on it is most likely over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_ns: Option<i64>,
    /// By how much, as far as it was measured.
    #[serde(flatten)]
    pub(crate) size: Option<Size>,
}

/// A remembered change.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Noted {
    change: Change,
    line: usize,
    /// Whether its begin, or end, was told.
    told: bool,
}

/// A reference, and the state beside it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Beside {
    against: String,
    span: Span,
    margin: f64,
    /// `None`: the minutes of the span are too few.
    reference: Option<Reference>,
    tracker: Tracker,
}

/// State of a target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Followed {
    schema: String,
    /// The last minute that was entered.
    pub(crate) until: i64,
    beside: Vec<Beside>,
    noted: VecDeque<Noted>,
}

/// Quantities and references.
pub(super) fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of = ["p50", "p99", "p99.9", "loss"];
    of.into_iter().flat_map(|of| [(of, BASELINE), (of, LAST_WEEK)])
}

pub(super) fn name(of: Quantity) -> &'static str {
    match of {
        Quantity::Percentile(p) if p == Probability::P50 => "p50",
        Quantity::Percentile(p) if p == Probability::P99 => "p99",
        Quantity::Percentile(_) => "p99.9",
        Quantity::Loss => "loss",
    }
}

/// The spans that a minute is judged by. Last week is the one that ended with the last Sunday (UTC).
fn spans(asked: &Asked, minute: i64) -> Vec<(&'static str, Span)> {
    // 1970 began with a Thursday.
    let monday = (minute + 3 * 1_440).div_euclid(WEEK) * WEEK - 3 * 1_440;
    let week = Span { from_ns: (monday - WEEK) * MINUTE_NS, until_ns: monday * MINUTE_NS };
    let pinned = asked.baseline.filter(|span| span.until_ns <= minute * MINUTE_NS);
    pinned.map(|span| (BASELINE, span)).into_iter().chain([(LAST_WEEK, week)]).collect()
}

impl Followed {
    /// Without a state: what the last day had will be entered.
    fn fresh(until: i64) -> Self {
        let schema = SCHEMA.to_owned();
        Self { schema, until: until - 1_440, beside: Vec::new(), noted: VecDeque::new() }
    }

    /// The state that was saved for a target, or a fresh one.
    pub(super) fn load(folder: &Path, until: i64) -> Self {
        let text = std::fs::read(folder.join(SAVED)).unwrap_or_default();
        let saved = serde_json::from_slice::<Self>(&text).ok();
        // A clock that was set back, or a state of another version, begins anew.
        let fits = saved.filter(|saved| saved.schema == SCHEMA && saved.until <= until);
        fits.unwrap_or_else(|| Self::fresh(until))
    }

    /// The file of the state.
    pub(super) fn saved(&self, target: &str) -> Option<(PathBuf, Vec<u8>)> {
        Some((Path::new(target).join(SAVED), serde_json::to_vec(self).ok()?))
    }

    /// Whether other references are asked for than it has.
    pub(super) fn is_due(&self, asked: &Asked, minute: i64) -> bool {
        let has = self.beside.iter().map(|one| (one.against.as_str(), one.span, one.margin));
        let wants = spans(asked, minute).into_iter();
        !has.eq(wants.map(|(against, span)| (against, span, asked.margin)))
    }

    /// Takes the references that are asked for; `read` reads those that it does not have. Changes beside others end.
    pub(super) fn refer(
        &mut self,
        asked: &Asked,
        minute: i64,
        mut read: impl FnMut(Span) -> Option<Reference>,
    ) {
        let mut had = std::mem::take(&mut self.beside);
        for (against, span) in spans(asked, minute) {
            let same = |one: &Beside| {
                one.against == against && one.span == span && one.margin == asked.margin
            };
            let beside = match had.iter().position(same) {
                Some(place) => had.swap_remove(place),
                None => Beside {
                    against: against.to_owned(),
                    span,
                    margin: asked.margin,
                    reference: read(span),
                    tracker: Tracker::default(),
                },
            };
            self.beside.push(beside);
        }
        for gone in had {
            for noted in &mut self.noted {
                if noted.change.against == gone.against && noted.change.ended_ns.is_none() {
                    let at_ns = minute * MINUTE_NS;
                    (noted.change.ended_ns, noted.change.at_ns) = (Some(at_ns), at_ns);
                    noted.told = false;
                }
            }
        }
    }

    /// Enters a minute. Returns whether a change began or ended.
    pub(super) fn enter(
        &mut self,
        minute: i64,
        latencies_ns: &[(i64, u64)],
        lost: u64,
        disturbed: bool,
    ) -> bool {
        self.until = self.until.max(minute);
        if disturbed {
            return false;
        }
        let mut turned = false;
        for one in &mut self.beside {
            let Some(reference) = &one.reference else { continue };
            let tally = reference.edges().tally(minute, latencies_ns.iter().copied(), lost);
            for turn in one.tracker.enter(reference, minute, &tally) {
                turned = true;
                let (since_ns, at_ns) = (turn.since * MINUTE_NS, (minute + 1) * MINUTE_NS);
                let line = turn.line;
                if turn.begins {
                    let Some(Line { of, direction }) = Line::all().nth(line) else { continue };
                    let change = Change {
                        of: name(of).to_owned(),
                        direction,
                        against: one.against.clone(),
                        since_ns,
                        at_ns,
                        ended_ns: None,
                        size: None,
                    };
                    self.noted.push_back(Noted { change, line, told: false });
                } else if let Some(noted) = self
                    .noted
                    .iter_mut()
                    .rev()
                    .find(|noted| noted.line == line && noted.change.against == one.against)
                {
                    (noted.change.ended_ns, noted.change.at_ns) = (Some(since_ns), at_ns);
                    noted.told = false;
                }
            }
        }
        while self.noted.len() > REMEMBERED {
            self.noted.pop_front();
        }
        turned
    }

    /// Changes that were not told, each with its reference, if it is still there.
    pub(super) fn untold(&self) -> Vec<(Change, Option<Reference>)> {
        let untold = self.noted.iter().filter(|noted| !noted.told);
        let reference = |noted: &Noted| {
            let beside = self.beside.iter().find(|one| one.against == noted.change.against);
            beside.and_then(|one| one.reference.clone())
        };
        untold.map(|noted| (noted.change.clone(), reference(noted))).collect()
    }

    /// Notes that a change was told, with its size.
    pub(super) fn tell(&mut self, told: &Change) {
        for noted in &mut self.noted {
            let same = Change { size: None, ..noted.change.clone() };
            if same == (Change { size: None, ..told.clone() }) {
                if told.size.is_some() {
                    noted.change.size.clone_from(&told.size);
                }
                noted.told = true;
            }
        }
    }

    /// Quantity, reference, and 1 for worse, −1 for better, 0 for neither; `None` if it is not judged.
    pub(super) fn states(&self) -> Vec<(&'static str, &'static str, Option<i64>)> {
        let state = |of: &str, against: &str| {
            let one = self.beside.iter().find(|one| one.against == against)?;
            let reference = one.reference.as_ref()?;
            let lines = Line::all().enumerate().filter(|(_, line)| name(line.of) == of);
            let judged: Vec<(usize, Line)> =
                lines.filter(|(line, _)| reference.tells(*line)).collect();
            let changed =
                judged.iter().find(|(line, _)| one.tracker.changed_since(*line).is_some());
            let state = match changed {
                Some((_, Line { direction: Direction::Worse, .. })) => 1,
                Some(_) => -1,
                None => 0,
            };
            (!judged.is_empty()).then_some(state)
        };
        keys().map(|(of, against)| (of, against, state(of, against))).collect()
    }

    /// The changes as they are shown.
    pub(super) fn shown(&self) -> TargetChanges {
        let referred = |one: &Beside| {
            let name = if one.against == BASELINE { BASELINE } else { LAST_WEEK };
            let states = self.states().into_iter();
            let judged = states.filter(|(_, against, state)| *against == name && state.is_some());
            let judged = judged.map(|(of, ..)| of);
            Referred { name, span: one.span, judged: judged.collect() }
        };
        TargetChanges {
            against: self.beside.iter().map(referred).collect(),
            changes: self.noted.iter().map(|noted| noted.change.clone()).collect(),
        }
    }
}
