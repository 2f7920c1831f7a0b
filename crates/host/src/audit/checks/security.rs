//! SEC: what protection costs. Nothing here is ever changed automatically.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{chosen, few};
use super::super::check::{Check, Importance};
use super::super::facts::Facts;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "SEC-001",
        title: "Mitigations of CPU vulnerabilities are chosen on purpose",
        importance: Importance::Low,
        why: "Flushing predictors and caches makes each entry into the kernel and each exit of a virtual machine more expensive. The effect on polling programs is small.",
        read_from: &["/sys/devices/system/cpu/vulnerabilities/*", "/proc/cmdline"],
        wanted: "a mitigations= that the kernel knows (auto, off, auto,nosmt), or the default",
        cost: "without: secrets of one program are readable by another",
        set_boot: "mitigations=off only where all code is trusted",
        undo: "remove the word and reboot",
        source: "kernel-parameters.txt; Documentation/admin-guide/hw-vuln",
        evaluate: mitigations,
        ..Check::BLANK
    },
    Check {
        id: "SEC-002",
        title: "Separate page tables for the kernel",
        importance: Importance::Low,
        why: "On CPUs open to Meltdown each entry into the kernel changes page tables: some 100 ns for each interrupt and system call.",
        read_from: &["/sys/devices/system/cpu/vulnerabilities/meltdown"],
        wanted: "Not affected, or a decision",
        cost: "without: programs can read the kernel's memory",
        set_boot: "nopti only where all code is trusted",
        undo: "remove the word and reboot",
        source: "kernel-parameters.txt; Documentation/arch/x86/pti.rst",
        evaluate: page_tables,
        ..Check::BLANK
    },
    Check {
        id: "SEC-003",
        title: "Kernel lockdown is known",
        importance: Importance::Low,
        why: "With Secure Boot the kernel may refuse debugfs, registers and tracing even to root: checks then answer unknown.",
        read_from: &["/sys/kernel/security/lockdown"],
        wanted: "none, or known",
        set_boot: "Secure Boot off",
        undo: "Secure Boot on",
        source: "kernel_lockdown(7)",
        evaluate: lockdown,
        ..Check::BLANK
    },
];

fn mitigations(f: &Facts<'_>) -> Answer {
    let flaws = f.glob("/sys/devices/system/cpu/vulnerabilities/*")?;
    if flaws.is_empty() {
        return not_applicable("this kernel tells nothing of CPU flaws");
    }
    let open = flaws.iter().filter(|(_, text)| text.starts_with("Vulnerable")).count();
    let line = f.boot()?;
    let value = line.last("mitigations");
    let known = |value: &str| {
        let mut words = value.split([',', ';']);
        matches!(words.next(), Some("auto" | "off" | "auto:nosmt"))
    };
    let said = format!(
        "mitigations={}, {open} of {} flaws open",
        value.unwrap_or("(default)"),
        flaws.len()
    );
    judge(EvidenceLevel::Set, value.is_none_or(known), CheckStatus::Warn, said)
}

fn page_tables(f: &Facts<'_>) -> Answer {
    let Some(state) = f.optional("/sys/devices/system/cpu/vulnerabilities/meltdown")? else {
        return not_applicable("this kernel tells nothing of Meltdown");
    };
    let costs = state.contains("PTI");
    judge(EvidenceLevel::Set, !costs, CheckStatus::Warn, format!("meltdown: {state}"))
}

fn lockdown(f: &Facts<'_>) -> Answer {
    let Some(state) = f.optional("/sys/kernel/security/lockdown")? else {
        return not_applicable("this kernel cannot be locked down");
    };
    let level = chosen(&state);
    judge(
        EvidenceLevel::Set,
        level == "none",
        CheckStatus::Warn,
        format!("lockdown: {}", few(&[level])),
    )
}
