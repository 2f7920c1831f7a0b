//! The questions that many checks have in common.

use super::answer::{Answer, CheckStatus, EvidenceLevel::Set, Finding, judge, not_applicable};
use super::facts::Facts;
use std::collections::BTreeMap;
use tailtrim_host::paths::ETHTOOL;
use tailtrim_host::{Cpus, Unread};

/// The last name of a path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A file is as wanted. A kernel without the file lacks the feature.
pub(crate) fn file(
    f: &Facts<'_>,
    path: &str,
    otherwise: CheckStatus,
    good: impl Fn(&str) -> bool,
) -> Answer {
    match f.optional(path)? {
        None => not_applicable(format!("this kernel has no {}", name(path))),
        Some(text) => judge(
            Set,
            good(&text),
            otherwise,
            format!("{} is {}", name(path), short(chosen(&text))),
        ),
    }
}

/// A sysctl, by its dotted name, is as wanted.
pub(crate) fn sysctl(
    f: &Facts<'_>,
    key: &str,
    otherwise: CheckStatus,
    good: impl Fn(&str) -> bool,
) -> Answer {
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    match f.optional(&path)? {
        None => not_applicable(format!("this kernel has no {key}")),
        Some(text) => judge(Set, good(&text), otherwise, format!("{key} is {}", short(&text))),
    }
}

/// A number in a text is at most this.
pub(crate) fn at_most(limit: i64) -> impl Fn(&str) -> bool {
    move |text| text.parse::<i64>().is_ok_and(|number| number <= limit)
}

/// A number in a text is at least this.
pub(crate) fn at_least(limit: i64) -> impl Fn(&str) -> bool {
    move |text| text.parse::<i64>().is_ok_and(|number| number >= limit)
}

/// The chosen one of words such as `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(word, _)| word)
}

/// Some CPUs keep off the isolated ones.
pub(crate) fn keeps_off(f: &Facts<'_>, what: &str, cpus: &Cpus, otherwise: CheckStatus) -> Answer {
    let touched = cpus.intersection(f.iso());
    let said = match touched.is_empty() {
        true => format!("{what}: {}", cpus.named()),
        false => format!("{what}: {} {touched} are in it ({cpus})", f.isolated_cpus()),
    };
    judge(Set, touched.is_empty(), otherwise, said)
}

/// A file for each isolated CPU (each CPU where none is isolated) is as wanted. `{}` stands for the number.
pub(crate) fn per_cpu(
    f: &Facts<'_>,
    pattern: &str,
    otherwise: CheckStatus,
    good: impl Fn(&str) -> bool,
) -> Answer {
    let values = cpu_values(f, pattern)?;
    let what = name(pattern);
    if values.is_empty() {
        return not_applicable(format!("no CPU here has {what}"));
    }
    let bad = values.iter().any(|(value, _)| !good(value));
    let shown = values.iter().filter(|(value, _)| !bad || !good(value));
    let said = shown.map(|(value, cpus)| format!("{}: {what} is {}", cpus.named(), short(value)));
    judge(Set, !bad, otherwise, said.collect::<Vec<_>>().join("; "))
}

/// Values of a per-CPU file and the CPUs that have them. Empty where no CPU has the file; a CPU that lacks
/// what others have is an error.
pub(crate) fn cpu_values(f: &Facts<'_>, pattern: &str) -> Result<BTreeMap<String, Cpus>, Unread> {
    let mut values: BTreeMap<String, Cpus> = BTreeMap::new();
    let mut absent = None;
    for cpu in watched(f)?.iter() {
        let path = pattern.replace("{}", &cpu.to_string());
        match f.optional(&path)? {
            Some(text) => {
                let known = values.entry(text).or_default();
                *known = known.union(&[cpu].into_iter().collect());
            }
            None => absent = Some(path),
        }
    }
    match absent {
        Some(path) if !values.is_empty() => Err(Unread::Missing { path }),
        _ => Ok(values),
    }
}

/// The isolated CPUs; all of them where none is to be isolated.
pub(crate) fn watched(f: &Facts<'_>) -> Result<Cpus, Unread> {
    let online = f.cpus("/sys/devices/system/cpu/online")?;
    Ok(if f.iso().is_empty() { online } else { f.iso().clone() })
}

/// Ask of each interface; the worst answer is that of all.
pub(crate) fn per_nic(f: &Facts<'_>, ask: impl Fn(&Facts<'_>, &str) -> Answer) -> Answer {
    let mut answers = Vec::new();
    for nic in &f.intent().nics {
        let mut answer = ask(f, nic)?;
        answer.said = format!("{nic}: {}", answer.said);
        answers.push(answer);
    }
    Ok(worst(answers))
}

/// Of several findings the worst, with what all that are as bad say.
pub(crate) fn worst(mut answers: Vec<Finding>) -> Finding {
    answers.sort_by_key(|finding| finding.verdict);
    let mut answers = answers.into_iter();
    let Some(mut first) = answers.next() else {
        return Finding::not_applicable("there is nothing to ask");
    };
    for other in answers.filter(|other| other.verdict == first.verdict) {
        first.said = format!("{}; {}", first.said, other.said);
        first.evidence.extend(other.evidence);
    }
    first
}

/// Value that `ethtool` prints for an interface under a key; `None` where the driver does not know it.
pub(crate) fn ethtool(
    f: &Facts<'_>,
    nic: &str,
    what: &str,
    key: &str,
) -> Result<Option<String>, Unread> {
    let folder = format!("{ETHTOOL}/{nic}");
    let path = format!("{folder}/{what}");
    match f.keyed_value(&path, key) {
        // The interface was asked, and its driver has nothing to say of this.
        Err(Unread::Missing { .. }) if f.list(&folder).is_ok() => Ok(None),
        other => other,
    }
}

/// CPUs, or the word for none.
pub(crate) fn or_none(cpus: &Cpus) -> String {
    if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() }
}

fn short(text: &str) -> String {
    if text.is_empty() { "empty".to_owned() } else { super::answer::Evidence::new("", text).value }
}
