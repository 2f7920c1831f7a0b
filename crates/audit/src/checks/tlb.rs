//! MEM, second part: faults of the workload, and what makes other CPUs flush address translations.

use super::*;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("tlb.json"),
    evaluators: &[
        ("MEM-008", locked),
        ("MEM-013", flushes),
        ("MEM-014", function_calls),
        ("MEM-015", wiping),
        ("MEM-016", group_statistics),
    ],
};

fn locked(f: &Facts<'_>) -> Answer {
    let online = f.cpus("/sys/devices/system/cpu/online")?;
    let pinned = f
        .tasks()?
        .iter()
        .filter(|task| !task.kernel && task.allowed != online && task.allowed.is_subset(f.iso()));
    let pids: std::collections::BTreeMap<u32, &str> =
        pinned.map(|task| (task.pid, task.name.as_str())).collect();
    if pids.is_empty() {
        return not_applicable(format!("no program is pinned to {}", f.isolated_cpus()));
    }
    let mut loose = Vec::new();
    for (pid, name) in &pids {
        let Some(status) = f.optional(&format!("/proc/{pid}/status"))? else { continue };
        let kb = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        if kb("VmLck") * 10 < kb("VmRSS") * 9 {
            loose.push(format!("{name} ({pid}): {} of {} kB locked", kb("VmLck"), kb("VmRSS")));
        }
    }
    none_of(Set, &loose, Warn, "locked")
}

/// A row of `/proc/interrupts` does not count on isolated CPUs.
fn no_interrupts(f: &Facts<'_>, name: &str) -> Answer {
    let counters = f.counter_growth("/proc/interrupts")?;
    let ms = f.observed_ms()?;
    let Some(row) = counters.row(name) else {
        return not_applicable(format!("this architecture does not count {name}"));
    };
    let count = row.on(f.iso());
    let said = format!("{count} on {} in {} s", or_none(f.iso()), ms as f64 / 1e3);
    judge(Seen, count == 0, Fail, said)
}

fn flushes(f: &Facts<'_>) -> Answer {
    no_interrupts(f, "TLB")
}

fn function_calls(f: &Facts<'_>) -> Answer {
    no_interrupts(f, "CAL").map(|mut answer| {
        // Others call functions as well: ipi:ipi_send_cpu tells who.
        if answer.verdict == Fail {
            answer.verdict = Warn;
        }
        answer
    })
}

fn wiping(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let mut on = Vec::new();
    for (word, option) in
        [("init_on_alloc", "INIT_ON_ALLOC_DEFAULT_ON"), ("init_on_free", "INIT_ON_FREE_DEFAULT_ON")]
    {
        let set = match line.last(word) {
            Some(value) => matches!(value, "1" | "on" | "y"),
            None => !f.built_with(&[option])?.is_empty(),
        };
        if set {
            on.push(word);
        }
    }
    if line.has("slub_debug") || line.has("slab_debug") {
        on.push("slub_debug");
    }
    let said = if on.is_empty() { "off".to_owned() } else { format!("on: {}", on.join(", ")) };
    judge(Asked, on.is_empty(), Warn, said)
}

fn group_statistics(f: &Facts<'_>) -> Answer {
    let kernel = f.kernel()?;
    let isolated = super::isolation::isolated(f)?;
    if !f.iso().is_subset(&isolated) {
        return judge(Set, false, Warn, "the CPUs are not isolated (ISO-001)");
    }
    judge(Set, kernel >= KernelVersion::new(6, 4), Warn, format!("Linux {kernel}"))
}
