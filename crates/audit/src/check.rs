//! A check: subject, reason, and how it is set and undone. Data, with one small function.

use super::answer::Answer;
use super::facts::Facts;
use serde::{Deserialize, Serialize};
use tailtrim_host::texts::{Text, list, read, text};
use tailtrim_host::{KernelVersion, Workload};

/// Influence of a check's subject on the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// A place in a document of a stated version that confirms a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Project and version: `Linux 7.2.13`.
    #[serde(deserialize_with = "text")]
    pub version: Text,
    /// The document or source file.
    #[serde(deserialize_with = "text")]
    pub document: Text,
    /// Words that stand there.
    #[serde(deserialize_with = "text")]
    pub words: Text,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}, {}: \"{}\"", self.version, self.document, self.words)
    }
}

/// Condition under which a check applies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// CPUs are to be isolated.
    Isolated,
    /// An interface is named or was found.
    Nic,
    /// The work is of one of these kinds.
    Work(Vec<Workload>),
    /// This host is not a guest.
    Metal,
    /// This host is a guest.
    Guest,
}

/// One question to a host: its texts are data (`checks/*.json`), its answer is a function.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Family and number: `ISO-003`.
    #[serde(deserialize_with = "text")]
    pub id: Text,
    /// Subject.
    #[serde(deserialize_with = "text")]
    pub title: Text,
    /// Influence on the tail.
    pub importance: Importance,
    /// Why it costs latency.
    #[serde(deserialize_with = "text")]
    pub why: Text,
    /// Where the answer is read. Paths below `/tailtrim/` stand for what is not a file on a host: see
    /// [`tailtrim_host::paths`].
    #[serde(deserialize_with = "list")]
    pub read_from: &'static [Text],
    /// Wanted state.
    #[serde(deserialize_with = "text")]
    pub wanted: Text,
    /// Cost; empty for nothing worth a word.
    #[serde(default, deserialize_with = "text")]
    pub cost: Text,
    /// Command that sets it on the running host; empty where that is impossible. `{iso}`, `{hk}`, `{hkmask}` and
    /// `{nic}` stand for what is intended.
    #[serde(default, deserialize_with = "text")]
    pub set_now: Text,
    /// Word to add to the boot line, or setting of the firmware; empty where there is none.
    #[serde(default, deserialize_with = "text")]
    pub set_boot: Text,
    /// Way to undo it; empty where there is nothing to undo.
    #[serde(default, deserialize_with = "text")]
    pub undo: Text,
    /// Source of the recommendation; [`Check::references`] has the documents that confirm it.
    #[serde(deserialize_with = "text")]
    pub source: Text,
    /// The kernel version that brought it; earlier kernels answer "n/a".
    #[serde(default)]
    pub since: Option<KernelVersion>,
    /// When the question arises.
    #[serde(default)]
    pub needs: Vec<Need>,
    #[serde(default)]
    pub(super) confirmed: Vec<Reference>,
    #[serde(default, deserialize_with = "list")]
    pub(super) unconfirmed: &'static [Text],
    /// Find the answer.
    #[serde(skip, default = "no_method")]
    pub evaluate: Evaluate,
}

/// Function that finds the answer.
pub type Evaluate = fn(&Facts<'_>) -> Answer;

fn no_method() -> Evaluate {
    |_| super::answer::unknown("no method is known")
}

/// The checks of one topic: their texts, and by id the functions that answer them.
pub(crate) struct Topic {
    pub(crate) texts: &'static str,
    pub(crate) evaluators: &'static [(&'static str, Evaluate)],
}

impl Topic {
    /// Read the texts and give each check its function.
    pub(crate) fn checks(&self) -> Vec<Check> {
        let mut checks: Vec<Check> = read(self.texts);
        for check in &mut checks {
            if let Some((_, evaluate)) = self.evaluators.iter().find(|(id, _)| *id == check.id) {
                check.evaluate = *evaluate;
            }
        }
        checks
    }
}

impl Check {
    /// Documents of stated versions that confirm it.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        &self.confirmed
    }

    /// Statements of the check that none of the documents read confirms.
    #[must_use]
    pub fn unconfirmed(&self) -> &'static [Text] {
        self.unconfirmed
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
