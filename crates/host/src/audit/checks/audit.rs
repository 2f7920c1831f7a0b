//! AUD: what is written down about the system while it works: audit, machine checks, console.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable, unknown};
use super::super::ask::{at_least, few, file, sysctl};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;

const MACHINE_CHECKS: &str = "/sys/devices/system/machinecheck/machinecheck#";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "AUD-001",
        title: "System calls are not audited",
        importance: Importance::Medium,
        why: "With one rule for system calls every call of every program takes the slow path.",
        read_from: &["/proc/cmdline", "/tailtrim/dmesg", "/proc/#/task/#/stat"],
        wanted: "audit=0, or no audit daemon",
        cost: "no security log",
        set_now: "auditctl -e 0; auditctl -D",
        set_boot: "audit=0",
        undo: "audit=1, start auditd",
        source: "ducked-tails, Table I; AWS trading benchmark",
        evaluate: auditing,
        ..Check::BLANK
    },
    Check {
        id: "AUD-002",
        title: "SELinux remembers enough decisions",
        importance: Importance::Low,
        why: "A decision that is no longer in the cache is computed again, under a lock.",
        read_from: &["/sys/fs/selinux/avc/cache_threshold"],
        wanted: "at least 8192 where SELinux is on",
        set_now: "echo 8192 > /sys/fs/selinux/avc/cache_threshold",
        undo: "echo 512 > the same file",
        source: "tuned openshift",
        evaluate: avc,
        ..Check::BLANK
    },
    Check {
        id: "AUD-003",
        title: "Corrected hardware errors do not interrupt",
        importance: Importance::Medium,
        why: "Each corrected error interrupts, and the banks of every CPU are polled. Do not use mce=off: it also \
            disables the report of uncorrected errors.",
        read_from: &["/sys/devices/system/machinecheck/machinecheck#/ignore_ce", "/proc/cmdline"],
        wanted: "ignore_ce is 1 everywhere",
        cost: "watch corrected errors with the board's controller instead",
        set_now: "echo 1 > /sys/devices/system/machinecheck/machinecheck0/ignore_ce",
        set_boot: "mce=ignore_ce",
        undo: "echo 0 > the same file",
        source: "ducked-tails, Table I; tuned cpu-partitioning",
        needs: &[Need::Metal],
        evaluate: corrected_errors,
        ..Check::BLANK
    },
    Check {
        id: "AUD-004",
        title: "Machine check banks are not polled",
        importance: Importance::Medium,
        why: "A timer reads the banks of every CPU each five minutes, isolated or not: a stall of tens of microseconds at a regular distance.",
        read_from: &["/sys/devices/system/machinecheck/machinecheck#/check_interval"],
        wanted: "0",
        cost: "corrected errors without an interrupt go unnoticed",
        set_now: "echo 0 > /sys/devices/system/machinecheck/machinecheck0/check_interval",
        set_boot: "mce=ignore_ce",
        undo: "echo 300 > the same file",
        source: "arch/x86/kernel/cpu/mce/core.c",
        needs: &[Need::Metal],
        evaluate: polling,
        ..Check::BLANK
    },
    Check {
        id: "AUD-005",
        title: "Memory errors are not polled for",
        importance: Importance::Low,
        why: "Drivers for memory errors (EDAC) and rasdaemon poll, some through the firmware.",
        read_from: &["/proc/modules"],
        wanted: "no *_edac module",
        cost: "memory errors are counted by the board's controller only",
        set_now: "modprobe -r MODULE",
        undo: "modprobe MODULE",
        source: "drivers/edac",
        needs: &[Need::Metal],
        evaluate: edac,
        ..Check::BLANK
    },
    Check {
        id: "AUD-006",
        title: "No kernel messages on a slow console",
        importance: Importance::Medium,
        why: "A line on a serial console of 115,200 baud takes milliseconds, with interrupts off on the CPU that prints.",
        read_from: &["/proc/sys/kernel/printk", "/proc/cmdline"],
        wanted: "console log level at most 4, or no serial console",
        set_now: "dmesg -n 4",
        set_boot: "quiet loglevel=4",
        undo: "dmesg -n with the old level",
        source: "Documentation/core-api/printk-basics.rst; AWS trading benchmark",
        evaluate: console,
        ..Check::BLANK
    },
    Check {
        id: "AUD-007",
        title: "Split locks are not delayed on purpose",
        importance: Importance::Low,
        why: "By default the kernel delays a thread that locks across two cache lines by 10 ms.",
        read_from: &["/proc/sys/kernel/split_lock_mitigate", "/proc/cmdline"],
        wanted: "split_lock_mitigate 0, or split_lock_detect=off",
        cost: "one program can slow down all others",
        set_now: "sysctl -w kernel.split_lock_mitigate=0",
        set_boot: "split_lock_detect=off",
        undo: "sysctl -w kernel.split_lock_mitigate=1",
        source: "kernel-parameters.txt; Documentation/arch/x86/buslock.rst",
        evaluate: split_locks,
        ..Check::BLANK
    },
];

fn auditing(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    if matches!(line.last("audit"), Some("0" | "off")) {
        return judge(EvidenceLevel::Asked, true, CheckStatus::Fail, "the boot line has audit=0");
    }
    if f.runs("auditd")? {
        return judge(
            EvidenceLevel::Seen,
            false,
            CheckStatus::Warn,
            "auditd runs: auditctl -l shows its rules",
        );
    }
    if f.runs("kauditd")? {
        return judge(
            EvidenceLevel::Seen,
            true,
            CheckStatus::Warn,
            "the kernel could audit, but no daemon asks for it",
        );
    }
    judge(EvidenceLevel::Seen, true, CheckStatus::Warn, "neither kauditd nor auditd runs")
}

fn avc(f: &Facts<'_>) -> Answer {
    file(f, "/sys/fs/selinux/avc/cache_threshold", CheckStatus::Warn, at_least(8192)).map(
        |mut answer| {
            if answer.verdict == CheckStatus::NotApplicable {
                answer.said = "SELinux is off".to_owned();
            }
            answer
        },
    )
}

fn corrected_errors(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("mce") == Some("off") {
        return judge(
            EvidenceLevel::Asked,
            false,
            CheckStatus::Warn,
            "mce=off also disables the report of uncorrected errors",
        );
    }
    let all = f.glob(&format!("{MACHINE_CHECKS}/ignore_ce"))?;
    if all.is_empty() {
        return not_applicable("no machine check interface here");
    }
    let on = all.iter().filter(|(_, text)| text == "1").count();
    judge(
        EvidenceLevel::Set,
        on == all.len(),
        CheckStatus::Warn,
        format!("ignore_ce is set on {on} of {} CPUs", all.len()),
    )
}

fn polling(f: &Facts<'_>) -> Answer {
    let all = f.glob(&format!("{MACHINE_CHECKS}/check_interval"))?;
    if all.is_empty() {
        return not_applicable("no machine check interface here");
    }
    let ignored = f.glob(&format!("{MACHINE_CHECKS}/ignore_ce"))?;
    if ignored.len() == all.len() && ignored.iter().all(|(_, text)| text == "1") {
        return judge(
            EvidenceLevel::Set,
            true,
            CheckStatus::Warn,
            "corrected errors are ignored, which stops the timer",
        );
    }
    // Seconds since 6.x, hexadecimal without prefix before: only 0 is the same in both.
    let on: Vec<&str> =
        all.iter().filter(|(_, text)| text != "0").map(|(_, text)| text.as_str()).collect();
    let said = if on.is_empty() {
        "not polled".to_owned()
    } else {
        format!("{} CPUs are polled, check_interval {}", on.len(), on[0])
    };
    judge(EvidenceLevel::Set, on.is_empty(), CheckStatus::Warn, said)
}

fn edac(f: &Facts<'_>) -> Answer {
    let Some(modules) = f.optional("/proc/modules")? else {
        return unknown("this kernel has no modules: what is built in is not listed");
    };
    let names = modules.lines().filter_map(|line| line.split_whitespace().next());
    let edac: Vec<&str> = names.filter(|name| name.ends_with("_edac")).collect();
    let said = if edac.is_empty() { "no EDAC module".to_owned() } else { few(&edac) };
    judge(EvidenceLevel::Set, edac.is_empty(), CheckStatus::Warn, said)
}

fn console(f: &Facts<'_>) -> Answer {
    let serial =
        f.boot()?.all("console").filter_map(|word| word.value.clone()).find(|name| {
            ["ttyS", "ttyAMA", "hvc", "ttyUSB"].iter().any(|kind| name.starts_with(kind))
        });
    let Some(serial) = serial else {
        return judge(EvidenceLevel::Asked, true, CheckStatus::Warn, "no serial console");
    };
    sysctl(f, "kernel.printk", CheckStatus::Warn, |text| {
        text.split_whitespace()
            .next()
            .and_then(|level| level.parse::<u32>().ok())
            .is_some_and(|level| level <= 4)
    })
    .map(|mut answer| {
        answer.said = format!("console={serial}, {}", answer.said);
        answer
    })
}

fn split_locks(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("split_lock_detect") == Some("off") {
        return judge(EvidenceLevel::Asked, true, CheckStatus::Warn, "split_lock_detect=off");
    }
    sysctl(f, "kernel.split_lock_mitigate", CheckStatus::Warn, |text| text == "0")
}
