//! The CPUs from which irqbalance keeps interrupts, as it reads its settings (irqbalance 1.9.2: `setup_banned_cpus()`,
//! cputree.c).

use super::facts::Facts;
use std::collections::HashMap;
use tailtrim_host::{Cpus, Unread};

/// Files with its environment in the units of distributions. Later ones count.
const FILES: [&str; 3] =
    ["/usr/lib/irqbalance/defaults.env", "/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
const LIST: &str = "IRQBALANCE_BANNED_CPULIST";
const MASK: &str = "IRQBALANCE_BANNED_CPUS";
const ARGUMENTS: &str = "IRQBALANCE_ARGS";

/// CPUs that irqbalance leaves out, and why these.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Banned {
    pub(crate) cpus: Cpus,
    pub(crate) by: By,
    /// Options with interrupts that it leaves where they are.
    pub(crate) unmoved: Vec<String>,
}

/// Source of the CPUs that it leaves out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The kernel: CPUs that it shows as isolated and as free of ticks.
    Itself,
    /// A variable with this value, which takes the place of what the kernel shows.
    Variable { name: &'static str, value: String, mistaken: bool },
}

impl Banned {
    /// Read the files of its unit, and what the kernel shows.
    pub(crate) fn read(f: &Facts<'_>) -> Result<Self, Unread> {
        let mut variables = HashMap::new();
        for path in FILES {
            variables.extend(assignments(&f.optional(path)?.unwrap_or_default()));
        }
        let set = |name: &'static str| {
            Some((name, variables.get(name).filter(|value| !value.is_empty())?.clone()))
        };
        let unmoved = variables.get(ARGUMENTS).map(|text| unmoved(text)).unwrap_or_default();
        let Some((name, value)) = set(MASK).or_else(|| set(LIST)) else {
            let mut cpus = Cpus::none();
            for path in ["/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/nohz_full"] {
                let shown = f.optional(path)?.and_then(|text| text.parse().ok());
                cpus = cpus.union(&shown.unwrap_or_default());
            }
            return Ok(Self { cpus, by: By::Itself, unmoved });
        };
        let (cpus, mistaken) = if name == MASK { from_mask(&value) } else { from_list(&value) };
        Ok(Self { cpus, by: By::Variable { name, value, mistaken }, unmoved })
    }
}

/// Options that name interrupts, modules or a script that decides.
fn unmoved(arguments: &str) -> Vec<String> {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let name = word.split('=').next().unwrap_or_default();
        if !matches!(name, "--banirq" | "-i" | "--banmod" | "-m" | "--policyscript" | "-l") {
            continue;
        }
        let next = if word.contains('=') { None } else { words.get(at + 1) };
        found.push(next.map_or_else(|| (*word).to_owned(), |next| format!("{word} {next}")));
    }
    found
}

/// Variables of a file as systemd reads it (`EnvironmentFile=`): quotation marks around a value are taken away, and
/// text behind it is not a comment. Lines with `export` are invalid.
fn assignments(text: &str) -> HashMap<String, String> {
    let named = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        name.chars().all(sign).then(|| (name.to_owned(), unquoted(value)))
    };
    let lines = text.lines().map(str::trim_start);
    lines.filter(|line| !line.starts_with(['#', ';'])).filter_map(named).collect()
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
        if let Some((inner, behind)) = inner {
            return inner.to_owned() + behind.trim_start();
        }
    }
    value.to_owned()
}

/// A list as `cpulist_parse()` takes it: up to the first mistake, which is not reported, and whether there is one.
fn from_list(text: &str) -> (Cpus, bool) {
    let mut cpus = Vec::new();
    let mut parts = text.trim().split(',').peekable();
    while let Some(part) = parts.next() {
        if part.is_empty() {
            // Nothing before a comma is taken for 0.
            cpus.extend(parts.peek().map(|_| 0));
            continue;
        }
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|sign| sign.is_ascii_digit());
            text.parse::<u32>().ok().filter(|number| digits && *number < MOST)
        };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            // It takes a dash alone at the end for nothing.
            _ if part == "-" && parts.peek().is_none() && !cpus.is_empty() => {}
            _ => return (cpus.into_iter().collect(), true),
        }
    }
    (cpus.into_iter().collect(), false)
}

/// CPUs for which irqbalance is built.
const MOST: u32 = 4096;

fn from_mask(text: &str) -> (Cpus, bool) {
    let text = text.trim().trim_end_matches(',');
    let digits = text.bytes().all(|sign| sign.is_ascii_hexdigit() || sign == b',');
    match Cpus::from_mask(text) {
        Ok(cpus) if digits => (cpus, false),
        _ => (Cpus::none(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and what `irqbalance --debug` of 1.9.2 prints as "Banned CPUs" for them.
    #[test]
    fn lists_and_masks_as_irqbalance_takes_them() {
        for (text, banned) in [
            ("0", "0"),
            ("2-3 ", "2-3"),
            ("03", "3"),
            ("2-3,", "2-3"),
            ("2-3,-", "2-3"),
            (",2", "0,2"),
            ("2,,3", "0,2-3"),
            // Up to the first mistake.
            ("4-3", ""),
            ("2,4-3", "2"),
            ("2, 3", "2"),
            ("1,2-3 4", "1"),
            ("-", ""),
            ("2-", ""),
            ("2 ,3", ""),
            ("\"2-3\"", ""),
            ("2-3 # x", ""),
            ("2-5:2/4", ""),
            ("5000", ""),
            ("all", ""),
            ("0x3", ""),
            ("2-3-4", ""),
        ] {
            let (cpus, mistaken) = from_list(text);
            assert_eq!(cpus.to_string(), banned, "{text}");
            let fine = ["0", "2-3 ", "03", "2-3,", "2-3,-", ",2", "2,,3"].contains(&text);
            assert_eq!(mistaken, !fine, "{text}");
        }
        for (text, banned) in [
            ("0000000c", "2-3"),
            ("c,00000001", "0,34-35"),
            ("C", "2-3"),
            ("c,", "2-3"),
            ("0xc", ""),
            ("zz", ""),
        ] {
            assert_eq!(from_mask(text).0.to_string(), banned, "{text}");
        }
    }

    #[test]
    fn files_as_systemd_reads_them() {
        let text = "# IRQBALANCE_BANNED_CPULIST=1\nIRQBALANCE_BANNED_CPULIST=\"2-3\"\nexport IRQBALANCE_BANNED_CPUS=c\n\
            IRQBALANCE_ARGS='--banirq=30 -i 31 --journal'\n";
        let found = assignments(text);
        assert_eq!(found[LIST], "2-3");
        assert!(!found.contains_key(MASK));
        assert_eq!(unmoved(&found[ARGUMENTS]), ["--banirq=30", "-i 31"]);
        assert_eq!(assignments("IRQBALANCE_BANNED_CPULIST=\"2-3\" # x\n")[LIST], "2-3# x");
    }
}
