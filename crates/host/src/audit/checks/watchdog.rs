//! WD: what checks now and then whether a CPU still lives.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{file, keeps_off, sysctl};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "WD-001",
        title: "No watchdog by non-maskable interrupts",
        importance: Importance::Medium,
        why: "The detector of hard lockups interrupts every CPU every few seconds, even while interrupts are masked, and occupies a performance counter.",
        read_from: &["/proc/sys/kernel/nmi_watchdog"],
        wanted: "0",
        cost: "a CPU that hangs with interrupts off is not reported",
        set_now: "sysctl -w kernel.nmi_watchdog=0",
        set_boot: "nmi_watchdog=0",
        undo: "sysctl -w kernel.nmi_watchdog=1",
        source: "ducked-tails, Table I; tuned network-latency",
        evaluate: |f| sysctl(f, "kernel.nmi_watchdog", CheckStatus::Fail, |text| text == "0"),
        ..Check::BLANK
    },
    Check {
        id: "WD-002",
        title: "No soft lockup watchdog on isolated CPUs",
        importance: Importance::Medium,
        why: "Its timer fires every 4 s on each CPU and wakes a thread of the highest priority.",
        read_from: &[
            "/proc/sys/kernel/watchdog",
            "/proc/sys/kernel/soft_watchdog",
            "/proc/sys/kernel/watchdog_cpumask",
        ],
        wanted: "off, or only on {hk}",
        cost: "a CPU that hangs is not reported",
        set_now: "sysctl -w kernel.watchdog_cpumask={hk}, or kernel.soft_watchdog=0",
        set_boot: "nosoftlockup, or nowatchdog for both watchdogs",
        undo: "sysctl -w kernel.soft_watchdog=1",
        source: "ducked-tails, Table I (there mistyped nosoftlookup); tuned cpu-partitioning",
        evaluate: soft_lockups,
        ..Check::BLANK
    },
    Check {
        id: "WD-003",
        title: "Watchdogs watch housekeeping CPUs only",
        importance: Importance::Medium,
        why: "The watchdogs of CPUs in this mask run whether the CPU is isolated or not; nohz_full takes its CPUs out of it, isolcpus does not.",
        read_from: &["/proc/sys/kernel/watchdog_cpumask"],
        wanted: "no CPU of {iso}",
        set_now: "sysctl -w kernel.watchdog_cpumask={hk}",
        undo: "sysctl -w kernel.watchdog_cpumask with the old list",
        source: "lockup-watchdogs.rst; booted on Debian's 6.1",
        needs: &[Need::Isolated],
        evaluate: mask,
        ..Check::BLANK
    },
    Check {
        id: "WD-004",
        title: "Interval of the watchdogs",
        importance: Importance::Low,
        why: "The soft watchdog's timer fires each 2/5 of this time; 0 turns both watchdogs off.",
        read_from: &["/proc/sys/kernel/watchdog_thresh"],
        wanted: "0, or at least 10 (s)",
        set_now: "sysctl -w kernel.watchdog_thresh=10",
        undo: "sysctl -w kernel.watchdog_thresh with the old value",
        source: "lockup-watchdogs.rst",
        evaluate: |f| {
            sysctl(f, "kernel.watchdog_thresh", CheckStatus::Warn, |text| {
                text.parse::<i64>().is_ok_and(|seconds| seconds == 0 || seconds >= 10)
            })
        },
        ..Check::BLANK
    },
    Check {
        id: "WD-005",
        title: "The search for hung tasks runs rarely",
        importance: Importance::Low,
        why: "khungtaskd walks all threads of the host under a lock.",
        read_from: &["/proc/sys/kernel/hung_task_timeout_secs"],
        wanted: "0 or at least 600 (s)",
        set_now: "sysctl -w kernel.hung_task_timeout_secs=600",
        undo: "sysctl -w kernel.hung_task_timeout_secs=120",
        source: "tuned network-latency",
        evaluate: |f| {
            sysctl(f, "kernel.hung_task_timeout_secs", CheckStatus::Warn, |text| {
                text.parse::<i64>().is_ok_and(|seconds| seconds == 0 || seconds >= 600)
            })
        },
        ..Check::BLANK
    },
    Check {
        id: "WD-006",
        title: "Workqueue watchdog and RCU stall detector",
        importance: Importance::Low,
        why: "A busy polling thread can look like a stall: the report, printed with a trace of each CPU, is worse than the stall.",
        read_from: &[
            "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout",
            "/sys/module/workqueue/parameters/watchdog_thresh",
        ],
        wanted: "stall timeout at least 21 s",
        set_now: "echo 60 > /sys/module/rcupdate/parameters/rcu_cpu_stall_timeout",
        set_boot: "rcupdate.rcu_cpu_stall_timeout=60",
        undo: "write the old value",
        source: "kernel-parameters.txt",
        evaluate: |f| {
            file(
                f,
                "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout",
                CheckStatus::Warn,
                |text| text.parse::<i64>().is_ok_and(|seconds| seconds >= 21),
            )
        },
        ..Check::BLANK
    },
];

/// Whether a watchdog is on at all; `None` where this kernel has none.
fn on(f: &Facts<'_>, key: &str) -> Result<Option<bool>, crate::Unread> {
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
