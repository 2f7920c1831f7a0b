//! ISO, first part: which CPUs the kernel keeps free, and what runs there all the same.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{few, or_none};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use crate::{Cpus, KernelVersion, Unread};

const ISOLATED: &[Need] = &[Need::Isolated];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "ISO-001",
        title: "The scheduler does not use the isolated CPUs",
        importance: Importance::High,
        why: "On a CPU inside a scheduling domain the load balancer places threads when others are busy; each costs a time slice of milliseconds.",
        read_from: &["/sys/devices/system/cpu/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated"],
        wanted: "all CPUs {iso} are isolated",
        cost: "threads there are not balanced: each must be pinned",
        set_now: "a cgroup with cpuset.cpus={iso} and cpuset.cpus.partition=isolated",
        set_boot: "isolcpus=domain,managed_irq,{iso}",
        undo: "echo member > cpuset.cpus.partition; remove the word and reboot",
        source: "cpu-isolation.rst; DPDK's Linux guide; ducked-tails, Table I",
        needs: ISOLATED,
        evaluate: scheduler_isolation,
        ..Check::BLANK
    },
    Check {
        id: "ISO-002",
        title: "Managed interrupts keep off isolated CPUs",
        importance: Importance::Medium,
        why: "NVMe disks and many NICs have queue interrupts that the kernel places on all CPUs and that cannot be \
            moved.",
        read_from: &["/proc/cmdline"],
        wanted: "isolcpus= has the flag managed_irq",
        cost: "best effort: a queue whose mask has only isolated CPUs stays there",
        set_boot: "isolcpus=domain,managed_irq,{iso}",
        undo: "remove the flag and reboot",
        source: "kernel-parameters.txt; cpu-isolation.rst",
        since: Some(KernelVersion::new(5, 6)),
        needs: ISOLATED,
        evaluate: managed_irq,
        ..Check::BLANK
    },
    Check {
        id: "ISO-003",
        title: "No tick on CPUs with one runnable thread",
        importance: Importance::High,
        why: "The tick interrupts 100 to 1,000 times a second for 1 to 10 µs, and with it come timers, RCU and accounting.",
        read_from: &["/sys/devices/system/cpu/nohz_full"],
        wanted: "nohz_full has all CPUs {iso}",
        cost: "each entry into the kernel is dearer: for threads that stay in user space",
        set_boot: "nohz_full={iso}",
        undo: "remove the word and reboot",
        source: "no_hz.rst; cpu-isolation.rst; ducked-tails, Table I",
        needs: ISOLATED,
        evaluate: full_dynticks,
        ..Check::BLANK
    },
    Check {
        id: "ISO-004",
        title: "isolcpus and nohz_full name the same CPUs",
        importance: Importance::Medium,
        why: "A CPU without tick into which the scheduler places a second thread gets its tick back; an isolated CPU with tick is interrupted by it.",
        read_from: &["/sys/devices/system/cpu/isolated", "/sys/devices/system/cpu/nohz_full"],
        wanted: "the same list in both",
        set_boot: "isolcpus=domain,managed_irq,{iso} nohz_full={iso}",
        undo: "put the old lists back",
        source: "booted on Debian's 6.1: it accepts different lists without a word",
        needs: ISOLATED,
        evaluate: lists_agree,
        ..Check::BLANK
    },
    Check {
        id: "ISO-005",
        title: "nohz_full= instead of isolcpus=nohz",
        importance: Importance::Medium,
        why: "Up to 6.12 isolcpus=nohz stops the tick but leaves the lockup watchdog and other housekeeping on the CPU; in 7.2 it takes all of that off, as nohz_full= does.",
        read_from: &["/proc/cmdline"],
        wanted: "isolcpus= has no flag nohz",
        set_boot: "nohz_full={iso}",
        undo: "put the flag back",
        source: "booted on Debian's 6.1: watchdog_cpumask keeps all CPUs",
        needs: ISOLATED,
        evaluate: nohz_flag,
        ..Check::BLANK
    },
    Check {
        id: "ISO-016",
        title: "Other programs keep off isolated CPUs",
        importance: Importance::High,
        why: "A program that was pinned to an isolated CPU shares it with the packets and brings its tick back.",
        read_from: &["/proc/#/task/#/status"],
        wanted: "only the workload's threads last ran on {iso}",
        set_now: "taskset -ap -c {hk} PID",
        undo: "taskset -ap -c with the old list",
        source: "tuned cpu-partitioning",
        needs: ISOLATED,
        evaluate: programs_keep_off,
        ..Check::BLANK
    },
    Check {
        id: "ISO-017",
        title: "systemd starts services on housekeeping CPUs",
        importance: Importance::Medium,
        why: "Every service inherits the affinity of the manager: with none, it may be run anywhere that the scheduler reaches.",
        read_from: &["/proc/1/task/1/status"],
        wanted: "the first process may use {hk} only",
        set_now: "CPUAffinity={hk} in /etc/systemd/system.conf.d/, then systemctl daemon-reexec",
        set_boot: "systemd.cpu_affinity={hk}",
        undo: "remove the drop-in, systemctl daemon-reexec",
        source: "tuned cpu-partitioning; OpenShift's node tuning operator",
        needs: ISOLATED,
        evaluate: manager,
        ..Check::BLANK
    },
    Check {
        id: "ISO-021",
        title: "No second thread on an isolated core",
        importance: Importance::High,
        why: "Hyper-threads share execution units and first-level caches: work on the sibling slows packets down, \
            and no event shows it.",
        read_from: &[
            "/sys/devices/system/cpu/smt/control",
            "/sys/devices/system/cpu/cpu#/topology/thread_siblings_list",
        ],
        wanted: "each isolated CPU is alone on its core, or its sibling is isolated too and idle",
        cost: "half of the hardware threads",
        set_now: "echo off > /sys/devices/system/cpu/smt/control",
        set_boot: "nosmt",
        undo: "echo on > /sys/devices/system/cpu/smt/control",
        source: "cpu-isolation.rst; ducked-tails, Table I",
        needs: ISOLATED,
        evaluate: siblings,
        ..Check::BLANK
    },
    Check {
        id: "ISO-022",
        title: "CPU 0 is not isolated",
        importance: Importance::Medium,
        why: "The boot CPU keeps the time and does unassigned work; the kernel removes it from nohz_full by itself.",
        read_from: &["/sys/devices/system/cpu/online"],
        wanted: "CPU 0 does the housekeeping",
        set_boot: "choose other CPUs",
        undo: "",
        source: "kernel-parameters.txt; DPDK's Linux guide",
        needs: ISOLATED,
        evaluate: boot_cpu,
        ..Check::BLANK
    },
    Check {
        id: "ISO-023",
        title: "CPUs are not taken offline or online during operation",
        importance: Importance::Low,
        why: "Taking a CPU offline stops all others for milliseconds (stop_machine). Done once before the start it moves stray timers away.",
        read_from: &["/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible"],
        wanted: "all isolated CPUs are online",
        set_now: "echo 0 > /sys/devices/system/cpu/cpuN/online; echo 1 > the same, before the start",
        undo: "",
        source: "kernel-per-CPU-kthreads.rst",
        needs: ISOLATED,
        evaluate: all_online,
        ..Check::BLANK
    },
    Check {
        id: "ISO-024",
        title: "The tick is stopped (counted)",
        importance: Importance::High,
        why: "The count of local timer interrupts on an isolated CPU proves that the tick is stopped.",
        read_from: &["/proc/interrupts"],
        wanted: "at most 2 timer interrupts a second on each of {iso} while it is busy",
        set_boot: "nohz_full={iso}; the tracepoint timer:tick_stop names what keeps the tick",
        undo: "",
        source: "cpu-isolation.rst; no_hz.rst",
        needs: ISOLATED,
        evaluate: tick_gone,
        ..Check::BLANK
    },
];

/// What the kernel's scheduler leaves alone, by boot line or by cpuset.
pub(super) fn isolated(f: &Facts<'_>) -> Result<Cpus, Unread> {
    let boot = f.cpus("/sys/devices/system/cpu/isolated")?;
    // Only what the boot line left is asked of cpusets.
    if f.iso().is_subset(&boot) {
        return Ok(boot);
    }
    const CPUSET: &str = "/sys/fs/cgroup/cpuset.cpus.isolated";
    Ok(match f.optional(CPUSET)? {
        Some(_) => boot.union(&f.cpus(CPUSET)?),
        None => boot,
    })
}

fn scheduler_isolation(f: &Facts<'_>) -> Answer {
    let set = isolated(f)?;
    let missing = f.iso().minus(&set);
    let said = match missing.is_empty() {
        true => format!("CPUs {set} are isolated"),
        false => format!("CPUs {missing} are not isolated (isolated: {})", or_none(&set)),
    };
    judge(EvidenceLevel::Set, missing.is_empty(), CheckStatus::Fail, said)
}

fn managed_irq(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let has =
        line.last("isolcpus").is_some_and(|list| list.split(',').any(|flag| flag == "managed_irq"));
    let said = if has {
        "isolcpus= has managed_irq".to_owned()
    } else {
        format!("managed interrupts may be placed on {}", f.isolated_cpus())
    };
    judge(EvidenceLevel::Asked, has, CheckStatus::Warn, said)
}

/// The CPUs without tick; `None` where the kernel cannot do it.
fn tickless(f: &Facts<'_>) -> Result<Option<Cpus>, Unread> {
    const PATH: &str = "/sys/devices/system/cpu/nohz_full";
    match f.optional(PATH)? {
        Some(_) => f.cpus(PATH).map(Some),
        None => Ok(None),
    }
}

fn full_dynticks(f: &Facts<'_>) -> Answer {
    let Some(set) = tickless(f)? else {
        return judge(
            EvidenceLevel::Set,
            false,
            CheckStatus::Fail,
            "this kernel is built without CONFIG_NO_HZ_FULL",
        );
    };
    let missing = f.iso().minus(&set);
    let said = match missing.is_empty() {
        true => format!("nohz_full has {set}"),
        false => format!("CPUs {missing} keep their tick (nohz_full: {})", or_none(&set)),
    };
    judge(EvidenceLevel::Set, missing.is_empty(), CheckStatus::Fail, said)
}

fn lists_agree(f: &Facts<'_>) -> Answer {
    let (set, Some(tickless)) = (isolated(f)?, tickless(f)?) else {
        return not_applicable("this kernel is built without CONFIG_NO_HZ_FULL");
    };
    if set.is_empty() && tickless.is_empty() {
        return not_applicable("neither list is set");
    }
    let said = format!("isolated: {}, nohz_full: {}", or_none(&set), or_none(&tickless));
    judge(EvidenceLevel::Set, set == tickless, CheckStatus::Warn, said)
}

fn nohz_flag(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let Some(value) = line.last("isolcpus") else {
        return not_applicable("isolcpus= is not in the line");
    };
    let has = value.split(',').any(|flag| flag == "nohz");
    if has && f.kernel()? >= KernelVersion::new(7, 2) {
        let said = format!("isolcpus={value}: in this kernel nohz does what nohz_full= does");
        return judge(EvidenceLevel::Asked, true, CheckStatus::Warn, said);
    }
    judge(EvidenceLevel::Asked, !has, CheckStatus::Warn, format!("isolcpus={value}"))
}

fn programs_keep_off(f: &Facts<'_>) -> Answer {
    if !f.iso().is_subset(&isolated(f)?) {
        return not_applicable("the CPUs are not isolated, anything may run there (ISO-001)");
    }
    let online = f.cpus("/sys/devices/system/cpu/online")?;
    let tasks = f.tasks()?;
    // Who may run everywhere was not pinned here: ISO-001 answers for those.
    let pinned = tasks.iter().filter(|task| !task.kernel && task.allowed != online);
    let there: Vec<_> = pinned.filter(|task| f.iso().contains(task.last)).collect();
    let names: std::collections::BTreeSet<String> =
        there.iter().map(|task| format!("{} ({})", task.name, task.pid)).collect();
    let names: Vec<String> = names.into_iter().collect();
    let shared: Vec<String> = f
        .iso()
        .iter()
        .filter(|cpu| there.iter().filter(|task| task.last == *cpu).count() > 1)
        .map(|cpu| cpu.to_string())
        .collect();
    let strays = tasks.iter().filter(|task| {
        !task.kernel && task.allowed == online && f.iso().contains(task.last) && online.len() > 1
    });
    let strays = strays.count();
    if strays > 0 {
        let said = format!("{strays} threads that may run anywhere last ran on CPUs {}", f.iso());
        return judge(EvidenceLevel::Seen, false, CheckStatus::Fail, said);
    }
    let said = match (names.is_empty(), shared.is_empty()) {
        (true, _) => "no program's thread ran on an isolated CPU".to_owned(),
        (false, true) => format!("pinned to isolated CPUs: {}", few(&names)),
        (false, false) => {
            format!("several threads share CPU {}: {}", shared.join(", "), few(&names))
        }
    };
    judge(EvidenceLevel::Seen, shared.is_empty(), CheckStatus::Warn, said)
}

fn manager(f: &Facts<'_>) -> Answer {
    let tasks = f.tasks()?;
    let Some(first) = tasks.iter().find(|task| task.pid == 1 && task.tid == 1) else {
        return not_applicable("there is no process 1");
    };
    // isolcpus= alone already takes the isolated CPUs out of the first process.
    let touched = first.allowed.intersection(f.iso());
    let said = format!("{} (process 1) may use CPUs {}", first.name, first.allowed);
    judge(EvidenceLevel::Set, touched.is_empty(), CheckStatus::Warn, said)
}

fn siblings(f: &Facts<'_>) -> Answer {
    let mut shared = Vec::new();
    for cpu in f.iso().iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let others = f.cpus(&path)?.minus(&[cpu].into_iter().collect());
        if !others.is_empty() {
            shared.push((cpu, others));
        }
    }
    if shared.is_empty() {
        return judge(
            EvidenceLevel::Set,
            true,
            CheckStatus::Fail,
            format!("{}: each is alone on its core", f.isolated_cpus()),
        );
    }
    let with_others: Vec<String> = shared
        .iter()
        .filter(|(_, others)| !others.is_subset(f.iso()))
        .map(|(cpu, others)| format!("{cpu} with {others}"))
        .collect();
    match with_others.is_empty() {
        true => judge(
            EvidenceLevel::Set,
            false,
            CheckStatus::Warn,
            format!("{} share cores with each other: use one of each pair", f.isolated_cpus()),
        ),
        false => judge(
            EvidenceLevel::Set,
            false,
            CheckStatus::Fail,
            format!("{} share cores with others: {}", f.isolated_cpus(), few(&with_others)),
        ),
    }
}

fn boot_cpu(f: &Facts<'_>) -> Answer {
    f.cpus("/sys/devices/system/cpu/online")?;
    let good = !f.iso().contains(0);
    let said = if good { "CPU 0 is for housekeeping" } else { "CPU 0 is to be isolated" };
    judge(EvidenceLevel::Set, good, CheckStatus::Warn, said)
}

fn all_online(f: &Facts<'_>) -> Answer {
    let missing = f.iso().minus(&f.cpus("/sys/devices/system/cpu/online")?);
    let said = match missing.is_empty() {
        true => format!("CPUs {} are online", f.iso()),
        false => format!("CPUs {missing} are offline: bringing them back stops all others"),
    };
    judge(EvidenceLevel::Set, missing.is_empty(), CheckStatus::Warn, said)
}

fn tick_gone(f: &Facts<'_>) -> Answer {
    let counters = f.counted("/proc/interrupts")?;
    let ms = f.observed_ms()?;
    let Some(row) = counters.row("LOC") else {
        return not_applicable("this architecture does not count local timer interrupts as LOC");
    };
    let rate = |cpu: &u32| row.counts.get(cpu).map_or(0, |count| count * 1_000 / ms);
    let busy: Vec<String> = f
        .iso()
        .iter()
        .filter(|cpu| rate(cpu) > 2)
        .map(|cpu| format!("CPU {cpu}: {}/s", rate(&cpu)))
        .collect();
    let good = busy.is_empty();
    let said = if good {
        format!("at most 2/s on each of {}", f.iso())
    } else {
        format!("timer interrupts, {}", few(&busy))
    };
    judge(EvidenceLevel::Seen, good, CheckStatus::Fail, said)
}
