//! Accepted findings, with a reason and a last day.

use super::answer::CheckStatus;
use serde::Serialize;

/// A check whose answer is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiver {
    /// The check.
    pub id: String,
    /// Why it is accepted.
    pub reason: String,
    /// The last day on which it is, as `2026-11-21`: dates written so sort as they follow each other.
    pub until: String,
}

/// A waiver that waives nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waived {
    /// Its day is over: the check counts again.
    Expired(Waiver),
    /// The check does not fail.
    NotNeeded(Waiver, CheckStatus),
    /// The check was not asked.
    NotAsked(Waiver),
}

impl std::fmt::Display for Waived {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Expired(waiver) => write!(
                out,
                "waiver of {} expired on {} ({}): renew it or fix the finding",
                waiver.id, waiver.until, waiver.reason
            ),
            Self::NotNeeded(waiver, verdict) => write!(
                out,
                "waiver of {} is not needed, the check answers {}: remove it",
                waiver.id,
                verdict.word()
            ),
            Self::NotAsked(waiver) => {
                write!(out, "waiver of {}: this check was not run", waiver.id)
            }
        }
    }
}
