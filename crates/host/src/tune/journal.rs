//! The journal: the old value of everything, on the disk before anything is changed.
//!
//! A line for each record: sixteen hexadecimal digits of XXH3-64, a space, JSON. What is torn at the end
//! was never acted upon, since each record is on the disk before what it announces is done.

use super::form::Form;
use super::place::{Place, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

/// The version that this code writes.
pub const FORMAT: u32 = 1;

/// Who began, when and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// Version of the format.
    pub format: u32,
    /// Name of this application of a plan.
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

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "lowercase")]
pub enum Record {
    /// The first.
    Begin(Begin),
    /// A value that is going to be changed, as it was before the first of all changes.
    Step(Recorded),
    /// A step is going to be carried out.
    Start {
        /// Its number.
        number: usize,
    },
    /// A step was carried out.
    Done {
        /// Its number.
        number: usize,
        /// What came of it.
        outcome: Outcome,
    },
    /// All steps were carried out.
    Applied,
    /// Everything was restored.
    Reverted,
}

/// A step as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its place in the order.
    pub number: usize,
    /// The change that it is part of.
    pub change: String,
    /// Where.
    pub place: Place,
    /// How values are written.
    pub form: Form,
    /// The bytes before.
    pub old: Option<Value>,
    /// What is wanted; `None` for a value that is not set, but may change with others.
    pub new: Option<Value>,
    /// Whether a refusal is an answer.
    #[serde(default)]
    pub optional: bool,
    /// What to run once it is written or restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Vec<String>>,
}

/// What came of a step.
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
    /// Who, when, what.
    pub begin: Begin,
    /// The steps, in the order in which they were to be carried out.
    pub steps: Vec<Recorded>,
    /// Numbers of steps that were begun.
    pub started: Vec<usize>,
    /// What came of steps.
    pub outcomes: BTreeMap<usize, Outcome>,
    /// Whether all was carried out.
    pub applied: bool,
    /// Whether all was restored.
    pub reverted: bool,
    /// Bytes that make sense; what follows is a torn record.
    pub whole: usize,
    /// Bytes of the torn record.
    pub torn: usize,
}

/// A journal that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// It does not begin as one.
    #[error("it does not begin with the record of a journal")]
    NoJournal,
    /// Another version.
    #[error(
        "it is of format {found}, this program reads format {FORMAT}: use the version that wrote it"
    )]
    Format {
        /// What it says.
        found: u32,
    },
    /// A record that is not the last is damaged.
    #[error(
        "line {line} is damaged, and others follow it: the disk lost it, or somebody edited the file"
    )]
    Damaged {
        /// The line, from 1.
        line: usize,
    },
}

impl Record {
    /// The line, with its checksum and its end.
    ///
    /// # Errors
    ///
    /// None that is known: the record is plain data.
    pub fn line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{:016x} {json}\n", xxh3_64(json.as_bytes())).into_bytes())
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let (sum, json) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        let sum = u64::from_str_radix(sum, 16).ok()?;
        (sum == xxh3_64(json.as_bytes())).then(|| serde_json::from_str(json).ok())?
    }
}

impl Journal {
    /// Read a journal.
    ///
    /// # Errors
    ///
    /// It is none, of another version, or damaged before its end.
    pub fn parse(bytes: &[u8]) -> Result<Self, JournalError> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        let first =
            lines.next().and_then(|(_, line)| record(line).map(|found| (found, line.len())));
        let Some((Record::Begin(begin), mut whole)) = first else {
            return Err(other_format(bytes).unwrap_or(JournalError::NoJournal));
        };
        if begin.format != FORMAT {
            return Err(JournalError::Format { found: begin.format });
        }
        let mut journal = Self {
            begin,
            steps: Vec::new(),
            started: Vec::new(),
            outcomes: BTreeMap::new(),
            applied: false,
            reverted: false,
            whole: 0,
            torn: 0,
        };
        for (number, line) in lines {
            match record(line) {
                Some(record) => journal.take(record),
                None if whole + line.len() == bytes.len() => break,
                None => return Err(JournalError::Damaged { line: number + 1 }),
            }
            whole += line.len();
        }
        journal.whole = whole;
        journal.torn = bytes.len() - whole;
        Ok(journal)
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Begin(_) => {}
            Record::Step(step) => self.steps.push(step),
            Record::Start { number } => self.started.push(number),
            Record::Done { number, outcome } => {
                self.outcomes.insert(number, outcome);
            }
            Record::Applied => self.applied = true,
            Record::Reverted => self.reverted = true,
        }
    }

    /// The step that was begun and not ended: what was going on when the process died.
    #[must_use]
    pub fn unfinished(&self) -> Option<&Recorded> {
        let last = self.started.last().filter(|number| !self.outcomes.contains_key(number))?;
        self.steps.iter().find(|step| step.number == *last)
    }
}

fn record(line: &[u8]) -> Option<Record> {
    Record::parse(line.strip_suffix(b"\n")?)
}

/// A later version may have records that cannot be read here; its number can.
fn other_format(bytes: &[u8]) -> Option<JournalError> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let (_, json) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let found = u32::try_from(value.get("format")?.as_u64()?).ok()?;
    (found != FORMAT).then_some(JournalError::Format { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin() -> Begin {
        Begin {
            format: FORMAT,
            id: "1".into(),
            at_unix_s: 1,
            boot_id: "b".into(),
            profile: "latency-poll".into(),
            arguments: vec!["a".into()],
        }
    }

    fn step(number: usize, old: &[u8]) -> Record {
        Record::Step(Recorded {
            number,
            change: "x".into(),
            place: Place::file("/proc/sys/vm/stat_interval"),
            form: Form::Number,
            old: Some(Value(old.to_vec())),
            new: Some("2".into()),
            optional: false,
            then: None,
        })
    }

    fn bytes(records: &[Record]) -> Vec<u8> {
        records.iter().flat_map(|record| record.line().unwrap()).collect()
    }

    #[test]
    fn bytes_come_back_exactly_text_or_not() {
        let records = [Record::Begin(begin()), step(0, b"1\n"), step(1, b"\xff\0\t\"\n\n")];
        let journal = Journal::parse(&bytes(&records)).unwrap();
        let old: Vec<&[u8]> =
            journal.steps.iter().map(|s| &s.old.as_ref().unwrap().0[..]).collect();
        assert_eq!(old, [b"1\n" as &[u8], b"\xff\0\t\"\n\n"]);
    }

    #[test]
    fn wherever_it_is_cut_what_is_whole_is_read() {
        let records = [
            Record::Begin(begin()),
            step(0, b"1\n"),
            Record::Start { number: 0 },
            Record::Done { number: 0, outcome: Outcome::Took },
            Record::Applied,
        ];
        let all = bytes(&records);
        let first = records[0].line().unwrap().len();
        for cut in first..=all.len() {
            let journal = Journal::parse(&all[..cut]).unwrap();
            assert_eq!(journal.whole + journal.torn, cut);
            assert_eq!(journal.applied, cut == all.len());
        }
        assert_eq!(Journal::parse(&all[..first - 1]), Err(JournalError::NoJournal));
        let cut = all.len() - records[4].line().unwrap().len() - 3;
        assert_eq!(Journal::parse(&all[..cut]).unwrap().unfinished().unwrap().number, 0);
    }

    #[test]
    fn damage_in_the_middle_is_told() {
        let mut all = bytes(&[Record::Begin(begin()), step(0, b"1\n"), Record::Applied]);
        let at = Record::Begin(begin()).line().unwrap().len() + 30;
        all[at] ^= 1;
        assert_eq!(Journal::parse(&all), Err(JournalError::Damaged { line: 2 }));
    }

    #[test]
    fn another_version_is_named() {
        let later = Begin { format: 9, ..begin() };
        let all = bytes(&[Record::Begin(later)]);
        assert_eq!(Journal::parse(&all), Err(JournalError::Format { found: 9 }));
        let json = r#"{"record":"other","format":7}"#;
        let line = format!("{:016x} {json}\n", xxh3_64(json.as_bytes()));
        assert_eq!(Journal::parse(line.as_bytes()), Err(JournalError::Format { found: 7 }));
    }
}
