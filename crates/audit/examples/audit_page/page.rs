//! The pages about all checks of the audit: one for each family, and their index.

use std::collections::BTreeMap;
use tailtrim_audit::{self as audit, Check};

/// Families in the order of the index: name, file, subject.
const FAMILIES: [(&str, &str, &str); 16] = [
    ("BOOT", "boot-line", "Boot line"),
    ("ISO", "isolation", "CPU isolation, kernel threads and RCU"),
    ("SCH", "scheduler", "Scheduler"),
    ("IRQ", "interrupts", "Interrupts and softirqs"),
    ("PWR", "power", "Frequencies and idle states"),
    ("CLK", "clocks", "Clocks and ticks"),
    ("MEM", "memory", "Memory and TLB"),
    ("CAT", "cache", "Last-level cache"),
    ("NET", "network", "Interfaces, queues and packet path"),
    ("DPK", "dpdk", "DPDK programs"),
    ("VM", "virtualisation", "Virtual machines"),
    ("WD", "watchdogs", "Watchdogs"),
    ("AUD", "error-reports", "System call auditing and error reports"),
    ("SVC", "services", "Services and kernel build"),
    ("FW", "firmware", "Firmware"),
    ("SEC", "security", "Security mitigations"),
];

/// Path below `docs/` and text of each page, from the checks' data.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut checks: BTreeMap<&str, Vec<&Check>> = BTreeMap::new();
    for check in audit::all() {
        checks.entry(check.family()).or_default().push(check);
    }
    let mut index = String::from(include_str!("begin.md"));
    let mut pages = Vec::new();
    for (family, file, subject) in FAMILIES {
        let mut of_family = checks.remove(family).unwrap_or_default();
        of_family.sort_by_key(|check| check.id);
        index += &format!("\n## [{subject}](audit/{file}.md)\n\n");
        let mut text = format!("# {subject}\n\nThe family {family} of the [audit](../audit.md).\n");
        for check in of_family {
            index += &format!("* {}: {}\n", check.id, check.title);
            text += &section(check);
        }
        pages.push((format!("audit/{file}.md"), text));
    }
    assert!(checks.is_empty(), "families without a page: {:?}", checks.keys());
    pages.push(("audit.md".to_owned(), index));
    pages
}

fn section(check: &Check) -> String {
    let mut text = format!("\n## {}: {}\n\n{}\n\n", check.id, check.title, check.why);
    let since = check.since.map(|since| format!("Linux {since} and later")).unwrap_or_default();
    let read =
        check.read_from.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    for (name, value) in [
        ("importance", check.importance.word()),
        ("read from", &read),
        ("wanted", check.wanted),
        ("cost", check.cost),
        ("now", check.set_now),
        ("at boot", check.set_boot),
        ("undo", check.undo),
        ("kernels", &since),
        ("source", check.source),
    ] {
        if !value.is_empty() {
            text += &format!("* {name}: {value}\n");
        }
    }
    for reference in check.references() {
        text += &format!("* confirmed by: {reference}\n");
    }
    for what in check.unconfirmed() {
        text += &format!("* unconfirmed: {what}\n");
    }
    text
}
