//! Targets as they are now.

use crate::book::WRITTEN_NS;
use crate::change::TargetChanges;
use crate::minute::Minute;
use crate::plan::TargetPlan;
use crate::state::State;
use crate::taps::TapPlan;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tailtrim_compare::{Promise, Promised};

/// Rows by the name of their target.
#[derive(Default)]
pub(crate) struct Board(Mutex<BTreeMap<String, Row>>);

/// A target.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    #[serde(flatten)]
    pub(super) about: About,
    /// Whether all objectives are met; `None` without one.
    verdict: Option<Promise>,
    /// Since when it is that; `None`: since the watch has this target.
    since_s: Option<i64>,
    objectives: Vec<Judged>,
    minute: Option<LastMinute>,
    /// Changes beside its references; `None`: it is not compared yet.
    pub(super) changes: Option<TargetChanges>,
}

/// Description of a target.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct About {
    pub(crate) address: String,
    /// Protocol of its probes, or `tap`.
    pub(crate) protocol: &'static str,
    /// Mean time between two probes; `None`: it is not probed.
    pub(crate) interval_ns: Option<u64>,
    pub(crate) timeout_ns: i64,
    /// A minute is on disk so long after its end.
    pub(crate) written_ns: i64,
}

impl About {
    pub(crate) fn of(plan: &TargetPlan) -> Self {
        Self {
            address: plan.address.clone(),
            protocol: plan.protocol.name(),
            interval_ns: Some(plan.interval_ns),
            timeout_ns: plan.timeout_ns,
            written_ns: plan.timeout_ns + WRITTEN_NS,
        }
    }

    pub(crate) fn of_tap(plan: &TapPlan) -> Self {
        let [ingress, egress] = &plan.ports;
        let timeout_ns = plan.subject().timeout_ns;
        Self {
            address: format!("{ingress} \u{2192} {egress}"),
            protocol: "tap",
            interval_ns: None,
            timeout_ns,
            // A packet is lost when two windows have passed without it, and told in another one at most.
            written_ns: 3 * timeout_ns + 3_000_000_000,
        }
    }
}

/// An objective, and how the last hour was.
#[derive(Debug, Clone, Serialize)]
struct Judged {
    objective: String,
    deadline_ns: Option<i64>,
    limit: f64,
    bad: u64,
    packets: u64,
    #[serde(flatten)]
    promised: Promised,
}

/// The last minute whose probes are all decided, also if the disk has no room for it.
#[derive(Debug, Clone, Copy, Serialize)]
struct LastMinute {
    begin_s: i64,
    due: u64,
    answered: u64,
    unanswered: u64,
}

impl Board {
    /// Begins a target.
    pub(crate) fn begin(&self, name: &str, about: About, states: &[State]) {
        let objectives = judged(states, &states.iter().map(State::verdict).collect::<Vec<_>>());
        let row = Row {
            name: name.to_owned(),
            about,
            verdict: all(&objectives),
            since_s: None,
            objectives,
            minute: None,
            changes: None,
        };
        self.rows().insert(name.to_owned(), row);
    }

    /// Removes a target.
    pub(crate) fn end(&self, target: &str) {
        self.rows().remove(target);
    }

    /// Ends a minute of a target, with a verdict for each state.
    pub(crate) fn minute(
        &self,
        target: &str,
        begin_ns: i64,
        minute: &Minute,
        states: &[State],
        verdicts: &[Promised],
    ) {
        let mut rows = self.rows();
        let Some(row) = rows.get_mut(target) else { return };
        let begin_s = begin_ns.div_euclid(1_000_000_000);
        row.objectives = judged(states, verdicts);
        let verdict = all(&row.objectives);
        if verdict != row.verdict {
            (row.verdict, row.since_s) = (verdict, Some(begin_s + 60));
        }
        row.minute = Some(LastMinute {
            begin_s,
            due: minute.counts.due,
            answered: minute.counts.answered,
            unanswered: minute.counts.unanswered(),
        });
    }

    /// The row of a target.
    pub(super) fn row(&self, target: &str) -> Option<Row> {
        self.rows().get(target).cloned()
    }

    /// All rows, by name.
    pub(super) fn all(&self) -> Vec<Row> {
        self.rows().values().cloned().collect()
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, Row>> {
        // Rows are replaced whole, so that a panic elsewhere leaves none that is wrong.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn judged(states: &[State], verdicts: &[Promised]) -> Vec<Judged> {
    let judge = |(state, promised): (&State, &Promised)| {
        let hour = state.hour();
        Judged {
            objective: state.objective.to_string(),
            deadline_ns: state.objective.deadline_ns(),
            limit: state.objective.limit(),
            bad: hour.bad,
            packets: hour.packets,
            promised: *promised,
        }
    };
    states.iter().zip(verdicts).map(judge).collect()
}

/// Met if all are, not met if one is not.
fn all(objectives: &[Judged]) -> Option<Promise> {
    let has = |promise| objectives.iter().any(|one| one.promised.promise == promise);
    [Promise::NotMet, Promise::NotDecided, Promise::Met].into_iter().find(|promise| has(*promise))
}
