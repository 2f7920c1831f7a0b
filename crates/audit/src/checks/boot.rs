//! BOOT: does the boot line mean what its author meant?

use super::*;
use crate::intent::boot_list;
use tailtrim_lint::{self as lint, Severity};

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("boot.json"),
    evaluators: &[
        ("BOOT-001", unknown_words),
        ("BOOT-002", swallowed),
        ("BOOT-003", lists_take_effect),
        ("BOOT-004", contradictions),
        ("BOOT-005", next_boot),
    ],
};

/// Findings of the linter about the running line that belong to a check.
fn lint_findings(f: &Facts<'_>, check: &str) -> Result<Vec<lint::Finding>, Unread> {
    let line = f.text("/proc/cmdline")?;
    let kernel = f.kernel().ok();
    // Without the machine, lists are not compared with it: that is BOOT-003's.
    let report = lint::lint(&line, &lint::Context { kernel, cpus: None });
    let serious = |found: &lint::Finding| found.check == check && found.severity != Severity::Note;
    Ok(report.findings.into_iter().filter(serious).collect())
}

fn summary(findings: &[lint::Finding]) -> String {
    let one = |found: &lint::Finding| match &found.right {
        Some(right) => format!("{} (write {right}): {}", found.word, found.title),
        None => format!("{}: {}", found.word, found.title),
    };
    findings.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn verdict(findings: &[lint::Finding]) -> CheckStatus {
    let error = findings.iter().any(|found| found.severity == Severity::Error);
    if error { Fail } else { Warn }
}

/// Words that are for programs, not for the kernel.
const USER_SPACE_WORDS: &[&str] = &[
    "BOOT_IMAGE",
    "splash",
    "rhgb",
    "ostree",
    "rd.",
    "systemd.",
    "initrd",
    "nosplash",
    "vt.handoff",
];

fn unknown_words(f: &Facts<'_>) -> Answer {
    let found = lint_findings(f, "BOOT-001")?;
    if !found.is_empty() {
        return judge(Asked, false, verdict(&found), summary(&found));
    }
    let log = f.log()?;
    match log.after("Unknown kernel command line parameters") {
        Some(notice) => {
            let words = notice.trim_matches(|c: char| c == '"' || c == ':' || c.is_whitespace());
            let words = words.split('"').next().unwrap_or(words);
            let strange: Vec<&str> = words
                .split_whitespace()
                .filter(|word| !USER_SPACE_WORDS.iter().any(|known| word.starts_with(known)))
                .collect();
            let said = match strange.is_empty() {
                true => "only words for programs are unknown to the kernel".to_owned(),
                false => format!("the kernel does not know {}", few(&strange)),
            };
            let answer =
                Finding::new(if strange.is_empty() { CheckStatus::Ok } else { Warn }, Set, said);
            Ok(answer.because(tailtrim_host::paths::LOG, notice))
        }
        None if log.whole() => ok(Set, "the kernel knows every word"),
        None => {
            unknown("no known typo in the line, but the beginning of the kernel's log is missing")
        }
    }
}

fn swallowed(f: &Facts<'_>) -> Answer {
    let found = lint_findings(f, "BOOT-002")?;
    if found.is_empty() {
        return ok(Asked, "no word matches a shorter parameter");
    }
    let effect = f.log().ok().and_then(|log| log.after("Offload RCU callbacks from CPUs:"));
    let mut finding = Finding::new(verdict(&found), Asked, summary(&found));
    if let Some(effect) = effect {
        finding.level = Some(Set);
        finding = finding.because(
            tailtrim_host::paths::LOG,
            &format!("Offload RCU callbacks from CPUs: {effect}"),
        );
    }
    Ok(finding)
}

fn lists_take_effect(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let possible = f.cpus("/sys/devices/system/cpu/possible")?;
    let mut wrong = Vec::new();
    let mut right = Vec::new();
    for (name, path) in [
        ("isolcpus", "/sys/devices/system/cpu/isolated"),
        ("nohz_full", "/sys/devices/system/cpu/nohz_full"),
    ] {
        let Some(value) = line.last(name) else { continue };
        let Some(asked) = boot_list(value, &possible) else {
            wrong.push(format!("{name}={value} is not a list of CPUs"));
            continue;
        };
        let effective = f.optional(path)?.map_or(Ok(Cpus::none()), |_| f.cpus(path))?;
        let text = format!("{name}={value} gives {}", or_none(&effective));
        if asked == effective { right.push(text) } else { wrong.push(text) }
    }
    if wrong.is_empty() && right.is_empty() {
        return not_applicable("the line has neither isolcpus= nor nohz_full=");
    }
    let good = wrong.is_empty();
    judge(Set, good, Fail, (if good { right } else { wrong }).join("; "))
}

fn contradictions(f: &Facts<'_>) -> Answer {
    let found = lint_findings(f, "BOOT-004")?;
    let good = found.is_empty();
    let said = if good { "no parameter contradicts another".to_owned() } else { summary(&found) };
    judge(Asked, good, Warn, said)
}

/// Parameters whose loss a latency promise would feel.
const LATENCY_PARAMETERS: &[&str] = &[
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "irqaffinity",
    "idle",
    "nosmt",
    "tsc",
    "skew_tick",
    "intel_pstate",
    "intel_idle.max_cstate",
    "processor.max_cstate",
    "nosoftlockup",
    "nowatchdog",
    "nmi_watchdog",
    "audit",
    "mce",
    "transparent_hugepage",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "mitigations",
    "iommu",
    "intel_iommu",
    "pcie_aspm",
    "numa_balancing",
];

fn next_boot(f: &Facts<'_>) -> Answer {
    let running = f.boot()?;
    let lines = configured(f)?;
    if lines.is_empty() {
        return not_applicable("none of the known boot loader configurations is here");
    }
    let all = BootLine::parse(&lines.join(" "));
    let words = |line: &BootLine| -> Vec<(String, Option<String>)> {
        let ours =
            line.words().iter().filter(|word| LATENCY_PARAMETERS.iter().any(|name| word.is(name)));
        ours.map(|word| (word.name.replace('-', "_"), word.value.clone())).collect()
    };
    let (now, next) = (words(&running), words(&all));
    let shown = |(name, value): &(String, Option<String>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.clone(),
    };
    let lost: Vec<String> = now.iter().filter(|word| !next.contains(word)).map(shown).collect();
    let new: Vec<String> = next.iter().filter(|word| !now.contains(word)).map(shown).collect();
    let mut said = Vec::new();
    if !lost.is_empty() {
        said.push(format!("not in the boot loader's configuration: {}", few(&lost)));
    }
    if !new.is_empty() {
        said.push(format!("configured, but not running yet: {}", few(&new)));
    }
    let good = said.is_empty();
    let said = if good { "running and configured words agree".to_owned() } else { said.join("; ") };
    judge(Asked, good, Warn, said)
}

/// Boot lines in the configuration of this host's boot loaders.
fn configured(f: &Facts<'_>) -> Result<Vec<String>, Unread> {
    let mut lines = Vec::new();
    let mut grub: Vec<(String, String)> = Vec::new();
    if let Some(text) = f.optional("/etc/default/grub")? {
        grub.push(("/etc/default/grub".to_owned(), text));
    }
    grub.extend(f.glob("/etc/default/grub.d/*")?);
    for (_, text) in grub {
        let values =
            text.lines().filter(|line| line.trim_start().starts_with("GRUB_CMDLINE_LINUX"));
        let values = values.filter_map(|line| line.split_once('='));
        lines.extend(values.map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned()));
    }
    let release = f.text("/proc/sys/kernel/osrelease")?;
    for (_, text) in f.glob("/boot/loader/entries/*")? {
        if text.contains(&release) {
            let options = text.lines().filter_map(|line| line.strip_prefix("options"));
            lines.extend(options.map(|line| line.trim().to_owned()));
        }
    }
    for path in ["/etc/kernel/cmdline", "/boot/firmware/cmdline.txt"] {
        lines.extend(f.optional(path)?);
    }
    Ok(lines)
}
