//! How quiet CPUs are: what other tools wrote about it, in the terms of `tailtrim noise`.
//!
//! [`read`] takes what `cyclictest --json`, `oslat --json`, `rtla osnoise hist` and `rtla timerlat hist` wrote. They
//! count in buckets: a value is known to lie within one, so that quantiles are bounds from above.

mod distribution;
mod rt_tests;
mod rtla;

pub use distribution::{AtLeast, Distribution};

use std::collections::BTreeSet;

/// What another tool measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// Who.
    pub tool: Tool,
    /// Its version, where it says so.
    pub version: Option<String>,
    /// How it was called, where it says so.
    pub command: Option<String>,
    /// How long it measured, where it says so.
    pub seconds: Option<f64>,
    /// CPU by CPU, as in the file.
    pub columns: Vec<Column>,
}

/// The tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// `oslat` of rt-tests: a polling loop.
    Oslat,
    /// `cyclictest` of rt-tests: timers.
    Cyclictest,
    /// `rtla osnoise hist`: a polling loop in the kernel.
    Osnoise,
    /// `rtla timerlat hist`: timers, of a thread in the kernel or of a program.
    Timerlat,
}

impl Tool {
    /// As people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Oslat => "oslat",
            Self::Cyclictest => "cyclictest",
            Self::Osnoise => "rtla osnoise",
            Self::Timerlat => "rtla timerlat",
        }
    }

    /// Whether a loop polled; otherwise timers were late.
    #[must_use]
    pub fn polls(self) -> bool {
        matches!(self, Self::Oslat | Self::Osnoise)
    }
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Time that a loop did not run.
    Gap,
    /// From when a timer was due to its interrupt.
    Interrupt,
    /// From when a timer was due to when the thread that waits for it ran.
    Thread,
    /// From when a timer was due to when a program was back from the kernel.
    Program,
}

impl What {
    /// One word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Interrupt => "interrupt",
            Self::Thread => "thread",
            Self::Program => "program",
        }
    }
}

/// One distribution of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The CPU; nothing where the thread was not bound to one.
    pub cpu: Option<u32>,
    /// What was counted.
    pub what: What,
    /// All that was counted, in or out of buckets.
    pub count: u64,
    /// The shortest, at most.
    pub min_ns: Option<i64>,
    /// The longest, at most.
    pub max_ns: Option<i64>,
    /// In ascending order; empty where the tool kept none.
    pub buckets: Vec<Bucket>,
}

/// So many values of at least `from_ns` and less than `to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// From here.
    pub from_ns: i64,
    /// To here.
    pub to_ns: i64,
    /// How many.
    pub count: u64,
}

/// Why a text tells nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// None of the formats.
    #[error(
        "{0}; expected what `cyclictest --json=FILE`, `oslat --json=FILE`, `rtla osnoise hist` or `rtla timerlat \
         hist` wrote"
    )]
    Unknown(String),
    /// JSON that ends early or is of another shape.
    #[error(
        "line {}, column {}: {source}; expected JSON as `cyclictest --json=FILE` or `oslat --json=FILE` of rt-tests 2 \
         writes it", source.line(), source.column()
    )]
    Json {
        /// What serde says.
        #[from]
        source: serde_json::Error,
    },
    /// A line of a histogram.
    #[error("line {number}: {problem}")]
    Line {
        /// Lines before it, plus one.
        number: usize,
        /// What is wrong, what was expected, what to do.
        problem: String,
    },
    /// Numbers that do not agree.
    #[error("{0}")]
    Disagree(String),
}

/// Reads what one of the tools wrote.
///
/// # Errors
/// It is none of the formats, or damaged.
pub fn read(text: &str) -> Result<Findings, ReadError> {
    let start = text.trim_start();
    let findings = if start.starts_with('{') {
        rt_tests::read(text)?
    } else if start.is_empty() {
        return Err(ReadError::Unknown("the file is empty".into()));
    } else {
        rtla::read(text)?
    };
    match findings.columns.iter().find(|column| !column.is_sound()) {
        None => Ok(findings),
        Some(column) => Err(ReadError::Disagree(format!(
            "the histogram of CPU {} is out of order or its counts are too large; the file is damaged, measure again",
            column.cpu.map_or_else(|| "?".to_owned(), |cpu| cpu.to_string())
        ))),
    }
}

/// So much nobody has counted: three years of a turn each 10 ns.
const MOST: u64 = 1 << 53;

impl Column {
    fn is_sound(&self) -> bool {
        // Ends may overlap where nobody knows how wide buckets are.
        let in_order = |pair: &[Bucket]| pair[0].from_ns < pair[1].from_ns;
        self.counted() <= MOST
            && self.count <= MOST
            && self
                .buckets
                .iter()
                .all(|bucket| 0 <= bucket.from_ns && bucket.from_ns <= bucket.to_ns)
            && self.buckets.windows(2).all(in_order)
    }

    /// What the buckets have.
    fn counted(&self) -> u64 {
        total(self.buckets.iter().map(|bucket| bucket.count))
    }
}

/// A sum that is too large rather than wrong.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl Findings {
    /// The columns that a program on the CPU would feel: of timers those that end last.
    pub fn felt(&self) -> impl Iterator<Item = &Column> {
        let kinds: BTreeSet<What> = self.columns.iter().map(|column| column.what).collect();
        let last = kinds.last().copied();
        self.columns.iter().filter(move |column| Some(column.what) == last)
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
