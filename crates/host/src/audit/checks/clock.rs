//! CLK: clocks and what keeps them right.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::few;
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use super::super::paths::CONFIG;

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "CLK-001",
        title: "Time comes from the CPU's own counter",
        importance: Importance::High,
        why: "Reading the TSC takes 20 ns; HPET and the ACPI timer a microsecond and a system call, for every stamp.",
        read_from: &["/sys/devices/system/clocksource/clocksource0/current_clocksource"],
        wanted: "tsc; kvm-clock will do in a guest",
        set_now: "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        set_boot: "tsc=reliable, after the log told why the kernel distrusts it",
        undo: "echo the old name > the same file",
        source: "ducked-tails, Table I; timekeeping.rst",
        evaluate: source,
        ..Check::BLANK
    },
    Check {
        id: "CLK-002",
        title: "The counter runs at a constant rate, always",
        importance: Importance::Medium,
        why: "Without these features the counter follows the frequency or stops when idle, and the kernel turns to slower clocks.",
        read_from: &["/proc/cpuinfo"],
        wanted: "constant_tsc and nonstop_tsc",
        set_boot: "another CPU, or a hypervisor that hands the features through (invtsc)",
        undo: "",
        source: "NFV host guide; Intel's manual, volume 3, 19.17",
        evaluate: invariant,
        ..Check::BLANK
    },
    Check {
        id: "CLK-003",
        title: "Nothing checks the counter now and then",
        importance: Importance::Medium,
        why: "A watchdog compares clocks twice a second, on each CPU in turn. tsc=nowatchdog leaves another timer that visits a CPU each ten minutes.",
        read_from: &[
            "/proc/cmdline",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ],
        wanted: "tsc=reliable where the counter is invariant",
        cost: "a counter that goes wrong is not noticed",
        set_boot: "tsc=reliable",
        undo: "remove the word and reboot",
        source: "kernel-parameters.txt; OpenShift's node tuning operator, issue 756",
        needs: &[Need::Metal],
        evaluate: watchdog,
        ..Check::BLANK
    },
    Check {
        id: "CLK-004",
        title: "Ticks of CPUs do not come together",
        importance: Importance::Low,
        why: "All ticks at the same instant fight for the same locks; skewed they do not. Only where CPUs tick.",
        read_from: &["/proc/cmdline"],
        wanted: "skew_tick=1",
        set_boot: "skew_tick=1",
        undo: "remove the word and reboot",
        source: "ducked-tails, Table I; tuned network-latency",
        evaluate: skew,
        ..Check::BLANK
    },
    Check {
        id: "CLK-005",
        title: "Rate of the tick",
        importance: Importance::Low,
        why: "CPUs that tick do so CONFIG_HZ times a second. With nohz_full that no longer matters where packets are.",
        read_from: &["/tailtrim/kernel_config", "/sys/devices/system/cpu/nohz_full"],
        wanted: "any with nohz_full, else at most 250",
        set_boot: "nohz_full={iso}, or a kernel with a lower CONFIG_HZ",
        undo: "",
        source: "no_hz.rst",
        evaluate: tick_rate,
        ..Check::BLANK
    },
    Check {
        id: "CLK-006",
        title: "Time keepers run on housekeeping CPUs and do not step",
        importance: Importance::Medium,
        why: "A step of the clock interrupts every CPU; a daemon on an isolated CPU is one more thread there.",
        read_from: &["/proc/#/task/#/status"],
        wanted: "chronyd, ntpd, ptp4l, phc2sys keep off {iso}",
        set_now: "taskset -ap -c {hk} PID; let chronyd slew (no makestep after the start)",
        undo: "taskset -ap -c with the old list",
        source: "AWS trading benchmark; kernel/time/hrtimer.c",
        needs: &[Need::Isolated],
        evaluate: keepers,
        ..Check::BLANK
    },
];

fn source(f: &Facts<'_>) -> Answer {
    let name = f.text(CURRENT)?;
    let virtual_clock =
        matches!(name.as_str(), "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen");
    let arm = name == "arch_sys_counter";
    let good = name == "tsc" || arm || virtual_clock && f.is_guest()?;
    judge(EvidenceLevel::Set, good, CheckStatus::Fail, format!("clock source {name}"))
}

fn invariant(f: &Facts<'_>) -> Answer {
    if f.cpu_says("vendor_id")?.is_none() {
        return not_applicable("no x86 CPU");
    }
    let mut missing = Vec::new();
    for flag in ["constant_tsc", "nonstop_tsc"] {
        if !f.has_flag(flag)? {
            missing.push(flag);
        }
    }
    let said = if missing.is_empty() {
        "constant_tsc nonstop_tsc".to_owned()
    } else {
        format!("the CPU lacks {}", missing.join(", "))
    };
    judge(EvidenceLevel::Set, missing.is_empty(), CheckStatus::Warn, said)
}

fn watchdog(f: &Facts<'_>) -> Answer {
    if f.text(CURRENT)? != "tsc" {
        return not_applicable("the clock source is another one (CLK-001)");
    }
    let line = f.boot()?;
    let words: Vec<&str> = line.all("tsc").filter_map(|word| word.value.as_deref()).collect();
    let good = words.contains(&"reliable");
    let said = match (good, words.contains(&"nowatchdog")) {
        (true, _) => "tsc=reliable",
        (false, true) => "tsc=nowatchdog leaves a timer that visits each CPU",
        (false, false) => "the counter is checked",
    };
    judge(EvidenceLevel::Asked, good, CheckStatus::Warn, said)
}

fn skew(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let good = line.last("skew_tick") == Some("1");
    judge(
        EvidenceLevel::Asked,
        good,
        CheckStatus::Warn,
        if good { "skew_tick=1" } else { "ticks come at the same instant" },
    )
}

fn tick_rate(f: &Facts<'_>) -> Answer {
    let config = f.text(CONFIG)?;
    let rate = config
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_HZ="))
        .and_then(|text| text.parse::<u32>().ok());
    let Some(rate) = rate else {
        return not_applicable("the configuration does not tell CONFIG_HZ");
    };
    let tickless = match f.optional("/sys/devices/system/cpu/nohz_full")? {
        Some(_) => f.cpus("/sys/devices/system/cpu/nohz_full")?,
        None => crate::Cpus::none(),
    };
    let good = rate <= 250 || !f.iso().is_empty() && f.iso().is_subset(&tickless);
    judge(EvidenceLevel::Set, good, CheckStatus::Warn, format!("CONFIG_HZ is {rate}"))
}

fn keepers(f: &Facts<'_>) -> Answer {
    let names = ["chronyd", "ntpd", "ptp4l", "phc2sys", "systemd-timesyn", "openntpd", "ts2phc"];
    let found: Vec<_> =
        f.tasks()?.iter().filter(|task| names.contains(&task.name.as_str())).collect();
    if found.is_empty() {
        return judge(EvidenceLevel::Seen, true, CheckStatus::Warn, "no time keeper runs");
    }
    let there = found.iter().filter(|task| !task.allowed.intersection(f.iso()).is_empty());
    let there: Vec<String> =
        there.map(|task| format!("{} may use {}", task.name, task.allowed)).collect();
    let said =
        if there.is_empty() { format!("{} of them, elsewhere", found.len()) } else { few(&there) };
    judge(EvidenceLevel::Set, there.is_empty(), CheckStatus::Warn, said)
}
