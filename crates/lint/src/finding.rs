//! Findings about words, and the kernel and machine for which a line is read.

use serde::{Deserialize, Serialize};
use tailtrim_host::KernelVersion;
use tailtrim_host::{Cpus, Word};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Works as it says, and there is something to know about it.
    Note,
    /// Does something, but perhaps not what was meant.
    Warning,
    /// The setting that the word asks for does not take effect.
    Error,
}

/// Kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No parameter of this name is known, nor one of nearly this name.
    UnknownWord,
    /// A parameter of nearly this name is known.
    NearMiss,
    /// The kernel takes the word for another one, whose name it begins with.
    SwallowedPrefix,
    /// The parameter does not take this value.
    BadValue,
    /// A list names a CPU that the machine does not have.
    OutOfRange,
    /// A list takes the CPU that the kernel boots on, and keeps time with.
    BootCpu,
    /// Two lists of CPUs contradict each other.
    ListsDisagree,
    /// The same parameter twice.
    Duplicate,
    /// Two words of which one undoes or hides the other.
    Contradiction,
    /// The parameter or value came later, or was removed.
    OtherVersion,
    /// Kernels of other architectures know it.
    OtherArchitecture,
    /// Patched kernels know it, mainline does not.
    NotMainline,
    /// It is heard, and does something else than is generally believed.
    Misunderstood,
    /// The running kernel shows something else than the line asks for.
    NotEffective,
}

/// Something about one word of a boot line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Severity of a finding.
    pub severity: Severity,
    /// Kind of problem.
    pub kind: Kind,
    /// The check of the audit that this belongs to.
    pub check: &'static str,
    /// The word as it is written.
    pub word: String,
    /// First byte of what is wrong, in the line.
    pub at: usize,
    /// Byte behind it.
    pub end: usize,
    /// One line: what is wrong.
    pub title: String,
    /// Actual effect of the word on the kernel.
    pub effect: String,
    /// Correct word; `None` where nothing can be proposed.
    pub right: Option<String>,
    /// Where this is known from.
    pub source: &'static str,
    /// Statement of the running kernel about it; `None` where it was not asked or says nothing.
    pub seen: Option<String>,
}

impl Finding {
    /// A finding about a whole word.
    pub(super) fn new(severity: Severity, kind: Kind, word: &Word, title: String) -> Self {
        Self {
            severity,
            kind,
            check: check(kind),
            word: word.text(),
            at: word.at,
            end: word.end,
            title,
            effect: String::new(),
            right: None,
            source: "kernel-parameters.txt",
            seen: None,
        }
    }

    /// Say what really happens.
    pub(super) fn effect(mut self, effect: impl Into<String>) -> Self {
        self.effect = effect.into();
        self
    }

    /// Say what should stand there.
    pub(super) fn right(mut self, right: impl Into<String>) -> Self {
        self.right = Some(right.into());
        self
    }

    /// Say where this is known from.
    pub(super) fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    /// Name another check than the one of the kind.
    pub(super) fn check(mut self, check: &'static str) -> Self {
        self.check = check;
        self
    }

    /// Point at some bytes of the value only.
    pub(super) fn within(mut self, word: &Word, at: usize, end: usize) -> Self {
        let value = word.value.as_deref().unwrap_or_default();
        let starts = word.at + word.name.len() + 1;
        // With quotation marks, bytes of the value are not bytes of the line.
        if starts + value.len() == word.end && at < end && end <= value.len() {
            (self.at, self.end) = (starts + at, starts + end);
        }
        self
    }
}

fn check(kind: Kind) -> &'static str {
    match kind {
        Kind::UnknownWord | Kind::NearMiss | Kind::BadValue | Kind::NotMainline => "BOOT-001",
        Kind::OtherVersion | Kind::OtherArchitecture => "BOOT-001",
        Kind::SwallowedPrefix => "BOOT-002",
        Kind::OutOfRange | Kind::BootCpu | Kind::NotEffective => "BOOT-003",
        Kind::ListsDisagree => "ISO-004",
        Kind::Duplicate | Kind::Contradiction | Kind::Misunderstood => "BOOT-004",
    }
}

/// For which kernel and machine a line is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// The kernel; without it, only what holds for all of them is said.
    pub kernel: Option<KernelVersion>,
    /// The CPUs that are possible; without them, lists are not compared with the machine.
    pub cpus: Option<Cpus>,
}

impl Context {
    /// Whether the kernel is known to be at least this one.
    pub(super) fn from(&self, major: u16, minor: u16) -> bool {
        self.kernel.is_some_and(|kernel| kernel >= KernelVersion::new(major, minor))
    }

    /// Whether the kernel is known to be older than this one.
    pub(super) fn before(&self, major: u16, minor: u16) -> bool {
        self.kernel.is_some_and(|kernel| kernel < KernelVersion::new(major, minor))
    }
}
