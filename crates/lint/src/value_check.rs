//! Check of a value against those that a parameter takes.

use super::nearest::nearest;
use super::table::{Choice, Parameter, Parsing, Value};
use tailtrim_host::KernelVersion;
use tailtrim_host::Word;

/// Result of comparing a value with its parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueCheck {
    /// The parameter takes it, or it is not known what it takes.
    Fits,
    /// It takes a value, and there is none.
    Missing,
    /// It looks at no value, and there is one.
    Ignored,
    /// These bytes of the value are none that it takes; perhaps one was meant.
    Wrong(usize, usize, Option<String>),
    /// These bytes are a value that came in a later version.
    Later(usize, usize, KernelVersion),
    /// These bytes are a value that later versions no longer take: the last that does.
    Gone(usize, usize, KernelVersion),
}

/// Compare a word with its parameter. Lists of CPUs are for [`super::predict`].
pub(super) fn check_value(
    word: &Word,
    parameter: &Parameter,
    kernel: Option<KernelVersion>,
) -> ValueCheck {
    let Some(value) = word.value.as_deref() else { return without(parameter) };
    let whole = |fits: bool, near: Option<&str>| match fits {
        true => ValueCheck::Fits,
        false => ValueCheck::Wrong(0, value.len(), near.map(str::to_owned)),
    };
    match &parameter.value {
        Value::Flag(Some(only)) if only == value => ValueCheck::Fits,
        Value::Flag(_) => ValueCheck::Ignored,
        Value::One(choices) => among(value, 0, choices, kernel),
        Value::Some(choices) => several(value, choices, kernel),
        Value::Bool => whole(is_bool(value), near_bool(value)),
        Value::Number => whole(is_number(value), None),
        Value::Size => whole(huge_page(value) || !parameter.name.contains("hugepagesz"), None),
        Value::Cpus | Value::Free | Value::Unknown => ValueCheck::Fits,
    }
}

fn without(parameter: &Parameter) -> ValueCheck {
    let nothing = |choices: &[Choice]| choices.iter().any(|choice| choice.text == "-");
    match &parameter.value {
        Value::One(choices) | Value::Some(choices) if !nothing(choices) => ValueCheck::Missing,
        Value::Cpus if parameter.parsed != Parsing::Prefix => ValueCheck::Missing,
        Value::Bool if parameter.parsed != Parsing::Module => ValueCheck::Missing,
        Value::Number | Value::Size => ValueCheck::Missing,
        _ => ValueCheck::Fits,
    }
}

fn among(value: &str, at: usize, choices: &[Choice], kernel: Option<KernelVersion>) -> ValueCheck {
    let is = |choice: &&Choice| {
        // auditing takes ON as well as on, the others do not: `audit` names both cases by kernel.
        value == choice.text || choice.prefix && value.starts_with(&choice.text)
    };
    let end = at + value.len();
    match choices.iter().find(is) {
        Some(Choice { since: Some(since), .. }) if kernel.is_some_and(|kernel| kernel < *since) => {
            ValueCheck::Later(at, end, *since)
        }
        Some(Choice { last: Some(last), .. }) if kernel.is_some_and(|kernel| kernel > *last) => {
            ValueCheck::Gone(at, end, *last)
        }
        Some(_) => ValueCheck::Fits,
        None => {
            let texts = choices.iter().filter(|choice| !choice.prefix && choice.text != "-");
            let near = nearest(value, texts.map(|choice| choice.text.as_str()));
            ValueCheck::Wrong(at, end, near.map(str::to_owned).or_else(|| synonym(value, choices)))
        }
    }
}

/// `off` where the word is `disable`, and the like.
fn synonym(value: &str, choices: &[Choice]) -> Option<String> {
    const NO: [&str; 7] = ["off", "disable", "0", "no", "never", "n", "false"];
    const YES: [&str; 7] = ["on", "enable", "1", "yes", "always", "y", "true"];
    let has = |word: &&&str| choices.iter().any(|choice| choice.text == **word && !choice.prefix);
    let lower = value.to_ascii_lowercase();
    [NO, YES]
        .iter()
        .find(|words| {
            words.contains(&lower.as_str()) || words.contains(&lower.trim_end_matches('d'))
        })
        .and_then(|words| words.iter().find(has))
        .map(|word| (*word).to_owned())
}

fn several(value: &str, choices: &[Choice], kernel: Option<KernelVersion>) -> ValueCheck {
    let mut at = 0;
    for part in value.split(',') {
        let fit = if part.is_empty() { ValueCheck::Fits } else { among(part, at, choices, kernel) };
        if fit != ValueCheck::Fits {
            return fit;
        }
        at += part.len() + 1;
    }
    ValueCheck::Fits
}

/// As `kstrtobool()`: the first letter, or the first two, count.
fn is_bool(value: &str) -> bool {
    let mut letters = value.chars().map(|letter| letter.to_ascii_lowercase());
    match letters.next() {
        Some('y' | 't' | '1' | 'n' | 'f' | '0') => true,
        Some('o') => matches!(letters.next(), Some('n' | 'f')),
        _ => false,
    }
}

fn near_bool(value: &str) -> Option<&'static str> {
    match value.to_ascii_lowercase().as_str() {
        "disable" | "disabled" | "never" => Some("0"),
        "enable" | "enabled" | "always" => Some("1"),
        _ => None,
    }
}

fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).is_ok(),
        None => digits.bytes().next().is_some_and(|digit| digit.is_ascii_digit()) && plain(digits),
    }
}

/// Some take several numbers, or a number with a unit.
fn plain(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b',' | b'.' | b'-'))
}

/// Whether x86 has huge pages of a size: 2 MiB or 1 GiB.
pub(super) fn huge_page(value: &str) -> bool {
    matches!(bytes(value), Some(0x20_0000 | 0x4000_0000))
}

/// As `memparse()`: a number and a unit.
pub(super) fn bytes(value: &str) -> Option<u64> {
    let end = value.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(value.len());
    let shift = match value[end..].chars().next().map(|unit| unit.to_ascii_uppercase()) {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        _ => 0,
    };
    value[..end].parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::super::table::TABLE;
    use super::*;
    use tailtrim_host::BootLine;

    fn of(text: &str) -> ValueCheck {
        let kernel = Some(KernelVersion::new(6, 1));
        let line = BootLine::parse(text);
        let word = &line.words()[0];
        check_value(word, TABLE.find(&word.name, kernel).unwrap(), kernel)
    }

    #[test]
    fn values_that_fit() {
        for text in [
            "tsc=reliable",
            "tsc=noirqtime",
            "mce",
            "mce=ignore_ce",
            "mce=3000",
            "nosmt",
            "nosmt=force",
            "mitigations=auto,nosmt",
            "audit=off",
            "nmi_watchdog=panic,0",
            "psi=off",
            "psi=false",
            "iommu=pt",
            "iommu=soft,nopt",
            "rcutree.use_softirq=0",
            "hugepagesz=1G",
            "hugepagesz=2048K",
            "rcu_nocbs",
            "quiet",
            "split_lock_detect=ratelimit:5",
            "intel_pstate=disable",
            "rcutree.enable_rcu_lazy",
            "skew_tick=1",
            "loglevel=3",
            "log_buf_len=16M",
        ] {
            assert_eq!(of(text), ValueCheck::Fits, "{text}");
        }
    }

    #[test]
    fn values_that_do_not() {
        let wrong = |at, end, near: &str| {
            ValueCheck::Wrong(at, end, Some(near.to_owned()).filter(|near| !near.is_empty()))
        };
        for (text, check) in [
            ("tsc=relaible", wrong(0, 8, "reliable")),
            ("mce=ignorece", wrong(0, 8, "ignore_ce")),
            ("transparent_hugepage=nevr", wrong(0, 4, "never")),
            ("numa_balancing=off", wrong(0, 3, "disable")),
            ("mitigations=no", wrong(0, 2, "off")),
            ("transparent_hugepage=disabled", wrong(0, 8, "never")),
            ("iommu=pt,frce", wrong(3, 7, "force")),
            ("psi=disable", wrong(0, 7, "0")),
            ("hugepagesz=4M", wrong(0, 2, "")),
            ("hugepagesz=1Gi", ValueCheck::Fits),
            ("amd_pstate=active", ValueCheck::Later(0, 6, KernelVersion::new(6, 3))),
            ("mitigations=auto,no_guest_host", ValueCheck::Later(0, 18, KernelVersion::new(6, 17))),
            ("nosoftlockup=0", ValueCheck::Ignored),
            ("isolcpus", ValueCheck::Missing),
            ("skew_tick", ValueCheck::Missing),
            ("skew_tick=yes", wrong(0, 3, "")),
        ] {
            assert_eq!(of(text), check, "{text}");
        }
    }
}
