//! ISO, third part: workqueues and the kernel's own threads.

use crate::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use crate::ask::{few, file, keeps_off};
use crate::check::Topic;
use crate::facts::Facts;

const QUEUES: &str = "/sys/devices/virtual/workqueue";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("kthreads.json"),
    evaluators: &[
        ("ISO-012", |f| {
            keeps_off(
                f,
                "unbound workqueues",
                &f.mask("/sys/devices/virtual/workqueue/cpumask")?,
                CheckStatus::Fail,
            )
        }),
        ("ISO-013", own_masks),
        ("ISO-014", bound_work),
        ("ISO-015", |f| {
            file(f, "/sys/module/workqueue/parameters/power_efficient", CheckStatus::Warn, |text| {
                text == "Y"
            })
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
