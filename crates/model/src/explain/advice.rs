//! What can be done about the causes: the checks of the audit that concern them, and what `tune plan` would change.

use super::verdict::Cause;
use crate::audit;
use crate::tune::{self, When};
use serde::Serialize;
use std::collections::BTreeSet;

/// A check that concerns a cause of late packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Its id.
    pub check: &'static str,
    /// What it looks at.
    pub title: String,
    /// What is good.
    pub wanted: String,
    /// What `tune plan` would change for it, in one profile or another.
    pub changes: Vec<Change>,
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its id.
    pub id: &'static str,
    /// What it does.
    pub title: &'static str,
    /// When it takes effect.
    pub when: When,
}

/// The checks of the causes that made packets late, each once, in the order of the causes.
#[must_use]
pub fn advice(causes: &[Cause]) -> Vec<Advice> {
    let mut told = BTreeSet::new();
    causes
        .iter()
        .filter(|cause| cause.late_packets > 0)
        .filter_map(|cause| cause.signature.as_ref())
        .flat_map(|signature| signature.checks)
        .filter(|id| told.insert(**id))
        .filter_map(|id| audit::find(id))
        .map(|check| Advice {
            check: check.id,
            title: in_general(check.title),
            wanted: in_general(check.wanted),
            changes: tune::answers(check.id)
                .map(|(id, title, when)| Change { id, title, when })
                .collect(),
        })
        .collect()
}

/// The text of a check without a host.
fn in_general(text: &str) -> String {
    let known = [
        ("{iso}", "the isolated CPUs"),
        ("{hk}", "the other CPUs"),
        ("{hkmask}", "the other CPUs"),
        ("{nic}", "the interface"),
    ];
    known.iter().fold(text.to_owned(), |text, (name, words)| text.replace(name, words))
}
