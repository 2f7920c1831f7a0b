//! Forms of values: writing them, and comparing two for equal meaning.

use super::place::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailtrim_host::Cpus;

/// Kind of text that a place holds. Kernels do not give back what was written: masks come back in groups
/// of eight digits, a choice with all its alternatives around it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A number.
    #[default]
    Number,
    /// Words.
    Text,
    /// One of several words; the chosen one is read in brackets: `always [madvise] never`.
    Choice,
    /// A hexadecimal mask of CPUs.
    Mask,
    /// A list of CPUs.
    List,
    /// Whether this word is in a list of words, as in `cgroup.subtree_control`: set by `+word` and `-word`.
    Word(String),
    /// Ways of caches, a line for each resource, as `resctrl` has it.
    Schemata,
    /// Bytes, each of which counts.
    Bytes,
}

impl Form {
    /// Whether two values mean the same.
    #[must_use]
    pub fn same(&self, one: &Value, other: &Value) -> bool {
        if one == other {
            return true;
        }
        let (one, other) = (one.shown(), other.shown());
        match self {
            Self::Number => match (one.parse::<i128>(), other.parse::<i128>()) {
                (Ok(one), Ok(other)) => one == other,
                _ => one == other,
            },
            Self::Text => one.split_whitespace().eq(other.split_whitespace()),
            Self::Choice => chosen(&one) == chosen(&other),
            Self::Mask => match (Cpus::from_mask(&one), Cpus::from_mask(&other)) {
                (Ok(one), Ok(other)) => one == other,
                _ => false,
            },
            Self::List => match (one.parse::<Cpus>(), other.parse::<Cpus>()) {
                (Ok(one), Ok(other)) => one == other,
                _ => false,
            },
            Self::Word(word) => has(&one, word) == has(&other, word),
            Self::Schemata => {
                let (one, other) = (resources(&one), resources(&other));
                other.iter().all(|(name, ways)| one.get(name).is_none_or(|known| known == ways))
            }
            Self::Bytes => false,
        }
    }

    /// Bytes to write so that the place has this value, which may be what was read from it.
    #[must_use]
    pub fn written(&self, value: &Value) -> Vec<u8> {
        let text = value.shown();
        match self {
            Self::Bytes => return value.0.clone(),
            Self::Choice => chosen(&text).to_owned(),
            Self::Word(word) => format!("{}{word}", if has(&text, word) { '+' } else { '-' }),
            Self::Schemata => {
                let lines: Vec<&str> = text.lines().map(str::trim).collect();
                lines.join("\n")
            }
            Self::Number | Self::Text | Self::Mask | Self::List => text,
        }
        .into_bytes()
        .into_iter()
        .chain(*b"\n")
        .collect()
    }

    /// The value as people read it.
    #[must_use]
    pub fn shown(&self, value: &Value) -> String {
        let text = value.shown();
        match self {
            Self::Choice => chosen(&text).to_owned(),
            Self::Word(word) if has(&text, word) => format!("with {word}"),
            Self::Word(word) => format!("without {word}"),
            Self::Bytes if value.0.is_empty() => "there".to_owned(),
            Self::Bytes => format!("{} bytes", value.0.len()),
            Self::Schemata => resources(&text)
                .iter()
                .map(|(name, ways)| format!("{name}:{ways}"))
                .collect::<Vec<_>>()
                .join(" "),
            // People count CPUs, not bits.
            Self::Mask => match Cpus::from_mask(&text) {
                Ok(cpus) => cpus.named(),
                Err(_) => text,
            },
            _ if text.is_empty() => "none".to_owned(),
            _ => text,
        }
    }

    /// Why a place may read differently from what was written.
    #[must_use]
    pub fn why_not(&self, wanted: &Value, read: &Value) -> String {
        let (wanted, read) = (wanted.shown(), read.shown());
        match self {
            Self::Number => match (wanted.parse::<i128>(), read.parse::<i128>()) {
                (Ok(wanted), Ok(read)) if read < wanted => {
                    "the kernel gave less than was asked for (its limit, or what is free), or another \
                     manager wrote it since"
                        .to_owned()
                }
                _ => "another manager wrote it since, or the kernel raised it to its limit".to_owned(),
            },
            Self::Mask => cpus_differ(Cpus::from_mask(&wanted).ok(), Cpus::from_mask(&read).ok()),
            Self::List => cpus_differ(wanted.parse().ok(), read.parse().ok()),
            Self::Choice if !read.split_whitespace().any(|word| bare(word) == chosen(&wanted)) => {
                format!("this kernel does not offer it: {read}")
            }
            _ => "another manager wrote it since, or the driver does not take it".to_owned(),
        }
    }
}

fn cpus_differ(wanted: Option<Cpus>, read: Option<Cpus>) -> String {
    let (Some(wanted), Some(read)) = (wanted, read) else {
        return "the value read back is not a list of CPUs".to_owned();
    };
    let (lost, more) = (wanted.minus(&read), read.minus(&wanted));
    match (lost.is_empty(), more.is_empty()) {
        (false, true) => {
            format!("{} dropped: offline, or not of this machine", lost.does("was", "were"))
        }
        (true, false) => {
            format!("{} added: by the kernel, or by another manager", more.does("was", "were"))
        }
        _ => "another manager wrote it since".to_owned(),
    }
}

fn bare(word: &str) -> &str {
    word.trim_matches(|bracket| matches!(bracket, '[' | ']'))
}

/// The word in brackets; without brackets the whole text.
fn chosen(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(word, _)| word)
}

fn has(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|known| known == word)
}

fn resources(text: &str) -> BTreeMap<String, String> {
    let of = |line: &str| {
        let (name, ways) = line.trim().split_once(':')?;
        // Leading zeros come and go: `0=ff` is read as `0=00ff`.
        let ways = ways.split(';').map(|part| match part.trim().split_once('=') {
            Some((domain, ways)) => {
                let ways = ways.trim_start_matches('0');
                format!("{domain}={}", if ways.is_empty() { "0" } else { ways })
            }
            None => part.trim().to_owned(),
        });
        Some((name.trim().to_owned(), ways.collect::<Vec<_>>().join(";")))
    };
    text.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(form: &Form, one: &str, other: &str) -> bool {
        form.same(&one.into(), &other.into())
    }

    #[test]
    fn the_same_in_other_words() {
        assert!(same(&Form::Choice, "always [madvise] never\n", "madvise"));
        assert!(!same(&Form::Choice, "always [madvise] never\n", "never"));
        assert!(same(&Form::Mask, "ff\n", "00000000,000000ff"));
        assert!(same(&Form::List, "0-3\n", "0,1,2,3"));
        assert!(!same(&Form::List, "(null)", "0"));
        assert!(same(&Form::Number, "-1\n", "-1"));
        assert!(same(&Form::Text, "4\t4\t1\t7\n", "4 4 1 7"));
        assert!(same(&Form::Word("cpuset".into()), "cpuset memory", "cpuset"));
        assert!(!same(&Form::Word("cpuset".into()), "memory", "cpuset"));
        assert!(same(&Form::Schemata, "    L3:0=0ff;1=fff\n    MB:0=100;1=100", "L3:0=ff;1=fff"));
        assert!(!same(&Form::Bytes, "a\n", "a"));
    }

    #[test]
    fn what_was_read_can_be_written() {
        let written =
            |form: Form, text: &str| String::from_utf8(form.written(&text.into())).unwrap();
        assert_eq!(
            written(Form::Choice, "always defer defer+madvise [madvise] never\n"),
            "madvise\n"
        );
        assert_eq!(written(Form::List, "\n"), "\n");
        assert_eq!(written(Form::Word("cpuset".into()), "cpuset cpu\n"), "+cpuset\n");
        assert_eq!(written(Form::Word("cpuset".into()), "\n"), "-cpuset\n");
        assert_eq!(written(Form::Schemata, "    L3:0=ff\n    MB:0=100\n"), "L3:0=ff\nMB:0=100\n");
        assert_eq!(written(Form::Bytes, " a"), " a");
    }

    #[test]
    fn why_a_value_did_not_stick() {
        let why = |form: Form, wanted: &str, read: &str| form.why_not(&wanted.into(), &read.into());
        assert!(why(Form::List, "0-3", "0-1").contains("CPUs 2-3 were dropped"));
        assert!(why(Form::Choice, "sometimes", "[always] never").contains("does not offer"));
        assert!(why(Form::Number, "16", "12").contains("less than was asked"));
    }
}
