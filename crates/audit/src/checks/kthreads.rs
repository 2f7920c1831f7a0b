//! ISO, third part: workqueues and the kernel's own threads.

use super::*;

const QUEUES: &str = "/sys/devices/virtual/workqueue";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("kthreads.json"),
    evaluators: &[
        ("ISO-012", |f| {
            keeps_off(
                f,
                "unbound workqueues",
                &f.mask("/sys/devices/virtual/workqueue/cpumask")?,
                Fail,
            )
        }),
        ("ISO-013", own_masks),
        ("ISO-014", bound_work),
        ("ISO-015", |f| {
            file(f, "/sys/module/workqueue/parameters/power_efficient", Warn, |text| text == "Y")
        }),
        ("ISO-018", movable),
        ("ISO-019", per_cpu_threads),
        ("ISO-020", forced_threads),
    ],
};

fn own_masks(f: &Facts<'_>) -> Answer {
    let all = f.glob(&format!("{QUEUES}/*/cpumask"))?;
    if all.is_empty() {
        return not_applicable("no workqueue here has a separate mask");
    }
    let mut there = Vec::new();
    for (path, _) in &all {
        if f.touches(&f.mask(path)?) {
            there.push(path.trim_start_matches(QUEUES).trim_matches('/').replace("/cpumask", ""));
        }
    }
    let said = match there.is_empty() {
        true => format!("{} masks keep off the {}", all.len(), f.isolated_cpus()),
        false => format!("may use {}: {}", f.isolated_cpus(), few(&there)),
    };
    judge(Set, there.is_empty(), Warn, said)
}

fn bound_work(f: &Facts<'_>) -> Answer {
    let cpu = |name: &str| -> Option<u32> {
        let rest = name.strip_prefix("kworker/")?;
        rest.split(':').next()?.parse().ok()
    };
    let woken = f.thread_wakeups()?;
    let there: Vec<String> = woken
        .iter()
        .filter(|(name, _)| cpu(name).is_some_and(|cpu| f.iso().contains(cpu)))
        .map(|(name, count)| format!("{name} woke {count} times"))
        .collect();
    none_of(Seen, &there, Warn, format!("none of {} woke", f.iso()))
}

fn movable(f: &Facts<'_>) -> Answer {
    let movable: Vec<_> = f.tasks()?.iter().filter(|task| task.kernel && !task.fixed).collect();
    if movable.is_empty() {
        return not_applicable("no kernel thread is visible");
    }
    let there = movable.iter().filter(|task| f.touches(&task.allowed));
    let names: Vec<&str> = there.map(|task| task.name.as_str()).collect();
    let (all, cpus) = (movable.len(), f.isolated_cpus());
    let said = match names.is_empty() {
        true => format!("{all} movable threads keep off the {cpus}"),
        false => format!("{} of {all} may use {cpus}: {}", names.len(), few(&names)),
    };
    judge(Set, names.is_empty(), Warn, said)
}

fn per_cpu_threads(f: &Facts<'_>) -> Answer {
    let real_time = f.is_real_time()?;
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
    none_of(Set, &bad, Warn, format!("{} threads as they should be", all.len()))
}

fn forced_threads(f: &Facts<'_>) -> Answer {
    if f.is_real_time()? {
        return not_applicable("a real-time kernel always has them in threads");
    }
    let has = f.boot()?.has("threadirqs");
    let said = if has { "threadirqs is in the line" } else { "handlers run in interrupts" };
    judge(Asked, !has, Warn, said)
}
