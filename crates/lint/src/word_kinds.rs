//! Classification of words: parameters, words for user space, and mistakes.

use super::nearest::{distance, nearest};
use super::table::{Parameter, Parsing, TABLE, Value, key};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
use tailtrim_host::texts::read;
use tailtrim_host::{KernelVersion, Word};

/// Meaning of a word to the kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WordKind {
    /// A parameter.
    Known(&'static Parameter),
    /// Taken for another parameter, whose name it begins with. Behind it, the name that was meant.
    Swallowed(&'static Parameter, Option<&'static str>),
    /// A parameter of kernels with this patch; what to use instead.
    Foreign(&'static Foreign),
    /// For init, for the programs of the initial file system, or for a module.
    UserSpace,
    /// Nearly a parameter.
    Near(&'static str),
    /// A variable of `sysctl`, without the word that makes it a boot parameter.
    Sysctl(String),
    /// A variable of `sysctl` that is nearly one known.
    NearSysctl(&'static str),
    /// The name of an option that a kernel is built with.
    BuildOption,
    /// A list or flag whose dash or quotation marks came out of a text processor.
    Typographic(String),
    /// Nothing known.
    Unknown,
}

/// A parameter that mainline does not have.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Foreign {
    name: String,
    /// Where it comes from.
    pub(super) home: String,
    /// Replacement in mainline.
    pub(super) instead: String,
    /// The word for that, where there is one.
    #[serde(default)]
    pub(super) right: Option<String>,
}

/// Words that are not parameters of mainline, and what they are instead.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Others {
    foreign: Vec<Foreign>,
    /// Words that are believed to be parameters, and are near to others than those that are meant.
    believed: HashMap<String, String>,
    /// Words of programs in user space, by program: they look for them in `/proc/cmdline`, or take them as arguments. `NAME*`
    /// stands for all that begin so.
    readers: BTreeMap<String, Vec<String>>,
    /// Variables of `sysctl` that a latency guide names.
    sysctls: Vec<String>,
}

static OTHERS: LazyLock<Others> = LazyLock::new(|| read(include_str!("other_words.json")));

/// Judge a word.
pub(super) fn classify(word: &Word, kernel: Option<KernelVersion>) -> WordKind {
    let name = word.name.as_str();
    if let Some(parameter) = TABLE.find(name, kernel) {
        return WordKind::Known(parameter);
    }
    if let Some(plain) = plain(&word.text()) {
        return WordKind::Typographic(plain);
    }
    if let Some(foreign) = OTHERS.foreign.iter().find(|foreign| key(name) == foreign.name) {
        return WordKind::Foreign(foreign);
    }
    if let Some(flag) = TABLE.swallows(name, kernel) {
        return WordKind::Swallowed(flag, meant(name).filter(|meant| *meant != flag.name));
    }
    if let Some(dot) = name.find('.') {
        return dotted(name, &name[..dot]);
    }
    if name.starts_with("CONFIG_") {
        return WordKind::BuildOption;
    }
    if user_space(name) {
        return WordKind::UserSpace;
    }
    match meant(name) {
        Some(near) if !is_variable(name) || distance(name, near) == 0 => WordKind::Near(near),
        _ if is_variable(name) => WordKind::UserSpace,
        _ => WordKind::Unknown,
    }
}

/// Whether a name is in capitals, as variables of init's environment are and no parameter of the kernel is.
fn is_variable(name: &str) -> bool {
    name.starts_with(|sign: char| sign.is_ascii_uppercase())
        && name
            .chars()
            .all(|sign| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_')
}

/// Letters of a short name. Of the words that other programs read ([`Others::readers`]), 3 of 28 with at most so many letters are
/// within a slip of some parameter (lvm of evm), and none of 193 longer ones.
const SHORT: usize = 4;

/// Names known in depth are meant rather than others as near.
fn meant(name: &str) -> Option<&'static str> {
    if let Some(meant) = OTHERS.believed.get(&key(name)) {
        return Some(meant);
    }
    // Short names are near to anything: only those that matter for latency are proposed.
    let short = name.len() <= SHORT;
    let likely = |parameter: &&Parameter| match parameter.parsed {
        Parsing::Elsewhere => false,
        _ => !short || parameter.value != Value::Unknown,
    };
    let names = TABLE.all().iter().filter(likely).map(|parameter| parameter.name);
    nearest(name, names)
}

fn dotted(name: &str, first: &str) -> WordKind {
    let variable = name.strip_prefix("sysctl.").unwrap_or(name);
    let with_dots = variable.replace('/', ".");
    let is_sysctl = matches!(
        with_dots.split('.').next(),
        Some("kernel" | "vm" | "net" | "fs" | "dev" | "user")
    );
    if is_sysctl && !name.starts_with("net.ifnames") && !name.starts_with("net.naming") {
        return match nearest(&with_dots, OTHERS.sysctls.iter().map(String::as_str)) {
            Some(near) if near != with_dots => WordKind::NearSysctl(near),
            _ if variable.len() == name.len() => WordKind::Sysctl(format!("sysctl.{name}")),
            _ => WordKind::UserSpace,
        };
    }
    match first {
        // The rest of the name is a path, a host, or whatever the program makes of it.
        "systemd" | "rd" | "luks" | "udev" | "plymouth" | "inst" | "vconsole" | "locale"
        | "fsck" => WordKind::UserSpace,
        _ => meant(name)
            .or_else(|| of_another_module(name))
            .map_or(WordKind::UserSpace, WordKind::Near),
    }
}

/// `processor_idle.max_cstate`: the parameter of a module whose name begins like this one.
fn of_another_module(name: &str) -> Option<&'static str> {
    let (module, parameter) = name.split_once('.')?;
    let related = |known: &str| known.starts_with(module) || module.starts_with(known);
    let mut deep = TABLE.all().iter().filter(|known| known.value != Value::Unknown);
    let found = deep.find(|known| {
        let parts = known.name.split_once('.');
        parts.is_some_and(|(other, same)| key(same) == key(parameter) && related(other))
    });
    found.map(|known| known.name)
}

/// Whether a program in user space reads such a word. No parameter of the kernel has a slash or a colon in its name, as
/// questions of debconf and Plymouth have.
fn user_space(name: &str) -> bool {
    let reads = |word: &String| match word.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => word == name,
    };
    name.contains(['/', ':']) || OTHERS.readers.values().flatten().any(reads)
}

/// The word with the signs of the keyboard; `None` where it has no others.
fn plain(text: &str) -> Option<String> {
    let dash = |sign: char| matches!(sign, '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ad}');
    let quote = |sign: char| matches!(sign, '\u{201c}'..='\u{201f}');
    let space = |sign: char| matches!(sign, '\u{a0}' | '\u{200b}' | '\u{feff}' | '\u{202f}');
    text.chars().any(|sign| dash(sign) || quote(sign) || space(sign)).then(|| {
        let keyboard = |sign: char| if dash(sign) { '-' } else { sign };
        text.chars().filter(|sign| !quote(*sign) && !space(*sign)).map(keyboard).collect()
    })
}

/// As [`plain`], for the value of a word whose name is known.
pub(super) fn plain_value(word: &Word) -> Option<String> {
    plain(word.value.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_host::BootLine;

    fn of(text: &str) -> WordKind {
        classify(&BootLine::parse(text).words()[0], Some(KernelVersion::new(6, 1)))
    }

    #[test]
    fn what_words_are() {
        assert!(matches!(of("nohz-full=1"), WordKind::Known(_)));
        assert_eq!(of("nosoftlookup"), WordKind::Near("nosoftlockup"));
        assert_eq!(of("intel_idle.max_cstat=0"), WordKind::Near("intel_idle.max_cstate"));
        assert!(
            matches!(of("rcu_nocbs_poll"), WordKind::Swallowed(flag, Some("rcu_nocb_poll")) if flag.name == "rcu_nocbs")
        );
        assert!(matches!(of("kthread_cpus=0"), WordKind::Foreign(_)));
        for legitimate in [
            "systemd.cpu_affinity=0",
            "splash",
            "BOOT_IMAGE=/vmlinuz",
            "mydriver.debug=1",
            "-b",
            "boot=live",
            "lvm",
        ] {
            assert_eq!(of(legitimate), WordKind::UserSpace, "{legitimate}");
        }
        assert_eq!(of("vm.swappiness=1"), WordKind::Sysctl("sysctl.vm.swappiness".to_owned()));
        assert_eq!(of("sysctl.net.core.bus_poll=50"), WordKind::NearSysctl("net.core.busy_poll"));
        assert_eq!(of("sysctl.vm.swappiness=1"), WordKind::UserSpace);
        assert_eq!(of("CONFIG_RCU_NOCB_FULL"), WordKind::BuildOption);
        assert_eq!(of("frobnicate=1"), WordKind::Unknown);
        assert_eq!(of("\u{2013}d"), WordKind::Typographic("-d".to_owned()));
    }

    #[test]
    fn no_word_that_is_legitimate_is_also_a_parameter_of_another_name() {
        let is_parameter =
            |word: &str| TABLE.find(word, None).is_some() || TABLE.swallows(word, None).is_some();
        let twice: Vec<_> =
            OTHERS.readers.values().flatten().filter(|word| is_parameter(word)).collect();
        assert_eq!(twice, Vec::<&String>::new());
    }
}
