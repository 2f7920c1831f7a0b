//! SEC: what protection costs. Nothing here is ever changed automatically.

use super::*;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("security.json"),
    evaluators: &[("SEC-001", mitigations), ("SEC-002", page_tables), ("SEC-003", lockdown)],
};

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
    judge(Set, value.is_none_or(known), Warn, said)
}

fn page_tables(f: &Facts<'_>) -> Answer {
    let Some(state) = f.optional("/sys/devices/system/cpu/vulnerabilities/meltdown")? else {
        return not_applicable("this kernel tells nothing of Meltdown");
    };
    let costs = state.contains("PTI");
    judge(Set, !costs, Warn, format!("meltdown: {state}"))
}

fn lockdown(f: &Facts<'_>) -> Answer {
    let Some(state) = f.optional("/sys/kernel/security/lockdown")? else {
        return not_applicable("this kernel cannot be locked down");
    };
    let level = chosen(&state);
    judge(Set, level == "none", Warn, format!("lockdown: {}", few(&[level])))
}
