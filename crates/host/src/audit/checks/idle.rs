//! PWR, first part: what a CPU does when it has nothing to do.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{cpu_values, few, per_cpu, watched};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use super::super::paths::DMA_LATENCY;
use crate::Workload;
use std::collections::BTreeMap;

const CPU: &str = "/sys/devices/system/cpu";
/// Longest way out of an idle state that a promise of tens of microseconds can bear, in µs: C1 and C1E.
const BUDGET_US: i64 = 10;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "PWR-001",
        title: "The idle driver is known",
        importance: Importance::Low,
        why: "intel_idle.max_cstate=0 does not keep CPUs awake: it hands them to acpi_idle, which knows deep states as well.",
        read_from: &["/sys/devices/system/cpu/cpuidle/current_driver", "/proc/cmdline"],
        wanted: "intel_idle or acpi_idle with PWR-003, haltpoll in guests, or none with idle=poll",
        set_boot: "remove intel_idle.max_cstate=0",
        undo: "put the word back",
        source: "kernel-parameters.txt; ducked-tails, Table I",
        evaluate: driver,
        ..Check::BLANK
    },
    Check {
        id: "PWR-002",
        title: "idle=poll only where useful",
        importance: Importance::Low,
        why: "Idle CPUs that poll heat the package, take turbo from the others and time from a hyper-thread. A polling program gains nothing.",
        read_from: &["/proc/cmdline", "/sys/devices/system/cpu/smt/active"],
        wanted: "not in the line; limit idle states instead (PWR-003)",
        set_boot: "remove idle=poll",
        undo: "add idle=poll",
        source: "kernel-parameters.txt; no_hz.rst",
        evaluate: idle_poll,
        ..Check::BLANK
    },
    Check {
        id: "PWR-003",
        title: "No idle state with a long exit latency",
        importance: Importance::High,
        why: "The first packet after a pause waits until the CPU is awake: 1 µs from C1, about 170 µs from C6.",
        read_from: &[
            "/sys/devices/system/cpu/cpu#/cpuidle/state#/latency",
            "/sys/devices/system/cpu/cpu#/cpuidle/state#/disable",
        ],
        wanted: "states that take more than 10 µs to leave are disabled",
        cost: "power, heat, and turbo of the other CPUs",
        set_now: "echo 1 > /sys/devices/system/cpu/cpuN/cpuidle/stateM/disable",
        set_boot: "intel_idle.max_cstate=1 processor.max_cstate=1",
        undo: "echo 0 > the same file",
        source: "Documentation/admin-guide/pm/cpuidle.rst; tuned issue 808: by latency, never by number",
        evaluate: deep_states,
        ..Check::BLANK
    },
    Check {
        id: "PWR-004",
        title: "A program limits idle exit latency",
        importance: Importance::Medium,
        why: "A program that holds /dev/cpu_dma_latency open limits the idle states of all CPUs until it ends.",
        read_from: &["/tailtrim/cpu_dma_latency"],
        wanted: "at most 10 µs, unless deep states are disabled (PWR-003)",
        cost: "power and heat",
        set_now: "tuned with force_latency, or a service that holds the file",
        undo: "end the holder",
        source: "reflector study, section 4; tuned latency-performance",
        evaluate: held_latency,
        ..Check::BLANK
    },
    Check {
        id: "PWR-005",
        title: "Limits of idle latency by CPU",
        importance: Importance::Low,
        why: "The limit can be set for the isolated CPUs alone. 0 means no limit; n/a is the strictest: no idle \
            state at all.",
        read_from: &["/sys/devices/system/cpu/cpu#/power/pm_qos_resume_latency_us"],
        wanted: "n/a or 1 to 10 on {iso}, unless deep states are disabled (PWR-003)",
        set_now: "echo n/a > /sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us",
        undo: "echo 0 > the same file",
        source: "tuned issue 587; Documentation/ABI/testing/sysfs-devices-power",
        needs: &[Need::Isolated],
        evaluate: limits,
        ..Check::BLANK
    },
    Check {
        id: "PWR-006",
        title: "acpi_idle is kept from deep states",
        importance: Importance::Medium,
        why: "Where acpi_idle is in charge processor.max_cstate limits it. 0 is taken for 1.",
        read_from: &[
            "/sys/module/processor/parameters/max_cstate",
            "/sys/devices/system/cpu/cpuidle/current_driver",
        ],
        wanted: "1 with acpi_idle",
        cost: "power and heat",
        set_boot: "processor.max_cstate=1",
        undo: "remove the word and reboot",
        source: "NFV host guide; drivers/acpi/processor_idle.c",
        evaluate: acpi_limit,
        ..Check::BLANK
    },
];

fn driver(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let driver = f.optional(&format!("{CPU}/cpuidle/current_driver"))?;
    let shown = driver.as_deref().unwrap_or("no cpuidle");
    let zero = line.last("intel_idle.max_cstate") == Some("0");
    let bad = zero && line.last("idle") != Some("poll") && shown == "acpi_idle";
    let said = match zero {
        true => format!("idle driver {shown}, because of intel_idle.max_cstate=0"),
        false => format!("idle driver {shown}"),
    };
    judge(EvidenceLevel::Set, !bad, CheckStatus::Warn, said)
}

fn idle_poll(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("idle") != Some("poll") {
        return judge(
            EvidenceLevel::Asked,
            true,
            CheckStatus::Warn,
            "idle=poll is not in the line",
        );
    }
    let threads = f.optional(&format!("{CPU}/smt/active"))?.as_deref() == Some("1");
    let polls = f.intent().workload == Workload::Poll;
    let said = match (threads, polls) {
        (true, _) => "idle=poll with hyper-threads: idle siblings take execution units",
        (false, true) => "idle=poll: programs that poll are never idle",
        (false, false) => "idle=poll keeps all CPUs awake",
    };
    judge(EvidenceLevel::Asked, !threads && !polls, CheckStatus::Warn, said)
}

/// Idle states of a CPU that take longer to leave than the budget and may be entered.
fn slow_states(f: &Facts<'_>, cpu: u32) -> Result<Vec<(String, i64)>, crate::Unread> {
    let folder = format!("{CPU}/cpu{cpu}/cpuidle");
    let mut slow = Vec::new();
    for state in f.list_or_none(&folder)?.iter().filter(|name| name.starts_with("state")) {
        let latency = f.number(&format!("{folder}/{state}/latency"))?;
        // Bit 0 is the user's, bit 1 the driver's.
        if latency > BUDGET_US && f.number(&format!("{folder}/{state}/disable"))? == 0 {
            slow.push((f.text(&format!("{folder}/{state}/name"))?, latency));
        }
    }
    Ok(slow)
}

fn deep_states(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    if line.last("idle") == Some("poll") {
        return judge(
            EvidenceLevel::Asked,
            true,
            CheckStatus::Fail,
            "idle=poll: no idle state is used",
        );
    }
    let mut slow: BTreeMap<(String, i64), Vec<u32>> = BTreeMap::new();
    let mut states = 0;
    for cpu in watched(f)?.iter() {
        states += f.list_or_none(&format!("{CPU}/cpu{cpu}/cpuidle"))?.len();
        for state in slow_states(f, cpu)? {
            slow.entry(state).or_default().push(cpu);
        }
    }
    if states == 0 {
        return not_applicable(
            "the kernel knows no idle states here: a guest halts, its host decides",
        );
    }
    let named: Vec<String> = slow
        .iter()
        .map(|((name, latency), cpus)| {
            let cpus: crate::Cpus = cpus.iter().copied().collect();
            format!("{name} ({latency} µs) on CPUs {cpus}")
        })
        .collect();
    if named.is_empty() {
        return judge(
            EvidenceLevel::Set,
            true,
            CheckStatus::Fail,
            format!("no state takes more than {BUDGET_US} µs to leave"),
        );
    }
    // A holder of /dev/cpu_dma_latency keeps CPUs out of them as well: that can only soften the answer.
    let held = f.number(DMA_LATENCY).is_ok_and(|latency| latency <= BUDGET_US);
    let said = format!("may be entered: {}", few(&named));
    judge(EvidenceLevel::Set, false, if held { CheckStatus::Warn } else { CheckStatus::Fail }, said)
}

/// Whether some CPU knows idle states that take too long to leave and may enter them.
fn matters(f: &Facts<'_>) -> Result<bool, crate::Unread> {
    for cpu in watched(f)?.iter() {
        if !slow_states(f, cpu)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn held_latency(f: &Facts<'_>) -> Answer {
    if !matters(f)? {
        return not_applicable("no idle state takes long to leave");
    }
    let latency = f.number(DMA_LATENCY)?;
    // What the kernel gives if no process holds it: 2,000 s.
    let said = match latency >= 2_000_000_000 {
        true => "no program holds /dev/cpu_dma_latency".to_owned(),
        false => format!("{latency} µs"),
    };
    judge(EvidenceLevel::Set, latency <= BUDGET_US, CheckStatus::Warn, said)
}

fn limits(f: &Facts<'_>) -> Answer {
    if !matters(f)? {
        return not_applicable("no idle state takes long to leave");
    }
    per_cpu(
        f,
        &format!("{CPU}/cpu{{}}/power/pm_qos_resume_latency_us"),
        CheckStatus::Warn,
        |text| {
            text == "n/a" || text.parse::<i64>().is_ok_and(|limit| (1..=BUDGET_US).contains(&limit))
        },
    )
}

fn acpi_limit(f: &Facts<'_>) -> Answer {
    let driver = f.optional(&format!("{CPU}/cpuidle/current_driver"))?;
    if driver.as_deref() != Some("acpi_idle") {
        return not_applicable(format!("idle driver {}", driver.as_deref().unwrap_or("none")));
    }
    if cpu_values(f, &format!("{CPU}/cpu{{}}/cpuidle/state2/name"))?.is_empty() {
        return not_applicable("no state is deeper than C1");
    }
    super::super::ask::file(
        f,
        "/sys/module/processor/parameters/max_cstate",
        CheckStatus::Warn,
        |text| text == "1",
    )
}
