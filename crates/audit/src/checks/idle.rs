//! PWR, first part: what a CPU does when it has nothing to do.

use super::*;
use std::collections::BTreeMap;
use tailtrim_host::paths::DMA_LATENCY;

const CPU: &str = "/sys/devices/system/cpu";
/// Longest way out of an idle state that a promise of tens of microseconds can bear, in µs: C1 and C1E.
const BUDGET_US: i64 = 10;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("idle.json"),
    evaluators: &[
        ("PWR-001", driver),
        ("PWR-002", idle_poll),
        ("PWR-003", deep_states),
        ("PWR-004", held_latency),
        ("PWR-005", limits),
        ("PWR-006", acpi_limit),
    ],
};

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
    judge(Set, !bad, Warn, said)
}

fn idle_poll(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("idle") != Some("poll") {
        return ok(Asked, "idle=poll is not in the line");
    }
    let threads = f.optional(&format!("{CPU}/smt/active"))?.as_deref() == Some("1");
    let polls = f.intent().workload == Workload::Poll;
    let said = match (threads, polls) {
        (true, _) => "idle=poll with hyper-threads: idle siblings take execution units",
        (false, true) => "idle=poll: programs that poll are never idle",
        (false, false) => "idle=poll keeps all CPUs awake",
    };
    judge(Asked, !threads && !polls, Warn, said)
}

/// Idle states of a CPU that take longer to leave than the budget and may be entered.
fn slow_states(f: &Facts<'_>, cpu: u32) -> Result<Vec<(String, i64)>, Unread> {
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
        return ok(Asked, "idle=poll: no idle state is used");
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
            let cpus: Cpus = cpus.iter().copied().collect();
            format!("{name} ({latency} µs) on {}", cpus.named())
        })
        .collect();
    if named.is_empty() {
        return ok(Set, format!("no state takes more than {BUDGET_US} µs to leave"));
    }
    // A holder of /dev/cpu_dma_latency keeps CPUs out of them as well: that can only soften the answer.
    let held = f.number(DMA_LATENCY).is_ok_and(|latency| latency <= BUDGET_US);
    let said = format!("may be entered: {}", few(&named));
    judge(Set, false, if held { Warn } else { Fail }, said)
}

/// Whether some CPU knows idle states that take too long to leave and may enter them.
fn matters(f: &Facts<'_>) -> Result<bool, Unread> {
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
    // Value of the kernel if no process holds it: 2,000 s.
    let said = match latency >= 2_000_000_000 {
        true => "no program holds /dev/cpu_dma_latency".to_owned(),
        false => format!("{latency} µs"),
    };
    judge(Set, latency <= BUDGET_US, Warn, said)
}

fn limits(f: &Facts<'_>) -> Answer {
    if !matters(f)? {
        return not_applicable("no idle state takes long to leave");
    }
    per_cpu(f, &format!("{CPU}/cpu{{}}/power/pm_qos_resume_latency_us"), Warn, |text| {
        text == "n/a" || text.parse::<i64>().is_ok_and(|limit| (1..=BUDGET_US).contains(&limit))
    })
}

fn acpi_limit(f: &Facts<'_>) -> Answer {
    let driver = f.optional(&format!("{CPU}/cpuidle/current_driver"))?;
    if driver.as_deref() != Some("acpi_idle") {
        return not_applicable(format!("idle driver {}", driver.as_deref().unwrap_or("none")));
    }
    if cpu_values(f, &format!("{CPU}/cpu{{}}/cpuidle/state2/name"))?.is_empty() {
        return not_applicable("no state is deeper than C1");
    }
    file(f, "/sys/module/processor/parameters/max_cstate", Warn, |text| text == "1")
}
