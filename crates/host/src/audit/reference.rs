//! Where checks are confirmed: documents of stated versions that were read, and what none of them says.

use serde::Serialize;
use std::collections::HashMap;
use std::sync::LazyLock;

const LINES: &str = include_str!("references.txt");

/// A place in a document of a stated version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// What it belongs to, with its version: `Linux 7.2.13`.
    pub version: &'static str,
    /// The document or source file.
    pub document: &'static str,
    /// Words that stand there.
    pub words: &'static str,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}, {}: \"{}\"", self.version, self.document, self.words)
    }
}

/// What documents say about a check.
#[derive(Debug, Default)]
pub(super) struct Documented {
    /// Where it is confirmed.
    pub(super) confirmed: Vec<Reference>,
    /// What could not be confirmed.
    pub(super) unconfirmed: Vec<&'static str>,
}

static ALL: LazyLock<HashMap<&'static str, Documented>> = LazyLock::new(read);

/// What documents say about the check of an id.
pub(super) fn of(id: &str) -> &'static Documented {
    static NOTHING: Documented = Documented { confirmed: Vec::new(), unconfirmed: Vec::new() };
    ALL.get(id).unwrap_or(&NOTHING)
}

/// The ids in the table: a test compares them with those of the checks.
#[cfg(test)]
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    ALL.keys().copied()
}

fn read() -> HashMap<&'static str, Documented> {
    let mut all: HashMap<&'static str, Documented> = HashMap::new();
    for line in LINES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts: Vec<&str> = line.splitn(4, " | ").collect();
        match parts.as_slice() {
            [id, "unconfirmed", what] => all.entry(id).or_default().unconfirmed.push(what),
            [id, version, document, words] => {
                let reference = Reference { version, document, words };
                all.entry(id).or_default().confirmed.push(reference);
            }
            // Seen by the test: no check has this id.
            _ => drop(all.entry(line).or_default()),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit;

    #[test]
    fn every_check_names_a_document_or_says_that_none_was_found() {
        for check in audit::all() {
            let found = of(check.id);
            assert!(!found.confirmed.is_empty() || !found.unconfirmed.is_empty(), "{}", check.id);
            for reference in &found.confirmed {
                assert!(reference.version.chars().any(|sign| sign.is_ascii_digit()), "{reference}");
            }
        }
        let strange: Vec<&str> = ids().filter(|id| audit::find(id).is_none()).collect();
        assert_eq!(strange, Vec::<&str>::new());
    }
}
