//! The kernel's parameters as data: `parameters.txt` in depth, `names.txt` by name.

use super::version::Versions;
use crate::KernelVersion;
use std::collections::HashMap;
use std::sync::LazyLock;

const PARAMETERS: &str = include_str!("parameters.txt");
const NAMES: &str = include_str!("names.txt");

/// How the kernel finds a parameter among the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// `early_param()`: exactly the name, before everything else.
    Early,
    /// `__setup("name=")`, or one whose function looks at what follows the name.
    Setup,
    /// `__setup("name")`: every word that begins with the name.
    Prefix,
    /// `core_param()`: exactly the name, with a typed value.
    Core,
    /// `module_param()`: exactly the name, with a typed value; unknown ones are never reported.
    Module,
    /// Searched for in the whole line: it works, and is handed to init and reported as unknown all the same.
    Scanned,
    /// Of other architectures: nothing on x86 parses it.
    Elsewhere,
    /// The documentation names it; who parses it is not known here.
    Documented,
}

/// What becomes of a word whose value is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wrong {
    /// Nothing is said.
    #[default]
    Silent,
    /// The kernel log has a line about it.
    Logged,
    /// It is also handed to init and reported as unknown.
    Passed,
}

/// One of the values that a parameter knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// The value.
    pub(super) text: String,
    /// Whether every value that begins with it counts.
    pub(super) prefix: bool,
    /// The first version that knows it.
    pub(super) since: Option<KernelVersion>,
    /// The last version that knows it.
    pub(super) last: Option<KernelVersion>,
}

/// What a parameter takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// None is looked at, but for one.
    Flag(Option<&'static str>),
    /// One of these.
    One(Vec<Choice>),
    /// Several of these.
    Some(Vec<Choice>),
    /// What `kstrtobool()` takes.
    Bool,
    /// A number.
    Number,
    /// A number of bytes, with a unit or without.
    Size,
    /// A list of CPUs.
    Cpus,
    /// Anything.
    Free,
    /// Not known here.
    Unknown,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) how: How,
    pub(super) value: Value,
    pub(super) wrong: Wrong,
    /// Whether each of several words counts.
    pub(super) repeats: bool,
    pub(super) versions: Versions,
    /// What stays as it was where the word is not heard.
    pub(super) remains: Option<&'static str>,
    /// What a wrong value does, where that is not simply nothing.
    pub(super) wrong_does: Option<&'static str>,
}

/// All parameters.
#[derive(Debug, Default)]
pub(super) struct Table {
    all: Vec<Parameter>,
    by_name: HashMap<String, Vec<usize>>,
    /// Lines of the files that say nothing: a test holds it empty.
    malformed: Vec<&'static str>,
}

/// The table of this build.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

/// To the kernel, `-` and `_` in names are the same.
pub(super) fn key(name: &str) -> String {
    name.replace('-', "_")
}

impl Table {
    fn read() -> Self {
        let mut table = Self::default();
        for line in PARAMETERS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match parameter(line) {
                Some(parameter) => table.insert(parameter),
                None => table.malformed.push(line),
            }
        }
        let deep = table.all.len();
        let mut how = How::Documented;
        for line in NAMES.lines().filter(|line| !line.starts_with('#')) {
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                match parsed(section) {
                    Some(section) => how = section,
                    None => table.malformed.push(line),
                }
                continue;
            }
            for entry in line.split_whitespace() {
                match named(entry, how) {
                    Some(named) if table.first(named.name).is_none_or(|known| known >= deep) => {
                        table.insert(named);
                    }
                    Some(_) => {}
                    None => table.malformed.push(entry),
                }
            }
        }
        table
    }

    fn insert(&mut self, parameter: Parameter) {
        self.by_name.entry(key(parameter.name)).or_default().push(self.all.len());
        self.all.push(parameter);
    }

    fn first(&self, name: &str) -> Option<usize> {
        self.by_name.get(&key(name))?.first().copied()
    }

    /// The parameter of a name; of several, the one that a kernel has.
    pub(super) fn find(&self, name: &str, kernel: Option<KernelVersion>) -> Option<&Parameter> {
        let named = self.by_name.get(&key(name))?;
        let mut candidates = named.iter().map(|place| &self.all[*place]);
        let has = |parameter: &&Parameter| {
            kernel.is_none_or(|kernel| parameter.versions.has(kernel) != Some(false))
        };
        candidates.clone().find(has).or_else(|| candidates.next())
    }

    /// The parameters known in depth come first.
    pub(super) fn all(&self) -> &[Parameter] {
        &self.all
    }

    /// The flag whose name a word begins with, so that the kernel takes the word for it.
    pub(super) fn swallows(&self, word: &str, kernel: Option<KernelVersion>) -> Option<&Parameter> {
        let word = key(word);
        let swallows = |parameter: &&Parameter| {
            parameter.how == How::Prefix
                && word.len() > parameter.name.len()
                && word.starts_with(&key(parameter.name))
                && kernel.is_none_or(|kernel| parameter.versions.has(kernel) != Some(false))
        };
        self.all.iter().filter(swallows).max_by_key(|parameter| parameter.name.len())
    }
}

fn parsed(how: &str) -> Option<How> {
    Some(match how {
        "early" => How::Early,
        "setup" => How::Setup,
        "prefix" => How::Prefix,
        "core" => How::Core,
        "module" => How::Module,
        "scanned" => How::Scanned,
        "elsewhere" => How::Elsewhere,
        "documented" => How::Documented,
        _ => return None,
    })
}

fn parameter(line: &'static str) -> Option<Parameter> {
    let mut columns = line.split('|').map(str::trim);
    let (name, how) = (columns.next()?, parsed(columns.next()?)?);
    let value = columns.next()?;
    let (value, repeats) = (value.trim_end_matches('+'), value.ends_with('+'));
    let (value, wrong) = value.split_once('/').unwrap_or((value, "silent"));
    let wrong = match wrong {
        "silent" => Wrong::Silent,
        "logged" => Wrong::Logged,
        "passed" => Wrong::Passed,
        _ => return None,
    };
    let (since, last) = columns.next()?.split_once("..")?;
    let versions = Versions { since: bound(since)?, last: bound(last)? };
    let told = |text: Option<&'static str>| text.filter(|text| !text.is_empty() && *text != "-");
    let remains = columns.next()?;
    Some(Parameter {
        name,
        how,
        value: kind(value)?,
        wrong,
        repeats,
        versions,
        remains: told(Some(remains)),
        wrong_does: told(columns.next()),
    })
}

fn bound(text: &str) -> Option<Option<(KernelVersion, KernelVersion)>> {
    if text.is_empty() {
        return Some(None);
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    Some(Some((from.parse().ok()?, to.parse().ok()?)))
}

fn kind(text: &'static str) -> Option<Value> {
    let (kind, words) = text.split_once(':').unwrap_or((text, ""));
    let choices = || words.split(',').map(choice).collect::<Option<Vec<_>>>();
    Some(match kind {
        "flag" => Value::Flag(Some(words).filter(|word| !word.is_empty())),
        "one" => Value::One(choices()?),
        "some" => Value::Some(choices()?),
        "bool" => Value::Bool,
        "number" => Value::Number,
        "size" => Value::Size,
        "cpus" => Value::Cpus,
        "free" => Value::Free,
        _ => return None,
    })
}

/// `ratelimit:~@5.14`, `none!6.19`; a semicolon stands for a comma that belongs to the value.
fn choice(text: &'static str) -> Option<Choice> {
    let (text, last) = match text.split_once('!') {
        Some((text, last)) => (text, Some(last.parse().ok()?)),
        None => (text, None),
    };
    let (text, since) = match text.split_once('@') {
        Some((text, since)) => (text, Some(since.parse().ok()?)),
        None => (text, None),
    };
    let (text, prefix) = match text.strip_suffix('~') {
        Some(text) => (text, true),
        None => (text, false),
    };
    Some(Choice { text: text.replace(';', ","), prefix, since, last })
}

fn named(entry: &'static str, how: How) -> Option<Parameter> {
    let pair = |text: &str| {
        let (from, to) = text.split_once("..")?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    let (rest, last) = match entry.split_once('!') {
        Some((rest, last)) => (rest, Some(pair(last)?)),
        None => (entry, None),
    };
    let (name, since) = match rest.split_once('@') {
        Some((name, since)) => (name, Some(pair(since)?)),
        None => (rest, None),
    };
    let versions = Versions { since, last };
    Some(Parameter {
        name,
        how,
        value: Value::Unknown,
        wrong: Wrong::default(),
        repeats: true,
        versions,
        remains: None,
        wrong_does: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_says_something() {
        assert_eq!(TABLE.malformed, Vec::<&str>::new());
        assert!(TABLE.all.len() > 1_250, "{}", TABLE.all.len());
        let deep = TABLE.all.iter().filter(|known| known.value != Value::Unknown).count();
        assert!(deep > 140, "{deep}");
    }

    #[test]
    fn a_parameter_changes_with_the_kernel() {
        let how =
            |minor| TABLE.find("rcu-nocb-poll", Some(KernelVersion::new(6, minor))).unwrap().how;
        assert_eq!(how(1), How::Early);
        assert_eq!(how(12), How::Prefix);
        assert!(TABLE.find("rcu_nocbs_poll", None).is_none());
        let swallows = |word| TABLE.swallows(word, None).map(|flag| flag.name);
        assert_eq!(swallows("rcu-nocbs_poll"), Some("rcu_nocbs"));
        assert_eq!(swallows("rcu_nocbs"), None);
        assert_eq!(swallows("nosoftlockups"), Some("nosoftlockup"));
    }
}
