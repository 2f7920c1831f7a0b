//! ISO, third part: workqueues and the kernel's own threads.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{few, file, keeps_off};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;

const ISOLATED: &[Need] = &[Need::Isolated];
const QUEUES: &str = "/sys/devices/virtual/workqueue";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "ISO-012",
        title: "Unbound work runs on housekeeping CPUs",
        importance: Importance::High,
        why: "Work that is bound to no CPU runs on any in this mask, for as long as it takes.",
        read_from: &["/sys/devices/virtual/workqueue/cpumask"],
        wanted: "no CPU of {iso} in the mask",
        set_now: "echo {hkmask} > /sys/devices/virtual/workqueue/cpumask",
        set_boot: "isolcpus=domain,… and nohz_full= set it as well",
        undo: "write the old mask",
        source: "tuned cpu-partitioning; cpu-isolation.rst",
        needs: ISOLATED,
        evaluate: |f| {
            keeps_off(
                f,
                "unbound workqueues",
                &f.mask("/sys/devices/virtual/workqueue/cpumask")?,
                CheckStatus::Fail,
            )
        },
        ..Check::BLANK
    },
    Check {
        id: "ISO-013",
        title: "Write-back and other queues with a separate mask",
        importance: Importance::Medium,
        why: "Some workqueues have a separate mask: the common mask does not apply to them.",
        read_from: &["/sys/devices/virtual/workqueue/*/cpumask"],
        wanted: "no CPU of {iso} in any mask",
        set_now: "echo {hkmask} > /sys/devices/virtual/workqueue/writeback/cpumask, likewise others",
        undo: "write the old masks",
        source: "tuned cpu-partitioning; kernel-per-CPU-kthreads.rst",
        needs: ISOLATED,
        evaluate: own_masks,
        ..Check::BLANK
    },
    Check {
        id: "ISO-014",
        title: "No work was done by kworkers of isolated CPUs",
        importance: Importance::Medium,
        why: "Bound work cannot be moved, only its cause removed: statistics of memory, polls for machine checks, timers of drivers.",
        read_from: &["/tailtrim/kthread_switches"],
        wanted: "no kworker/N of {iso} woke",
        set_now: "find the function with the tracepoint workqueue:workqueue_execute_start and remove its cause",
        undo: "",
        source: "kernel-per-CPU-kthreads.rst; cpu-isolation.rst",
        needs: ISOLATED,
        evaluate: bound_work,
        ..Check::BLANK
    },
    Check {
        id: "ISO-015",
        title: "Per-CPU work is unbound where possible",
        importance: Importance::Low,
        why: "With power_efficient many queues that are bound to the CPU which queued the work become unbound, and follow the mask.",
        read_from: &["/sys/module/workqueue/parameters/power_efficient"],
        wanted: "Y",
        cost: "caches are colder where the work is done",
        set_boot: "workqueue.power_efficient=1",
        undo: "remove the word and reboot",
        source: "kernel-parameters.txt",
        needs: ISOLATED,
        evaluate: |f| {
            file(f, "/sys/module/workqueue/parameters/power_efficient", CheckStatus::Warn, |text| {
                text == "Y"
            })
        },
        ..Check::BLANK
    },
    Check {
        id: "ISO-018",
        title: "Movable kernel threads keep off isolated CPUs",
        importance: Importance::Medium,
        why: "Threads of drivers and file systems run on any CPU unless they are pinned.",
        read_from: &["/proc/#/task/#/status", "/proc/#/task/#/stat"],
        wanted: "every movable kernel thread keeps off {iso}",
        set_now: "taskset -p -c {hk} PID",
        set_boot: "nohz_full={iso}: threads are then made with the right mask",
        undo: "taskset -p -c with the old list",
        source: "kernel-per-CPU-kthreads.rst",
        needs: ISOLATED,
        evaluate: movable,
        ..Check::BLANK
    },
    Check {
        id: "ISO-019",
        title: "Priority of per-CPU threads",
        importance: Importance::Low,
        why: "ksoftirqd, ktimers and rcuc with real-time priority come before the packets; on a real-time kernel they need a low one.",
        read_from: &["/proc/#/task/#/stat", "/sys/kernel/realtime"],
        wanted: "ordinary priority, FIFO 2 to 11 on a real-time kernel",
        set_now: "chrt -o -p 0 PID (real-time kernel: chrt -f -p 11 PID)",
        undo: "chrt with the old class and priority",
        source: "tuned realtime-virtual-host; OpenShift's node tuning operator",
        needs: ISOLATED,
        evaluate: per_cpu_threads,
        ..Check::BLANK
    },
    Check {
        id: "ISO-020",
        title: "Interrupt handlers are not forced into threads",
        importance: Importance::Medium,
        why: "A handler in a thread costs a context switch more. Real-time kernels do it always and need it.",
        read_from: &["/proc/cmdline", "/sys/kernel/realtime"],
        wanted: "no threadirqs",
        set_boot: "remove threadirqs",
        undo: "add threadirqs",
        source: "kernel-parameters.txt; NFV host guide",
        evaluate: forced_threads,
        ..Check::BLANK
    },
];

fn own_masks(f: &Facts<'_>) -> Answer {
    let all = f.glob(&format!("{QUEUES}/*/cpumask"))?;
    if all.is_empty() {
        return not_applicable("no workqueue here has a separate mask");
    }
    let mut there = Vec::new();
    for (path, _) in &all {
        if !f.mask(path)?.intersection(f.iso()).is_empty() {
            there.push(path.trim_start_matches(QUEUES).trim_matches('/').replace("/cpumask", ""));
        }
    }
    let said = match there.is_empty() {
        true => format!("{} masks keep off the {}", all.len(), f.isolated_cpus()),
        false => format!("may use {}: {}", f.isolated_cpus(), few(&there)),
    };
    judge(EvidenceLevel::Set, there.is_empty(), CheckStatus::Warn, said)
}

fn bound_work(f: &Facts<'_>) -> Answer {
    let cpu = |name: &str| -> Option<u32> {
        let rest = name.strip_prefix("kworker/")?;
        rest.split(':').next()?.parse().ok()
    };
    let woken = f.woken()?;
    let there: Vec<String> = woken
        .iter()
        .filter(|(name, _)| cpu(name).is_some_and(|cpu| f.iso().contains(cpu)))
        .map(|(name, count)| format!("{name} woke {count} times"))
        .collect();
    let said = match there.is_empty() {
        true => format!("none of {} woke", f.iso()),
        false => few(&there),
    };
    judge(EvidenceLevel::Seen, there.is_empty(), CheckStatus::Warn, said)
}

fn movable(f: &Facts<'_>) -> Answer {
    let movable: Vec<_> = f.tasks()?.iter().filter(|task| task.kernel && !task.fixed).collect();
    if movable.is_empty() {
        return not_applicable("no kernel thread is visible");
    }
    let there = movable.iter().filter(|task| !task.allowed.intersection(f.iso()).is_empty());
    let names: Vec<&str> = there.map(|task| task.name.as_str()).collect();
    let (all, cpus) = (movable.len(), f.isolated_cpus());
    let said = match names.is_empty() {
        true => format!("{all} movable threads keep off the {cpus}"),
        false => format!("{} of {all} may use {cpus}: {}", names.len(), few(&names)),
    };
    judge(EvidenceLevel::Set, names.is_empty(), CheckStatus::Warn, said)
}

fn per_cpu_threads(f: &Facts<'_>) -> Answer {
    let real_time = f.optional("/sys/kernel/realtime")?.as_deref() == Some("1");
    let ours = |name: &str| {
        name.split_once('/').is_some_and(|(kind, cpu)| {
            matches!(kind, "ksoftirqd" | "ktimers" | "rcuc")
                && cpu.parse().is_ok_and(|cpu| f.iso().contains(cpu))
        })
    };
    let all: Vec<_> = f.tasks()?.iter().filter(|task| ours(&task.name)).collect();
    if all.is_empty() {
        return not_applicable("no per-CPU thread is visible");
    }
    let wrong =
        |priority: u32| if real_time { !(1..=11).contains(&priority) } else { priority > 0 };
    let bad: Vec<String> = all
        .iter()
        .filter(|task| wrong(task.priority))
        .map(|task| format!("{} has priority {}", task.name, task.priority))
        .collect();
    let said =
        if bad.is_empty() { format!("{} threads as they should be", all.len()) } else { few(&bad) };
    judge(EvidenceLevel::Set, bad.is_empty(), CheckStatus::Warn, said)
}

fn forced_threads(f: &Facts<'_>) -> Answer {
    if f.optional("/sys/kernel/realtime")?.as_deref() == Some("1") {
        return not_applicable("a real-time kernel always has them in threads");
    }
    let has = f.boot()?.has("threadirqs");
    let said = if has { "threadirqs is in the line" } else { "handlers run in interrupts" };
    judge(EvidenceLevel::Asked, !has, CheckStatus::Warn, said)
}
