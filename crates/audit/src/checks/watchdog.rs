//! WD: what checks now and then whether a CPU still lives.

use crate::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use crate::ask::{file, keeps_off, sysctl};
use crate::check::Topic;
use crate::facts::Facts;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("watchdog.json"),
    evaluators: &[
        ("WD-001", |f| sysctl(f, "kernel.nmi_watchdog", CheckStatus::Fail, |text| text == "0")),
        ("WD-002", soft_lockups),
        ("WD-003", mask),
        ("WD-004", |f| {
            sysctl(f, "kernel.watchdog_thresh", CheckStatus::Warn, |text| {
                text.parse::<i64>().is_ok_and(|seconds| seconds == 0 || seconds >= 10)
            })
        }),
        ("WD-005", |f| {
            sysctl(f, "kernel.hung_task_timeout_secs", CheckStatus::Warn, |text| {
                text.parse::<i64>().is_ok_and(|seconds| seconds == 0 || seconds >= 600)
            })
        }),
        ("WD-006", |f| {
            file(
                f,
                "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout",
                CheckStatus::Warn,
                |text| text.parse::<i64>().is_ok_and(|seconds| seconds >= 21),
            )
        }),
    ],
};

/// Whether a watchdog is on at all; `None` where this kernel has none.
fn on(f: &Facts<'_>, key: &str) -> Result<Option<bool>, tailtrim_host::Unread> {
    Ok(f.optional(&format!("/proc/sys/kernel/{key}"))?.map(|text| text != "0"))
}

fn soft_lockups(f: &Facts<'_>) -> Answer {
    let (Some(any), Some(soft)) = (on(f, "watchdog")?, on(f, "soft_watchdog")?) else {
        return not_applicable("this kernel has no soft lockup detector");
    };
    if !any || !soft {
        return judge(EvidenceLevel::Set, true, CheckStatus::Fail, "off");
    }
    if f.iso().is_empty() {
        return judge(EvidenceLevel::Set, false, CheckStatus::Warn, "on for all CPUs");
    }
    let mask = f.cpus("/proc/sys/kernel/watchdog_cpumask")?;
    keeps_off(f, "soft lockup watchdog", &mask, CheckStatus::Fail)
}

fn mask(f: &Facts<'_>) -> Answer {
    match on(f, "watchdog")? {
        None => not_applicable("this kernel has no watchdog"),
        Some(false) => judge(EvidenceLevel::Set, true, CheckStatus::Fail, "both watchdogs are off"),
        Some(true) => {
            let mask = f.cpus("/proc/sys/kernel/watchdog_cpumask")?;
            keeps_off(f, "watchdogs", &mask, CheckStatus::Fail)
        }
    }
}
