//! SVC: what else runs, and what watches.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::few;
use super::super::check::{Check, Importance};
use super::super::facts::Facts;
use super::super::paths::{CONFIG, TIMERS};

const TRACING: &str = "/sys/kernel/tracing";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "SVC-001",
        title: "No periodic jobs during operation",
        importance: Importance::Medium,
        why: "Log rotation, disk trimming and updates cause bursts of CPU, disk and memory load at arbitrary times.",
        read_from: &["/tailtrim/systemd/timers", "/proc/#/task/#/stat"],
        wanted: "no cron and no timers during a run, or all pinned to {hk}",
        set_now: "systemctl stop fstrim.timer man-db.timer logrotate.timer apt-daily.timer cron",
        undo: "systemctl start the same",
        source: "OpenShift's node tuning operator; AWS trading benchmark",
        evaluate: jobs,
        ..Check::BLANK
    },
    Check {
        id: "SVC-002",
        title: "No monitoring that interrupts isolated CPUs",
        importance: Importance::High,
        why: "Reading a register, a frequency or a performance counter of another CPU interrupts that CPU, each time it is read.",
        read_from: &["/proc/#/task/#/stat"],
        wanted: "none of the known programs, or isolated CPUs excluded in their configuration",
        set_now: "exclude {iso} in its configuration, or stop it",
        undo: "start it",
        source: "reports of telegraf, rezolus, netdata, intel-lpmd",
        evaluate: monitoring,
        ..Check::BLANK
    },
    Check {
        id: "SVC-003",
        title: "No tracing is on",
        importance: Importance::Medium,
        why: "Each event costs 0.3 to 0.5 µs and more; turning events on or off interrupts all CPUs.",
        read_from: &["/sys/kernel/tracing/current_tracer", "/sys/kernel/tracing/events/enable"],
        wanted: "current_tracer nop, no event on",
        set_now: "echo nop > /sys/kernel/tracing/current_tracer; echo 0 > /sys/kernel/tracing/events/enable",
        undo: "",
        source: "measured on Linux 6.1; Documentation/trace/ftrace.rst",
        evaluate: tracing,
        ..Check::BLANK
    },
    Check {
        id: "SVC-004",
        title: "No other program tunes this host",
        importance: Importance::Medium,
        why: "bpftune changes sysctls during operation, tuned restores its own, stalld boosts threads that starve.",
        read_from: &["/proc/#/task/#/stat"],
        wanted: "none, or known",
        set_now: "systemctl stop tuned bpftune stalld",
        undo: "systemctl start the same",
        source: "OpenShift's node tuning operator; bpftune",
        evaluate: tuners,
        ..Check::BLANK
    },
    Check {
        id: "SVC-005",
        title: "No quota stops the workload",
        importance: Importance::High,
        why: "A group that used up its share of a period is stopped until the next one: 10 to 100 ms.",
        read_from: &["/sys/fs/cgroup/*/cpu.max", "/sys/fs/cgroup/*/*/cpu.max"],
        wanted: "max in every group of the workload",
        set_now: "echo max > /sys/fs/cgroup/GROUP/cpu.max; systemctl set-property UNIT CPUQuota=",
        undo: "write the old quota",
        source: "Documentation/admin-guide/cgroup-v2.rst; OpenShift's node tuning operator",
        evaluate: quotas,
        ..Check::BLANK
    },
    Check {
        id: "SVC-006",
        title: "A kernel without debugging options",
        importance: Importance::Medium,
        why: "Debugging of locks or memory makes everything slower; a patched or tainted kernel may not be the one that was measured.",
        read_from: &["/proc/sys/kernel/tainted", "/tailtrim/kernel_config"],
        wanted: "not tainted, none of PROVE_LOCKING, KASAN, DEBUG_PAGEALLOC",
        set_boot: "the distribution's kernel without debugging",
        undo: "",
        source: "Documentation/admin-guide/tainted-kernels.rst",
        evaluate: plain,
        ..Check::BLANK
    },
    Check {
        id: "SVC-007",
        title: "The kernel was built for isolation",
        importance: Importance::High,
        why: "Parameters whose code is not built in do nothing. Current distributions have it. The option is \
            RCU_NOCB_CPU; RCU_NOCB_FULL does not exist.",
        read_from: &["/tailtrim/kernel_config"],
        wanted: "NO_HZ_FULL, RCU_NOCB_CPU, CPU_ISOLATION and CPUSETS",
        set_boot: "another kernel package",
        undo: "",
        source: "no_hz.rst; Ubuntu's real-time documentation",
        evaluate: built,
        ..Check::BLANK
    },
    Check {
        id: "SVC-008",
        title: "No accounting in each interrupt",
        importance: Importance::Low,
        why: "IRQ_TIME_ACCOUNTING reads the clock twice in each interrupt; forced context tracking makes each entry into the kernel dearer on all CPUs.",
        read_from: &["/tailtrim/kernel_config", "/proc/cmdline"],
        wanted: "neither CONTEXT_TRACKING_FORCE nor DEBUG_PREEMPT; tsc=noirqtime where times of interrupts are not needed",
        set_boot: "tsc=noirqtime",
        undo: "remove the word and reboot",
        source: "kernel-parameters.txt; kernel/sched/cputime.c",
        evaluate: accounting,
        ..Check::BLANK
    },
];

/// Which of some programs run.
fn running(f: &Facts<'_>, names: &[&'static str]) -> Result<Vec<&'static str>, crate::Unread> {
    let mut found = Vec::new();
    for name in names {
        if f.runs(name)? {
            found.push(*name);
        }
    }
    Ok(found)
}

fn jobs(f: &Facts<'_>) -> Answer {
    let mut found: Vec<String> =
        running(f, &["cron", "crond", "anacron", "atd", "unattended-upgr"])?
            .into_iter()
            .map(str::to_owned)
            .collect();
    // Without systemd there are no timers of systemd.
    if let Some(timers) = f.optional(TIMERS)? {
        found.extend(timers.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    }
    let said = if found.is_empty() { "none".to_owned() } else { few(&found) };
    judge(EvidenceLevel::Seen, found.is_empty(), CheckStatus::Warn, said)
}

fn monitoring(f: &Facts<'_>) -> Answer {
    let names = [
        "telegraf",
        "rezolus",
        "netdata",
        "pcm",
        "pcm-sensor-serv",
        "turbostat",
        "intel_lpmd",
        "perf",
        "node_exporter",
        "powertop",
        "sadc",
        "pmdaperfevent",
    ];
    let found = running(f, &names)?;
    let said = if found.is_empty() {
        "none of the known services runs".to_owned()
    } else {
        format!("running: {}", few(&found))
    };
    judge(EvidenceLevel::Seen, found.is_empty(), CheckStatus::Warn, said)
}

fn tracing(f: &Facts<'_>) -> Answer {
    let Some(tracer) = f.optional(&format!("{TRACING}/current_tracer"))? else {
        return not_applicable("tracefs is not mounted, or this kernel has none");
    };
    let mut on = Vec::new();
    if tracer != "nop" {
        on.push(format!("tracer {tracer}"));
    }
    // 0 none, 1 all, X some.
    let events = f.text(&format!("{TRACING}/events/enable"))?;
    if events != "0" {
        on.push(format!("events {events}"));
    }
    for (path, text) in f.glob(&format!("{TRACING}/instances/*/current_tracer"))? {
        on.push(format!("instance {} ({text})", path.split('/').nth(5).unwrap_or_default()));
    }
    let said = if on.is_empty() { "nothing is traced".to_owned() } else { few(&on) };
    judge(EvidenceLevel::Set, on.is_empty(), CheckStatus::Warn, said)
}

fn tuners(f: &Facts<'_>) -> Answer {
    let found =
        running(f, &["tuned", "bpftune", "stalld", "irqbalance", "rt-conf", "ksmtuned", "numad"])?;
    let others: Vec<&str> = found.iter().copied().filter(|name| *name != "irqbalance").collect();
    let said =
        if found.is_empty() { "none".to_owned() } else { format!("running: {}", few(&found)) };
    judge(EvidenceLevel::Seen, others.is_empty(), CheckStatus::Warn, said)
}

fn quotas(f: &Facts<'_>) -> Answer {
    let mut groups = f.glob("/sys/fs/cgroup/*/cpu.max")?;
    groups.extend(f.glob("/sys/fs/cgroup/*/*/cpu.max")?);
    if groups.is_empty() {
        return not_applicable("no group has a quota file (cgroup v2 with the cpu controller)");
    }
    let limited: Vec<String> = groups
        .iter()
        .filter(|(_, text)| !text.starts_with("max"))
        .map(|(path, text)| {
            format!(
                "{}: {text}",
                path.trim_start_matches("/sys/fs/cgroup/").trim_end_matches("/cpu.max")
            )
        })
        .collect();
    let said = if limited.is_empty() {
        format!("none of {} groups is limited", groups.len())
    } else {
        few(&limited)
    };
    judge(EvidenceLevel::Set, limited.is_empty(), CheckStatus::Warn, said)
}

/// Which options the kernel was built with.
fn has(config: &str, option: &str) -> bool {
    config.lines().any(|line| {
        line.strip_prefix("CONFIG_").and_then(|rest| rest.strip_prefix(option)) == Some("=y")
    })
}

fn plain(f: &Facts<'_>) -> Answer {
    let tainted = f.text("/proc/sys/kernel/tainted")?;
    let config = f.text(CONFIG)?;
    let slow: Vec<&str> =
        ["PROVE_LOCKING", "KASAN", "DEBUG_PAGEALLOC_ENABLE_DEFAULT", "KCSAN", "DEBUG_OBJECTS"]
            .into_iter()
            .filter(|option| has(&config, option))
            .collect();
    let mut said = format!("tainted: {tainted}");
    if !slow.is_empty() {
        said += &format!("; built with {}", slow.join(", "));
    }
    let verdict = if slow.is_empty() { CheckStatus::Warn } else { CheckStatus::Fail };
    judge(EvidenceLevel::Set, slow.is_empty() && tainted == "0", verdict, said)
}

fn built(f: &Facts<'_>) -> Answer {
    let config = f.text(CONFIG)?;
    let missing: Vec<&str> = ["NO_HZ_FULL", "RCU_NOCB_CPU", "CPU_ISOLATION", "CPUSETS"]
        .into_iter()
        .filter(|option| !has(&config, option))
        .collect();
    let said = if missing.is_empty() {
        "all four are built in".to_owned()
    } else {
        format!("not built in: {}", missing.join(", "))
    };
    judge(EvidenceLevel::Set, missing.is_empty(), CheckStatus::Fail, said)
}

fn accounting(f: &Facts<'_>) -> Answer {
    let config = f.text(CONFIG)?;
    let line = f.boot()?;
    let quiet = line.all("tsc").any(|word| word.value.as_deref() == Some("noirqtime"));
    let mut on: Vec<&str> =
        ["CONTEXT_TRACKING_FORCE", "CONTEXT_TRACKING_USER_FORCE", "DEBUG_PREEMPT"]
            .into_iter()
            .filter(|option| has(&config, option))
            .collect();
    if has(&config, "IRQ_TIME_ACCOUNTING") && !quiet {
        on.push("IRQ_TIME_ACCOUNTING");
    }
    let said = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    judge(EvidenceLevel::Set, on.is_empty(), CheckStatus::Warn, said)
}
