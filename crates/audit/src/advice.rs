//! Advice about a problem without a host: the checks that concern it, and the changes of `tune plan` that answer
//! them.

use serde::Serialize;
use tailtrim_tune::{self as tune, When};

/// A check that concerns a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Its id.
    pub check: &'static str,
    /// Subject of the check.
    pub title: String,
    /// Wanted state.
    pub wanted: String,
    /// Changes of `tune plan` that answer it, of all profiles.
    pub changes: Vec<Change>,
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its id.
    pub id: &'static str,
    /// Effect in a few words.
    pub title: &'static str,
    /// When it takes effect.
    pub when: When,
}

/// Advice of these checks, in their order. Ids that the audit does not know give nothing.
#[must_use]
pub fn advice<'a>(checks: impl IntoIterator<Item = &'a str>) -> Vec<Advice> {
    checks
        .into_iter()
        .filter_map(crate::find)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_what_is_checked_and_what_would_be_changed() {
        let told = advice(["ISO-003", "NOT-001", "IRQ-008"]);
        assert_eq!(told.iter().map(|one| one.check).collect::<Vec<_>>(), ["ISO-003", "IRQ-008"]);
        assert!(told[0].changes.iter().any(|change| change.when == When::NextBoot), "{told:?}");
        // Without a host its CPUs are not known: they have words.
        assert!(told.iter().all(|one| !one.wanted.contains('{')), "{told:?}");
    }
}
