//! A check: what is asked, why, and how it is set and undone. Data, with one small function.

use super::answer::Answer;
use super::facts::Facts;
use super::reference::{self, Reference};
use crate::{KernelVersion, Workload};
use serde::Serialize;

/// How much the answer matters for the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Importance {
    /// Alone it breaks a promise in the tens of microseconds.
    High,
    /// Seen in the tail once what is high is done.
    Medium,
    /// Small, rare, or worth knowing when two hosts are compared.
    Low,
}

impl Importance {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

/// What must be so for the question to arise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// CPUs are to be isolated.
    Isolated,
    /// An interface is named or was found.
    Nic,
    /// The work is of one of these kinds.
    Work(&'static [Workload]),
    /// This host is not a guest.
    Metal,
    /// This host is a guest.
    Guest,
}

/// One question to a host.
pub struct Check {
    /// Family and number: `ISO-003`.
    pub id: &'static str,
    /// What it looks at.
    pub title: &'static str,
    /// How much it matters.
    pub importance: Importance,
    /// Why it costs latency.
    pub why: &'static str,
    /// Where the answer is read. Paths below `/tailtrim/` stand for what is not a file on a host: see
    /// [`super::paths`].
    pub read_from: &'static [&'static str],
    /// What is good.
    pub wanted: &'static str,
    /// What one pays for it; empty for nothing worth a word.
    pub cost: &'static str,
    /// How to set it on the running host; empty where that is impossible. `{iso}`, `{hk}`, `{hkmask}` and
    /// `{nic}` stand for what is intended.
    pub set_now: &'static str,
    /// What to add to the boot line, or to change in the firmware; empty where there is nothing.
    pub set_boot: &'static str,
    /// How to undo it.
    pub undo: &'static str,
    /// Who recommends it; [`Check::references`] says where it is confirmed.
    pub source: &'static str,
    /// The kernel version that brought it; earlier kernels answer "n/a".
    pub since: Option<KernelVersion>,
    /// When the question arises.
    pub needs: &'static [Need],
    /// Find the answer.
    pub evaluate: fn(&Facts<'_>) -> Answer,
}

impl Check {
    /// A check about which nothing is said yet: families fill in what differs.
    pub(crate) const BLANK: Self = Self {
        id: "",
        title: "",
        importance: Importance::Medium,
        why: "",
        read_from: &[],
        wanted: "",
        cost: "",
        set_now: "",
        set_boot: "",
        undo: "",
        source: "",
        since: None,
        needs: &[],
        evaluate: |_| super::answer::unknown("no method is known"),
    };

    /// Where it is confirmed: documents of stated versions.
    #[must_use]
    pub fn references(&self) -> &'static [Reference] {
        &reference::of(self.id).confirmed
    }

    /// What of it no document says that was read.
    #[must_use]
    pub fn unconfirmed(&self) -> &'static [&'static str] {
        &reference::of(self.id).unconfirmed
    }

    /// The family: `ISO` of `ISO-003`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Check").field("id", &self.id).finish_non_exhaustive()
    }
}
