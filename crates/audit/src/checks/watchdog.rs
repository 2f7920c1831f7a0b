//! WD: what checks now and then whether a CPU still lives.

use super::*;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("watchdog.json"),
    evaluators: &[
        ("WD-001", |f| sysctl(f, "kernel.nmi_watchdog", Fail, |text| text == "0")),
        ("WD-002", soft_lockups),
        ("WD-003", mask),
        ("WD-004", |f| {
            sysctl(f, "kernel.watchdog_thresh", Warn, |text| {
                text.parse::<i64>().is_ok_and(|seconds| seconds == 0 || seconds >= 10)
            })
        }),
        ("WD-005", |f| {
            sysctl(f, "kernel.hung_task_timeout_secs", Warn, |text| {
                text.parse::<i64>().is_ok_and(|seconds| seconds == 0 || seconds >= 600)
            })
        }),
        ("WD-006", |f| {
            file(f, "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout", Warn, |text| {
                text.parse::<i64>().is_ok_and(|seconds| seconds >= 21)
            })
        }),
    ],
};

/// Whether a watchdog is on at all; `None` where this kernel has none.
fn on(f: &Facts<'_>, key: &str) -> Result<Option<bool>, Unread> {
    Ok(f.optional(&format!("/proc/sys/kernel/{key}"))?.map(|text| text != "0"))
}

fn soft_lockups(f: &Facts<'_>) -> Answer {
    let (Some(any), Some(soft)) = (on(f, "watchdog")?, on(f, "soft_watchdog")?) else {
        return not_applicable("this kernel has no soft lockup detector");
    };
    if !any || !soft {
        return ok(Set, "off");
    }
    if f.iso().is_empty() {
        return judge(Set, false, Warn, "on for all CPUs");
    }
    let mask = f.cpus("/proc/sys/kernel/watchdog_cpumask")?;
    keeps_off(f, "soft lockup watchdog", &mask, Fail)
}

fn mask(f: &Facts<'_>) -> Answer {
    match on(f, "watchdog")? {
        None => not_applicable("this kernel has no watchdog"),
        Some(false) => ok(Set, "both watchdogs are off"),
        Some(true) => {
            let mask = f.cpus("/proc/sys/kernel/watchdog_cpumask")?;
            keeps_off(f, "watchdogs", &mask, Fail)
        }
    }
}
