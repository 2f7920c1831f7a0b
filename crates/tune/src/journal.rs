//! The journal: the old value of everything, on the disk before anything is changed.
//!
//! A line for each record: sixteen hexadecimal digits of XXH3-64, a space, JSON. The first line is the header; it has
//! the number of steps and a checksum over their lines, which follow. Header and steps are written at once, under another
//! name that is then changed, so that a process that dies leaves all of them or none. A journal whose steps do not fit its
//! header was damaged later and is refused: what it does not name any more cannot be restored.
//!
//! Marks of progress are appended. The last one may be torn: it was never acted upon, since each is on the disk before
//! what it announces is done.

use super::allowed_places::is_allowed;
use super::command::Command;
use super::form::Form;
use super::place::{Place, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// The version that this code writes.
///
/// Format 1 had no number of steps, and commands as free words: whether it is whole cannot be known, and what it would run
/// is for whoever wrote it to say. It is refused, not converted.
pub const FORMAT: u32 = 2;

/// Header of a journal: time, host, profile and command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// Version of the format.
    pub format: u32,
    /// Name of this application of a plan: letters and digits.
    pub id: String,
    /// Seconds since 1970.
    pub at_unix_s: u64,
    /// The kernel's name for the time since it was started.
    pub boot_id: String,
    /// The profile.
    pub profile: String,
    /// The command line.
    pub arguments: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
enum Line {
    Begin {
        #[serde(flatten)]
        begin: Begin,
        /// Number of steps that follow.
        steps: usize,
        /// XXH3-64 over their lines.
        checksum: String,
    },
    Step(JournalStep),
}

/// Record appended while a plan is carried out or taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum Mark {
    /// A step is going to be carried out.
    Start {
        /// Its number.
        number: usize,
    },
    /// A step was carried out.
    Done {
        /// Its number.
        number: usize,
        /// Result of the step.
        outcome: Outcome,
    },
    /// All steps were carried out.
    Applied,
    /// Everything was restored.
    Reverted,
}

/// A step as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalStep {
    /// Its place in the order, from 0.
    pub number: usize,
    /// The change that it is part of.
    pub change: String,
    /// Where.
    pub place: Place,
    /// Form of the values.
    pub form: Form,
    /// The bytes before.
    pub old: Option<Value>,
    /// Wanted value; `None` for a value that is not set, but may change with others.
    pub new: Option<Value>,
    /// Whether a refusal is an answer.
    #[serde(default)]
    pub optional: bool,
    /// Program to run once it is written or restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Command>,
}

/// Result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The value is as wanted.
    Took,
    /// It was written, and reads differently.
    Differs(Value),
    /// The kernel does not allow it here.
    Cannot(String),
    /// It failed, and nothing after it was tried.
    Failed(String),
}

/// A journal that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// Header of the journal.
    pub begin: Begin,
    /// The steps, in the order in which they were to be carried out.
    pub steps: Vec<JournalStep>,
    /// Numbers of steps that were begun.
    pub started: Vec<usize>,
    /// Results of steps, by number.
    pub outcomes: BTreeMap<usize, Outcome>,
    /// Whether all was carried out.
    pub applied: bool,
    /// Whether all was restored.
    pub reverted: bool,
    /// Bytes that make sense; what follows is a torn mark.
    pub whole: usize,
    /// Bytes of the torn mark.
    pub torn: usize,
}

/// A journal that cannot be used. Nothing of it is restored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// It does not begin as one.
    #[error("its first line is not the header of a journal; {} may still be changed", values(*.steps))]
    NoJournal {
        /// Steps that can still be read.
        steps: usize,
    },
    /// Another version.
    #[error(
        "it is of format {found}, this program reads format {FORMAT}: revert with the version that wrote it"
    )]
    Format {
        /// Format that it names.
        found: u32,
    },
    /// Steps are missing at its end.
    #[error("it ends after {read} of {steps} steps; {} may still be changed", values(*.steps))]
    CutOff {
        /// Steps that are there.
        read: usize,
        /// Steps that it was written with.
        steps: usize,
    },
    /// A line is not what was written.
    #[error("line {line} is damaged; {} may still be changed", values(*.steps))]
    Damaged {
        /// The line, from 1.
        line: usize,
        /// Steps that it was written with.
        steps: usize,
    },
    /// A step is not one of a change that is known.
    #[error("line {line}: {why}; {} may still be changed", values(*.steps))]
    Unknown {
        /// The line, from 1.
        line: usize,
        /// Part of the step that is not known.
        why: String,
        /// Steps that it was written with.
        steps: usize,
    },
}

fn values(steps: usize) -> String {
    if steps == 1 { "1 value".to_owned() } else { format!("{steps} values") }
}

/// A line with its checksum and its end.
fn line(record: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_string(record)?;
    Ok(format!("{:016x} {json}\n", xxh3_64(json.as_bytes())).into_bytes())
}

/// The JSON of a line that is whole.
fn json(line: &[u8]) -> Option<&str> {
    let (sum, json) = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?.split_once(' ')?;
    (sum == format!("{:016x}", xxh3_64(json.as_bytes()))).then_some(json)
}

impl Mark {
    /// The line, with its checksum and its end.
    ///
    /// # Errors
    ///
    /// None that is known: the mark is plain data.
    pub fn line(&self) -> Result<Vec<u8>, serde_json::Error> {
        line(self)
    }
}

impl Journal {
    /// Write header and steps. Marks are appended to it.
    ///
    /// # Errors
    ///
    /// None that is known: the records are plain data.
    pub fn begun(begin: &Begin, steps: &[JournalStep]) -> Result<Vec<u8>, serde_json::Error> {
        let mut lines = Vec::new();
        for step in steps {
            lines.extend(line(&Line::Step(step.clone()))?);
        }
        let checksum = format!("{:016x}", xxh3_64(&lines));
        let header = Line::Begin { begin: begin.clone(), steps: steps.len(), checksum };
        Ok([line(&header)?, lines].concat())
    }

    /// Read a journal.
    ///
    /// # Errors
    ///
    /// It is none, of another version, or not as it was written.
    pub fn parse(bytes: &[u8]) -> Result<Self, JournalError> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(1_usize..);
        let first = lines.next().map_or(&[][..], |(line, _)| line);
        let (begin, count, checksum) = header(first, bytes)?;
        let end = first.len();
        let (mut steps, mut read) = (Vec::new(), end);
        for (line, number) in lines.by_ref().take(count) {
            if !line.ends_with(b"\n") {
                break;
            }
            steps.push(step(line, number, steps.len(), count)?);
            read += line.len();
        }
        if steps.len() < count {
            return Err(JournalError::CutOff { read: steps.len(), steps: count });
        }
        if checksum != format!("{:016x}", xxh3_64(&bytes[end..read])) {
            return Err(JournalError::Damaged { line: 1, steps: count });
        }
        let mut journal = Self {
            begin,
            steps,
            started: Vec::new(),
            outcomes: BTreeMap::new(),
            applied: false,
            reverted: false,
            whole: read,
            torn: bytes.len() - read,
        };
        for (line, number) in lines {
            if !line.ends_with(b"\n") {
                break;
            }
            let mark = json(line).and_then(|json| serde_json::from_str(json).ok());
            let taken = mark.and_then(|mark| journal.take(mark));
            taken.ok_or(JournalError::Damaged { line: number, steps: count })?;
            journal.whole += line.len();
            journal.torn -= line.len();
        }
        Ok(journal)
    }

    /// `None` for a mark of a step that is not there.
    fn take(&mut self, mark: Mark) -> Option<()> {
        match mark {
            Mark::Start { number } => self.started.push(self.steps.get(number)?.number),
            Mark::Done { number, outcome } => {
                self.outcomes.insert(self.steps.get(number)?.number, outcome);
            }
            Mark::Applied => self.applied = true,
            Mark::Reverted => self.reverted = true,
        }
        Some(())
    }
}

fn header(first: &[u8], all: &[u8]) -> Result<(Begin, usize, String), JournalError> {
    let found = json(first).and_then(|json| serde_json::from_str(json).ok());
    match found {
        Some(Line::Begin { begin, steps, checksum })
            if begin.format == FORMAT && is_plain(&begin.id) =>
        {
            Ok((begin, steps, checksum))
        }
        _ => Err(other_format(first).unwrap_or_else(|| JournalError::NoJournal {
            steps: all
                .split_inclusive(|byte| *byte == b'\n')
                .filter(|line| json(line).is_some_and(|json| json.starts_with(STEP)))
                .count(),
        })),
    }
}

/// Beginning of a step's line.
const STEP: &str = r#"{"record":"step","#;

/// It becomes part of a file's name.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn step(
    bytes: &[u8],
    line: usize,
    place: usize,
    steps: usize,
) -> Result<JournalStep, JournalError> {
    let damaged = JournalError::Damaged { line, steps };
    let Some(json) = json(bytes).filter(|json| json.starts_with(STEP)) else { return Err(damaged) };
    let unknown = |why: String| JournalError::Unknown { line, why, steps };
    match serde_json::from_str(json) {
        Ok(Line::Step(step)) if step.number != place => Err(damaged),
        Ok(Line::Step(step)) if !is_allowed(&step.place) => {
            Err(unknown(format!("no change of this program writes {}", step.place)))
        }
        Ok(Line::Step(step)) => Ok(step),
        Ok(Line::Begin { .. }) => Err(damaged),
        Err(error) => Err(unknown(error.to_string())),
    }
}

/// Another version may have records that cannot be read here; its number can.
fn other_format(line: &[u8]) -> Option<JournalError> {
    let value: serde_json::Value = serde_json::from_str(json(line)?).ok()?;
    let found = u32::try_from(value.get("format")?.as_u64()?).ok()?;
    (found != FORMAT).then_some(JournalError::Format { found })
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
