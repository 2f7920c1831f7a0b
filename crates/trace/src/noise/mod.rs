//! Noise of CPUs as measured by other tools, in the terms of `tailtrim noise`.
//!
//! [`read`] takes the output of `cyclictest --json` and `cyclictest --histogram`, `oslat --json`, `rtla osnoise hist` and
//! `rtla timerlat hist`. They count in buckets: a value is known to lie within one, so that quantiles are bounds from
//! above. Of values beyond their tables only the number and the longest are known.

mod cyclictest_text;
mod distribution;
mod prefix;
mod rt_tests;
mod rtla;

pub use distribution::{AtLeast, Beyond, Distribution};

use std::collections::BTreeSet;

/// Results of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The tool.
    pub tool: Tool,
    /// Its version, if the output has it.
    pub version: Option<String>,
    /// Its command line, if the output has it.
    pub command: Option<String>,
    /// Duration of the measurement, if the output has it.
    pub seconds: Option<f64>,
    /// Sentence about what the output does not say and is taken for granted.
    pub assumed: Option<&'static str>,
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
    /// The tool's name for people.
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

/// Measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Time that a loop did not run.
    Gap,
    /// Time from when a timer was due to its interrupt.
    Interrupt,
    /// Time from when a timer was due until the waiting thread ran.
    Thread,
    /// Time from when a timer was due until a program was back from the kernel.
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
    /// The tool's number of the thread, where its CPU is not known.
    pub thread: Option<u32>,
    /// Measured quantity.
    pub what: What,
    /// Number of all values, in or out of buckets.
    pub count: u64,
    /// Upper bound of the shortest value.
    pub min_ns: Option<i64>,
    /// Upper bound of the longest value.
    pub max_ns: Option<i64>,
    /// In ascending order; empty where the tool kept none.
    pub buckets: Vec<Bucket>,
    /// Whether the last bucket has what lies beyond the tool's table.
    pub open_end: bool,
}

/// So many values of at least `from_ns` and less than `to_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// From here.
    pub from_ns: i64,
    /// To here.
    pub to_ns: i64,
    /// Number of values.
    pub count: u64,
}

/// Reason why a text cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// None of the formats.
    #[error(
        "{0}; expected what `cyclictest --json=FILE`, `cyclictest --histogram=US`, `oslat --json=FILE`, `rtla osnoise \
         hist` or `rtla timerlat hist` wrote"
    )]
    Unknown(String),
    /// JSON that ends early or is of another shape.
    #[error(
        "line {}, column {}: {source}; expected JSON as `cyclictest --json=FILE` or `oslat --json=FILE` of rt-tests 2 \
         writes it", source.line(), source.column()
    )]
    Json {
        /// The error of serde.
        #[from]
        source: serde_json::Error,
    },
    /// A line of a histogram.
    #[error("line {number}: {problem}")]
    Line {
        /// Lines before it, plus one.
        number: usize,
        /// The problem, with the expected form and advice.
        problem: String,
    },
    /// Numbers that do not agree.
    #[error("{0}")]
    Disagree(String),
}

/// Reads the output of one of the tools.
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
        let plain = prefix::without(text)?;
        if cyclictest_text::is_here(&plain) {
            cyclictest_text::read(&plain)?
        } else {
            rtla::read(&plain)?
        }
    };
    match findings.columns.iter().find(|column| !column.is_sound()) {
        None => Ok(findings),
        Some(column) => Err(ReadError::Disagree(format!(
            "the histogram of {} is out of order or its counts are too large; the file is damaged, measure again",
            column.name()
        ))),
    }
}

/// Upper bound of a plausible count: three years of a turn each 10 ns.
const MOST: u64 = 1 << 53;

impl Column {
    /// The CPU, or else the thread.
    #[must_use]
    pub fn name(&self) -> String {
        match (self.cpu, self.thread) {
            (Some(cpu), _) => format!("CPU {cpu}"),
            (None, Some(thread)) => format!("thread {thread}"),
            (None, None) => "any CPU".to_owned(),
        }
    }

    fn is_sound(&self) -> bool {
        // Ends may overlap where the width of buckets is unknown.
        let in_order = |pair: &[Bucket]| pair[0].from_ns < pair[1].from_ns;
        self.counted() <= MOST
            && self.count <= MOST
            && self
                .buckets
                .iter()
                .all(|bucket| 0 <= bucket.from_ns && bucket.from_ns <= bucket.to_ns)
            && self.buckets.windows(2).all(in_order)
    }

    /// Number of values in the buckets.
    fn counted(&self) -> u64 {
        total(self.buckets.iter().map(|bucket| bucket.count))
    }
}

/// A sum that saturates instead of overflowing.
fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl Findings {
    /// The columns whose delays a program on the CPU has: of timers those that end last.
    pub fn felt(&self) -> impl Iterator<Item = &Column> {
        let kinds: BTreeSet<What> = self.columns.iter().map(|column| column.what).collect();
        let last = kinds.last().copied();
        self.columns.iter().filter(move |column| Some(column.what) == last)
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
