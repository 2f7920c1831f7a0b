//! Advice about a problem without a host: the checks that concern it, and the changes of `tune plan` that answer
//! them.

use serde::Serialize;
use tailtrim_host::Cpus;
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

/// Advice of these checks for these CPUs, in the checks' order. Ids that the audit does not know give nothing.
#[must_use]
pub fn advice<'a>(
    checks: impl IntoIterator<Item = &'a str>,
    cpus: impl IntoIterator<Item = u32>,
) -> Vec<Advice> {
    let cpus: Cpus = cpus.into_iter().collect();
    checks
        .into_iter()
        .filter_map(crate::find)
        .map(|check| Advice {
            check: check.id,
            title: in_general(check.title, &cpus),
            wanted: in_general(check.wanted, &cpus),
            changes: tune::answers(check.id)
                .map(|(id, title, when)| Change { id, title, when })
                .collect(),
        })
        .collect()
}

/// The text of a check for CPUs of a host of which nothing else is known.
fn in_general(text: &str, cpus: &Cpus) -> String {
    let known = [("CPUs {hk}", "the other CPUs"), ("{nic}", "the interface")];
    let text = cpus.fill(text, "{iso}");
    known.iter().fold(text, |text, (name, words)| text.replace(name, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_what_is_checked_and_what_would_be_changed() {
        let told = advice(["ISO-003", "NOT-001", "IRQ-008"], [3]);
        assert_eq!(told.iter().map(|one| one.check).collect::<Vec<_>>(), ["ISO-003", "IRQ-008"]);
        assert!(told[0].changes.iter().any(|change| change.when == When::NextBoot), "{told:?}");
        assert_eq!(told[0].wanted, "nohz_full has CPU 3");
    }

    #[test]
    fn advice_of_no_check_has_a_gap_in_its_text() {
        let all = crate::all().map(|check| check.id);
        for one in advice(all, [1]) {
            let told = format!("{} {}", one.title, one.wanted);
            assert!(!told.contains(['{', '}']) && !told.contains("CPUs 1"), "{told}");
        }
    }
}
