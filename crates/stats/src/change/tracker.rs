//! State of a target beside one reference: evidence of changes, and changes that go on.

use super::detector::{ALARM, END};
use super::{Detector, Direction, Limit, Line, Reference, Tally};
use serde::{Deserialize, Serialize};

/// Changes of all lines beside a reference, minute by minute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tracker {
    lines: Vec<State>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct State {
    /// Evidence that it has begun, or once it has, that it has ended.
    evidence: Detector,
    /// The minute since which it has changed.
    since: Option<i64>,
}

/// A change that begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Number of the line.
    pub line: usize,
    /// The minute from which on the line has changed, or no longer.
    pub since: i64,
    /// Whether it begins.
    pub begins: bool,
}

impl Default for Tracker {
    fn default() -> Self {
        Self { lines: vec![State::default(); Line::COUNT] }
    }
}

impl Tracker {
    /// Enters a minute. The turns that it brings are told once.
    pub fn enter(&mut self, reference: &Reference, minute: i64, tally: &Tally) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (line, state) in self.lines.iter_mut().enumerate() {
            let (Some(limit), Some(seen)) =
                (reference.limit_of(line), reference.see(line, minute, tally))
            else {
                continue;
            };
            let (limit, needed) = match state.since {
                None => (limit, ALARM),
                Some(_) => (&back(limit), END),
            };
            state.evidence.enter(minute, seen.ratio, seen.weight, limit);
            if state.evidence.evidence() >= needed {
                let (since, begins) = (state.evidence.since(), state.since.is_none());
                let since_of = begins.then_some(since);
                *state = State { evidence: Detector::default(), since: since_of };
                turns.push(Turn { line, since, begins });
            }
        }
        turns
    }

    /// The minute since which a line has changed.
    #[must_use]
    pub fn changed_since(&self, line: usize) -> Option<i64> {
        self.lines.get(line)?.since
    }

    /// The evidence of a line that does not change, beside that of an alarm, as powers of ten of both: 0 to 1.
    #[must_use]
    pub fn nearness(&self, line: usize) -> f64 {
        let evidence = self.lines.get(line).filter(|state| state.since.is_none());
        let evidence = evidence.map_or(0.0, |state| state.evidence.evidence());
        (evidence.max(1.0).ln() / ALARM.ln()).clamp(0.0, 1.0)
    }
}

/// The limit of the way back: at the same edge, to the other side.
fn back(limit: &Limit) -> Limit {
    let direction = match limit.direction {
        Direction::Worse => Direction::Better,
        Direction::Better => Direction::Worse,
    };
    Limit { direction, ..limit.clone() }
}
