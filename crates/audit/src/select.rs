//! Which checks are asked: ids and families.

use super::check::Check;
use super::checks;
use thiserror::Error;

/// Checks to ask and to leave out, by id (`ISO-003`) or family (`ISO`).
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only these; all where it is empty.
    pub only: Vec<String>,
    /// Not these.
    pub skip: Vec<String>,
}

/// A name that is neither.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown check or family {0:?}")]
pub struct SelectionError(pub String);

impl Selection {
    /// The checks.
    ///
    /// # Errors
    ///
    /// A name is neither an id nor a family.
    pub fn checks(&self) -> Result<Vec<&'static Check>, SelectionError> {
        let named = |check: &Check, name: &String| {
            name.eq_ignore_ascii_case(check.id) || name.eq_ignore_ascii_case(check.family())
        };
        for name in self.only.iter().chain(&self.skip) {
            if !checks::all().any(|check| named(check, name)) {
                return Err(SelectionError(name.clone()));
            }
        }
        let wanted = |check: &&'static Check| {
            let only = self.only.is_empty() || self.only.iter().any(|name| named(check, name));
            only && !self.skip.iter().any(|name| named(check, name))
        };
        Ok(checks::all().filter(wanted).collect())
    }
}
