//! The kernel's parameters as data: `parameters.json` has those that matter for latency (x86) and those beside which
//! they stand on a boot line, `names.json` the names of all others.
//!
//! Facts of Linux 5.10.223, 6.1.192, 6.12.107 and 7.2.13, read in the sources that Debian has of them; versions from
//! the kernel's history.

use super::version::Versions;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use tailtrim_host::KernelVersion;
use tailtrim_host::texts::{Text, read, text};

/// Method by which the kernel finds a parameter among the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Parsing {
    /// `__setup("name")`: every word that begins with the name.
    Prefix,
    /// `__setup("name=")`, or one whose function looks at what follows the name.
    Setup,
    /// `early_param()`: exactly the name, before everything else.
    Early,
    /// `core_param()`: exactly the name, with a typed value.
    Core,
    /// Searched for in the whole line: it works, and is handed to init and reported as unknown all the same.
    Scanned,
    /// Of other architectures: nothing on x86 parses it.
    Elsewhere,
    /// The documentation names it; who parses it is not known here.
    Documented,
    /// `module_param()`: exactly the name, with a typed value; unknown ones are never reported.
    Module,
}

/// Treatment of a word whose value is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice {
    /// The value; `-` for none.
    pub(super) text: String,
    /// Whether every value that begins with it counts.
    #[serde(default)]
    pub(super) prefix: bool,
    /// The first version that knows it.
    #[serde(default)]
    pub(super) since: Option<KernelVersion>,
    /// The last version that knows it.
    #[serde(default)]
    pub(super) last: Option<KernelVersion>,
}

/// Type of a parameter's value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Value {
    /// None is looked at, but for one.
    Flag(Option<String>),
    /// One of these.
    One(Vec<Choice>),
    /// Several of these.
    Some(Vec<Choice>),
    /// Boolean as `kstrtobool()` reads it.
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    #[serde(deserialize_with = "text")]
    pub(super) name: Text,
    pub(super) parsed: Parsing,
    pub(super) value: Value,
    #[serde(default)]
    pub(super) wrong: Wrong,
    /// Whether each of several words counts.
    #[serde(default)]
    pub(super) repeats: bool,
    #[serde(default)]
    pub(super) versions: Versions,
    /// Setting that stays as it was where the word has no effect; empty where there is nothing to say.
    #[serde(default, deserialize_with = "text")]
    pub(super) remains: Text,
    /// Effect of a wrong value, where there is one.
    #[serde(default, deserialize_with = "text")]
    pub(super) wrong_does: Text,
}

/// Parameters of which no more is known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    parsed: Parsing,
    #[serde(default)]
    versions: Versions,
    names: Vec<String>,
}

impl Names {
    fn parameters(self) -> impl Iterator<Item = Parameter> {
        let Self { parsed, versions, names } = self;
        names.into_iter().map(move |name| Parameter {
            name: name.leak(),
            parsed,
            value: Value::Unknown,
            wrong: Wrong::default(),
            repeats: true,
            versions,
            remains: "",
            wrong_does: "",
        })
    }
}

/// All parameters.
#[derive(Debug, Default)]
pub(super) struct Table {
    all: Vec<Parameter>,
    by_name: HashMap<String, Vec<usize>>,
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
        read::<Vec<Parameter>>(include_str!("parameters.json"))
            .into_iter()
            .for_each(|parameter| table.insert(parameter));
        let known: HashSet<String> = table.by_name.keys().cloned().collect();
        let mut named: Vec<Parameter> = read::<Vec<Names>>(include_str!("names.json"))
            .into_iter()
            .flat_map(Names::parameters)
            .filter(|parameter| !known.contains(&key(parameter.name)))
            .collect();
        // Of names that are equally near to a mistyped word, the first one is proposed.
        named.sort_by_key(|parameter| (parameter.parsed, parameter.name.to_lowercase()));
        named.into_iter().for_each(|parameter| table.insert(parameter));
        table
    }

    fn insert(&mut self, parameter: Parameter) {
        self.by_name.entry(key(parameter.name)).or_default().push(self.all.len());
        self.all.push(parameter);
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
            parameter.parsed == Parsing::Prefix
                && word.len() > parameter.name.len()
                && word.starts_with(&key(parameter.name))
                && kernel.is_none_or(|kernel| parameter.versions.has(kernel) != Some(false))
        };
        self.all.iter().filter(swallows).max_by_key(|parameter| parameter.name.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_table_are_read() {
        assert!(TABLE.all.len() > 1_250, "{}", TABLE.all.len());
        let deep = TABLE.all.iter().filter(|known| known.value != Value::Unknown).count();
        assert!(deep > 140, "{deep}");
    }

    #[test]
    fn a_parameter_changes_with_the_kernel() {
        let parsed =
            |minor| TABLE.find("rcu-nocb-poll", Some(KernelVersion::new(6, minor))).unwrap().parsed;
        assert_eq!(parsed(1), Parsing::Early);
        assert_eq!(parsed(12), Parsing::Prefix);
        assert!(TABLE.find("rcu_nocbs_poll", None).is_none());
        let swallows = |word| TABLE.swallows(word, None).map(|flag| flag.name);
        assert_eq!(swallows("rcu-nocbs_poll"), Some("rcu_nocbs"));
        assert_eq!(swallows("rcu_nocbs"), None);
        assert_eq!(swallows("nosoftlockups"), Some("nosoftlockup"));
    }
}
