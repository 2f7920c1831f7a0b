//! Findings about one word: its name, its value, the kernel's version.

use super::finding::{Context, Finding, Kind, Severity};
use super::table::{Parameter, Parsing, TABLE, Value, Wrong};
use super::value_check::{ValueCheck, check_value};
use super::word_kinds::{WordKind, plain_value};
use tailtrim_host::{Cpus, Word};

const UNKNOWN: &str = "unknown_bootoption(), init/main.c";
const PREFIX: &str = "obsolete_checksetup(), init/main.c";
const DOCUMENTED: &str = "kernel-parameters.txt";

/// Judge a word.
///
/// `lost` is the list of an earlier rcu_nocbs= that a swallowed word throws away, and the CPUs that are offloaded
/// in the end.
pub(super) fn finding(
    word: &Word,
    kind: &WordKind,
    context: &Context,
    lost: Option<(&Cpus, &Cpus)>,
) -> Option<Finding> {
    match kind {
        WordKind::Known(parameter) => known(word, parameter, context),
        WordKind::Swallowed(flag, meant) => Some(swallowed(word, flag, *meant, context, lost)),
        WordKind::Foreign(foreign) => {
            let title = format!("{} is not a parameter of mainline Linux", word.name);
            let effect = format!(
                "Only {} have it. {} Mainline does this otherwise: {}.",
                foreign.home,
                handed_on(word, context),
                foreign.instead
            );
            let finding = Finding::new(Severity::Error, Kind::NotMainline, word, title);
            let finding = finding.effect(effect).source(UNKNOWN);
            Some(match &foreign.right {
                Some(right) => finding.right(right),
                None => finding,
            })
        }
        WordKind::UserSpace => None,
        WordKind::Near(meant) => Some(near(word, meant, context)),
        WordKind::Sysctl(right) => Some(sysctl(word, with_value(right, word))),
        WordKind::NearSysctl(variable) => {
            Some(sysctl(word, with_value(&format!("sysctl.{variable}"), word)))
        }
        WordKind::BuildOption => Some(build_option(word, context)),
        WordKind::Typographic(plain) => Some(typographic(word, plain.clone())),
        WordKind::Unknown => {
            let title = format!("unknown parameter {}", word.name);
            let effect = format!(
                "{} A program in user space may look for it; the kernel does nothing with it.",
                handed_on(word, context)
            );
            let finding = Finding::new(Severity::Warning, Kind::UnknownWord, word, title);
            Some(finding.effect(effect).source(UNKNOWN))
        }
    }
}

/// Describe the kernel's treatment of a word that it does not know.
pub(super) fn handed_on(word: &Word, context: &Context) -> String {
    if word.name.contains('.') {
        return "A name with a dot is kept for a module that may be loaded later, so nothing reports it."
            .to_owned();
    }
    let place = match word.value {
        Some(_) => "puts it into the environment of init (PID 1)",
        None => "hands it to init (PID 1) as an argument",
    };
    // The line in the log came with 5.14.
    let log = if context.before(5, 14) {
        " and logs nothing"
    } else if context.from(5, 14) {
        ", with a line \"Unknown kernel command line parameters\" in its log"
    } else {
        ", with a line in its log since 5.14"
    };
    format!("The kernel {place}{log}.")
}

/// The right name with the word's value.
fn with_value(name: &str, word: &Word) -> String {
    match &word.value {
        Some(value) => format!("{name}={value}"),
        None => name.to_owned(),
    }
}

/// Sentence about the setting that stays as it was; empty where nothing is known of it.
fn consequence(remains: &str) -> String {
    if remains.is_empty() { String::new() } else { format!(" So {remains}.") }
}

fn near(word: &Word, meant: &str, context: &Context) -> Finding {
    let remains = TABLE.find(meant, context.kernel).map_or("", |parameter| parameter.remains);
    let title = format!("unknown parameter {}, did you mean {meant}", word.name);
    Finding::new(Severity::Error, Kind::NearMiss, word, title)
        .within_name(word)
        .effect(format!("{}{}", handed_on(word, context), consequence(remains)))
        .right(with_value(meant, word))
        .source(UNKNOWN)
}

fn swallowed(
    word: &Word,
    flag: &Parameter,
    meant: Option<&str>,
    context: &Context,
    lost: Option<(&Cpus, &Cpus)>,
) -> Finding {
    let title = format!("{} is taken for {}, with which it begins", word.name, flag.name);
    let meant_one = meant.and_then(|meant| TABLE.find(meant, context.kernel));
    let remains = meant_one.map_or("", |parameter| parameter.remains);
    let matches = format!("{} matches every word that begins so", flag.name);
    let effect = match (flag.name == "rcu_nocbs", lost) {
        (true, Some((lost, offloaded))) if offloaded.is_empty() => format!(
            "{matches} (since 5.17), and without a list it throws away the list {lost} given before it: no CPU's \
             callbacks are offloaded. Nothing is logged."
        ),
        (true, Some((lost, offloaded))) => format!(
            "{matches} (since 5.17), and without a list it throws away the list {lost} given before it. Here \
             nohz_full= hides that: it puts its own CPUs {offloaded} back. Nothing is logged."
        ),
        (true, None) => {
            format!("{matches} (since 5.17); without a list it adds no CPU. Nothing is logged.")
        }
        (false, _) => {
            format!("{matches} and does what it does, whatever follows. Nothing is logged.")
        }
    };
    Finding::new(Severity::Error, Kind::SwallowedPrefix, word, title)
        .within_name(word)
        .effect(effect + &consequence(remains))
        .right(meant.unwrap_or(flag.name))
        .source(PREFIX)
}

fn sysctl(word: &Word, right: String) -> Finding {
    let title = format!("{} is a sysctl variable, which cannot be set like this", word.name);
    let finding = Finding::new(Severity::Error, Kind::NearMiss, word, title);
    finding
        .within_name(word)
        .effect(
            "The kernel takes it for a parameter of a module and reports nothing. Variables of sysctl are \
             set with sysctl. before their name, since 5.8; a misspelt one is reported when init starts.",
        )
        .right(right)
        .source("process_sysctl_arg(), fs/proc/proc_sysctl.c")
}

fn build_option(word: &Word, context: &Context) -> Finding {
    let title = format!("{} is a build option of the kernel", word.name);
    let finding = Finding::new(Severity::Error, Kind::NearMiss, word, title);
    let is_rcu = word.name.starts_with("CONFIG_RCU_NOCB");
    let name = if is_rcu && word.name != "CONFIG_RCU_NOCB_CPU" {
        " Its name is CONFIG_RCU_NOCB_CPU; Debian since 12, Ubuntu since 24.04, Red Hat and Fedora have it."
    } else {
        ""
    };
    let effect = format!(
        "{} A boot line does not change how a kernel is built.{name}",
        handed_on(word, context)
    );
    let finding = finding.effect(effect).source(UNKNOWN);
    if is_rcu { finding.right("rcu_nocbs=LIST") } else { finding }
}

fn typographic(word: &Word, right: String) -> Finding {
    let title = "a dash, a space or a quotation mark is not the one of the keyboard".to_owned();
    Finding::new(Severity::Error, Kind::BadValue, word, title)
        .effect("It came out of a text processor or a PDF file; to the kernel it is a letter.")
        .right(right)
        .source("next_arg(), lib/cmdline.c")
}

fn elsewhere(word: &Word, parameter: &Parameter, context: &Context) -> Finding {
    let title = format!("{} is a parameter of other architectures, not of x86", parameter.name);
    Finding::new(Severity::Error, Kind::OtherArchitecture, word, title)
        .effect(handed_on(word, context))
        .source(UNKNOWN)
}

fn known(word: &Word, parameter: &Parameter, context: &Context) -> Option<Finding> {
    if parameter.parsed == Parsing::Elsewhere {
        return Some(elsewhere(word, parameter, context));
    }
    if let Some(kernel) = context.kernel
        && parameter.versions.has(kernel) == Some(false)
    {
        let title = format!("Linux {kernel} does not have {}", parameter.name);
        let effect = format!(
            "Mainline has it {}. {}{}",
            parameter.versions,
            handed_on(word, context),
            consequence(parameter.remains)
        );
        let finding = Finding::new(Severity::Error, Kind::OtherVersion, word, title);
        return Some(finding.effect(effect).source(UNKNOWN));
    }
    if let Some(plain) = plain_value(word) {
        return Some(typographic(
            word,
            with_value(&word.name, &Word { value: Some(plain), ..word.clone() }),
        ));
    }
    match check_value(word, parameter, context.kernel) {
        ValueCheck::Fits => None,
        ValueCheck::Missing => Some(missing(word, parameter, context)),
        ValueCheck::Ignored => ignored(word, parameter),
        ValueCheck::Later(at, end, since) => {
            let value = word.value.as_deref().unwrap_or_default();
            let title = format!("{} takes {} since {since} only", parameter.name, &value[at..end]);
            let finding = Finding::new(Severity::Error, Kind::OtherVersion, word, title);
            Some(finding.within(word, at, end).effect(rejected(word, parameter, context)))
        }
        ValueCheck::Gone(at, end, last) => {
            let value = word.value.as_deref().unwrap_or_default();
            let title = format!("{} takes {} until {last} only", parameter.name, &value[at..end]);
            let finding = Finding::new(Severity::Error, Kind::OtherVersion, word, title);
            let finding = finding.within(word, at, end).effect(rejected(word, parameter, context));
            Some(match newest(parameter, context) {
                Some(right) => finding.right(format!("{}={right}", parameter.name)),
                None => finding,
            })
        }
        ValueCheck::Wrong(at, end, meant) => {
            Some(wrong(word, parameter, context, (at, end), meant))
        }
    }
}

/// The value that came last, where the kernel takes it.
fn newest<'a>(parameter: &'a Parameter, context: &Context) -> Option<&'a str> {
    let (Value::One(choices) | Value::Some(choices)) = &parameter.value else { return None };
    let known = choices.iter().filter(|choice| context.kernel >= choice.since);
    known.max_by_key(|choice| choice.since).map(|choice| choice.text.as_str())
}

fn missing(word: &Word, parameter: &Parameter, context: &Context) -> Finding {
    let title = format!("{} needs a value", parameter.name);
    let effect = match parameter.parsed {
        Parsing::Setup => handed_on(word, context),
        _ => "The kernel logs that the word is malformed or invalid.".to_owned(),
    };
    Finding::new(Severity::Error, Kind::BadValue, word, title)
        .effect(effect + &consequence(parameter.remains))
        .right(format!("{}={}", parameter.name, example(parameter)))
}

fn example(parameter: &Parameter) -> String {
    match &parameter.value {
        Value::One(choices) | Value::Some(choices) => {
            choices.first().map_or_else(String::new, |choice| choice.text.clone())
        }
        Value::Cpus => "LIST".to_owned(),
        Value::Bool => "1".to_owned(),
        Value::Size => "SIZE".to_owned(),
        _ => "N".to_owned(),
    }
}

/// A flag with a value: harmless unless the value says no.
fn ignored(word: &Word, parameter: &Parameter) -> Option<Finding> {
    let value = word.value.as_deref()?.to_ascii_lowercase();
    let says_no =
        matches!(value.as_str(), "0" | "n" | "no" | "off" | "false" | "disable" | "never");
    let title = format!("{} ignores its value: ={value} changes nothing", parameter.name);
    let (severity, effect) = if says_no {
        (
            Severity::Error,
            format!(
                "{} is in force all the same; leave the word out to be without it.",
                parameter.name
            ),
        )
    } else {
        (Severity::Note, format!("It does what {} alone does.", parameter.name))
    };
    let finding = Finding::new(severity, Kind::BadValue, word, title);
    let finding = finding.within(word, 0, value.len()).effect(effect).source(DOCUMENTED);
    Some(if says_no { finding } else { finding.right(parameter.name) })
}

/// Describe the kernel's treatment of a value that the parameter does not take.
fn rejected(word: &Word, parameter: &Parameter, context: &Context) -> String {
    if !parameter.wrong_does.is_empty() {
        return format!("With a value that it does not know, {}.", parameter.wrong_does);
    }
    let heard = match parameter.wrong {
        Wrong::Silent => "The value is ignored, and nothing is logged.".to_owned(),
        Wrong::Logged => "The value is ignored; the kernel log has a line about it.".to_owned(),
        Wrong::Passed => format!("The value is rejected. {}", handed_on(word, context)),
    };
    heard + &consequence(parameter.remains)
}

fn wrong(
    word: &Word,
    parameter: &Parameter,
    context: &Context,
    (at, end): (usize, usize),
    meant: Option<String>,
) -> Finding {
    let value = word.value.as_deref().unwrap_or_default();
    let name = parameter.name;
    let title = format!("{name} does not take {:?}{}", &value[at..end], expected(parameter));
    let finding = Finding::new(Severity::Error, Kind::BadValue, word, title)
        .within(word, at, end)
        .effect(rejected(word, parameter, context));
    match meant {
        Some(meant) => finding.right(format!("{name}={}{meant}{}", &value[..at], &value[end..])),
        None => finding,
    }
}

fn expected(parameter: &Parameter) -> String {
    let words = match &parameter.value {
        Value::One(choices) | Value::Some(choices) => {
            let known = choices
                .iter()
                .filter(|choice| choice.text != "-" && choice.text.parse::<u8>().is_err());
            let words: Vec<&str> = known.map(|choice| choice.text.as_str()).take(8).collect();
            words.join(", ")
        }
        Value::Bool => "0 or 1".to_owned(),
        Value::Number => "a number".to_owned(),
        Value::Size => "2M or 1G".to_owned(),
        _ => return String::new(),
    };
    format!(", expected {words}")
}

impl Finding {
    /// Point at the name of a word only.
    fn within_name(mut self, word: &Word) -> Self {
        // A quotation mark before the name would shift it.
        if word.value.is_some() && word.at + word.text().len() == word.end {
            self.end = word.at + word.name.len();
        }
        self
    }
}
