//! Answers of checks, with their evidence.

use serde::Serialize;
use tailtrim_host::Unread;

/// The answer of a check, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// Not as wanted, and it costs latency.
    Fail,
    /// Not as wanted, and whether it costs latency depends.
    Warn,
    /// Could not be found out; the finding says why.
    Unknown,
    /// As wanted.
    Ok,
    /// The question does not arise on this host or for this intent.
    #[serde(rename = "n/a")]
    NotApplicable,
}

impl CheckStatus {
    /// All of them, the worst first.
    pub const ALL: [Self; 5] =
        [Self::Fail, Self::Warn, Self::Unknown, Self::Ok, Self::NotApplicable];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Unknown => "unknown",
            Self::Ok => "ok",
            Self::NotApplicable => "n/a",
        }
    }
}

/// Strength of the evidence. Only an observation is proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceLevel {
    /// A boot line or a configuration asks for it.
    Asked,
    /// The kernel says that it is set.
    Set,
    /// Counters moved, or did not, while they were watched.
    Seen,
}

impl EvidenceLevel {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Set => "set",
            Self::Seen => "seen",
        }
    }
}

/// One file and what it said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The file.
    pub path: String,
    /// Its content, shortened where it is long.
    pub value: String,
}

impl Evidence {
    /// Longest value that is kept; what is cut off is marked.
    const LONGEST: usize = 120;

    /// Evidence with its value on one line.
    #[must_use]
    pub fn new(path: &str, value: &str) -> Self {
        let mut line = value.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > Self::LONGEST {
            line = line.chars().take(Self::LONGEST - 1).chain(['…']).collect();
        }
        Self { path: path.to_owned(), value: line }
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The answer.
    pub verdict: CheckStatus,
    /// Strength of the evidence; `None` without any.
    pub level: Option<EvidenceLevel>,
    /// The state that was found, or the reason why it is not known, in one line.
    pub said: String,
    /// Files and what they said.
    pub evidence: Vec<Evidence>,
}

/// Result of an evaluator: a file that it could not read makes the answer unknown.
pub type Answer = Result<Finding, Unread>;

impl Finding {
    pub(crate) fn new(verdict: CheckStatus, level: EvidenceLevel, said: impl Into<String>) -> Self {
        Self { verdict, level: Some(level), said: said.into(), evidence: Vec::new() }
    }

    pub(crate) fn unknown(said: impl Into<String>) -> Self {
        let said = said.into();
        Self { verdict: CheckStatus::Unknown, level: None, said, evidence: Vec::new() }
    }

    pub(crate) fn not_applicable(said: impl Into<String>) -> Self {
        let said = said.into();
        Self { verdict: CheckStatus::NotApplicable, level: None, said, evidence: Vec::new() }
    }

    /// Evidence that counts more than the files that were read on the way.
    pub(crate) fn because(mut self, path: &str, value: &str) -> Self {
        self.evidence.push(Evidence::new(path, value));
        self
    }
}

/// Good or else.
pub(crate) fn judge(
    level: EvidenceLevel,
    good: bool,
    otherwise: CheckStatus,
    said: impl Into<String>,
) -> Answer {
    Ok(Finding::new(if good { CheckStatus::Ok } else { otherwise }, level, said))
}

/// As wanted.
pub(crate) fn ok(level: EvidenceLevel, said: impl Into<String>) -> Answer {
    Ok(Finding::new(CheckStatus::Ok, level, said))
}

/// Good if nothing is in a list; otherwise its first entries are named.
pub(crate) fn none_of<T: AsRef<str>>(
    level: EvidenceLevel,
    list: &[T],
    otherwise: CheckStatus,
    without: impl Into<String>,
) -> Answer {
    if list.is_empty() { ok(level, without) } else { judge(level, false, otherwise, few(list)) }
}

/// A list for people: the first few, and how many more.
pub(crate) fn few<T: AsRef<str>>(all: &[T]) -> String {
    const SHOWN: usize = 4;
    let mut text = all.iter().take(SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        text += &format!(" and {} more", all.len() - SHOWN);
    }
    text
}

/// The question does not arise.
pub(crate) fn not_applicable(said: impl Into<String>) -> Answer {
    Ok(Finding::not_applicable(said))
}

/// It cannot be found out.
pub(crate) fn unknown(said: impl Into<String>) -> Answer {
    Ok(Finding::unknown(said))
}
