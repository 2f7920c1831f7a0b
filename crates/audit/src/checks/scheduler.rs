//! SCH: how the scheduler treats the packets' threads.

use super::*;
use crate::tasks::Task;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("scheduler.json"),
    evaluators: &[
        ("SCH-001", throttling),
        ("SCH-002", fair_server),
        ("SCH-003", pinned),
        ("SCH-004", runnable),
        ("SCH-005", |f| sysctl(f, "kernel.timer_migration", Warn, |text| text == "0")),
        ("SCH-006", |f| sysctl(f, "kernel.sched_autogroup_enabled", Warn, |text| text == "0")),
        ("SCH-007", accounting),
        ("SCH-008", constants),
        ("SCH-009", preemption),
        ("SCH-010", bpf_scheduler),
    ],
};

/// Real-time threads of programs that may use a watched CPU: those that poll, and those that sleep.
fn real_time(f: &Facts<'_>) -> Result<[Vec<String>; 2], Unread> {
    let watched = watched(f)?;
    let tasks = f.tasks()?.iter().filter(|task| !task.kernel && task.real_time());
    let there = tasks.filter(|task| !task.allowed.intersection(&watched).is_empty());
    // A thread that polls is always found running; a daemon that waits for events is found asleep.
    let (poll, sleep): (Vec<_>, Vec<_>) = there.partition(|task| task.running);
    let told = |task: &Task| format!("{} ({})", task.name, task.tid);
    Ok([poll, sleep].map(|tasks| tasks.into_iter().map(told).collect()))
}

/// Whether real-time threads are throttled at all: since 6.12 only those of groups.
fn throttles(f: &Facts<'_>) -> Result<bool, Unread> {
    Ok(f.kernel()? < KernelVersion::new(6, 12) || !f.built_with(&["RT_GROUP_SCHED"])?.is_empty())
}

fn throttling(f: &Facts<'_>) -> Answer {
    const PATH: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    let runtime = match f.optional(PATH)? {
        Some(_) => f.number(PATH)?,
        None => return not_applicable("this kernel does not throttle"),
    };
    if runtime == -1 {
        return ok(Set, "nothing is throttled");
    }
    if !throttles(f)? {
        return not_applicable(
            "since 6.12 it throttles real-time groups only (CONFIG_RT_GROUP_SCHED): see SCH-002",
        );
    }
    let [poll, sleep] = real_time(f)?;
    if !poll.is_empty() {
        let said = format!("{runtime} of 1000000 µs for {}", few(&poll));
        return judge(Set, false, Fail, said);
    }
    let asleep = match sleep.is_empty() {
        true => String::new(),
        false => format!(" ({} sleep)", few(&sleep)),
    };
    let good = f.intent().workload != Workload::Poll;
    let said = match good {
        true => format!("{runtime} µs, and no real-time thread polls{asleep}"),
        false => format!(
            "{runtime} of 1000000 µs: no real-time thread polls now{asleep}, one that does would be throttled"
        ),
    };
    judge(Set, good, Warn, said)
}

fn fair_server(f: &Facts<'_>) -> Answer {
    let mut on = Vec::new();
    for cpu in f.iso().iter() {
        if f.number(&format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"))? != 0 {
            on.push(cpu.to_string());
        }
    }
    if on.is_empty() {
        let said = format!("off on the {}", f.isolated_cpus());
        return ok(Set, said);
    }
    let [poll, sleep] = real_time(f)?;
    let said = format!(
        "on for CPUs {}, real-time threads there: {} poll, {} sleep",
        on.join(","),
        poll.len(),
        sleep.len()
    );
    judge(Set, poll.is_empty(), Fail, said)
}

fn pinned(f: &Facts<'_>) -> Answer {
    let threads = f.tasks()?.iter().filter(|task| !task.kernel && task.allowed.len() == 1);
    let on: Vec<u32> = threads.filter_map(|task| task.allowed.iter().next()).collect();
    let count = |cpu: u32| on.iter().filter(|other| **other == cpu).count();
    let shared: Vec<String> =
        f.iso().iter().filter(|cpu| count(*cpu) > 1).map(|cpu| cpu.to_string()).collect();
    let used = f.iso().iter().filter(|cpu| count(*cpu) > 0).count();
    if used == 0 {
        let cpus = f.isolated_cpus();
        return not_applicable(format!("nothing is pinned to {cpus}: the workload does not run"));
    }
    let said = match shared.is_empty() {
        true => format!("one thread on each of {used} {}", f.isolated_cpus()),
        false => format!("several threads are pinned to CPU {}", shared.join(", ")),
    };
    judge(Set, shared.is_empty(), Warn, said)
}

fn runnable(f: &Facts<'_>) -> Answer {
    const PATH: &str = "/sys/kernel/debug/sched/debug";
    let text = f.text(PATH)?;
    let mut cpu = None;
    let mut counts = std::collections::BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.trim().strip_prefix("cpu#") {
            cpu = rest
                .split(|c: char| !c.is_ascii_digit())
                .next()
                .and_then(|n| n.parse::<u32>().ok());
        } else if let (Some(number), Some((".nr_running", count))) =
            (cpu, line.split_once(':').map(|(name, count)| (name.trim(), count)))
            && let Ok(count) = count.trim().parse::<u32>()
        {
            // The first line of a CPU is its own; those of groups follow.
            counts.entry(number).or_insert(count);
        }
    }
    let mut busy = Vec::new();
    for cpu in f.iso().iter() {
        let Some(count) = counts.get(&cpu) else {
            return Err(broken(PATH, &format!("without cpu#{cpu}"), "a part for each CPU"));
        };
        if *count > 1 {
            busy.push(format!("CPU {cpu}: {count}"));
        }
    }
    let said = if busy.is_empty() {
        "at most one each".to_owned()
    } else {
        format!("runnable threads, {}", few(&busy))
    };
    judge(Seen, busy.is_empty(), Fail, said)
}

fn accounting(f: &Facts<'_>) -> Answer {
    let mut on = Vec::new();
    for (key, path) in [
        ("sched_schedstats", "/proc/sys/kernel/sched_schedstats"),
        ("task_delayacct", "/proc/sys/kernel/task_delayacct"),
    ] {
        if f.optional(path)?.is_some_and(|text| text != "0") {
            on.push(key);
        }
    }
    if f.optional("/proc/pressure/cpu")?.is_some() {
        on.push("psi");
    }
    // A boot line always exists: without it nothing here would rest on anything.
    f.boot()?;
    let said = if on.is_empty() { "all off".to_owned() } else { format!("on: {}", on.join(", ")) };
    judge(Set, on.is_empty(), Warn, said)
}

/// The longest slice of a kernel itself: 0.75 ms (0.70 in later ones) times 1 + log2 of the CPUs, of which eight count.
const LONGEST_SLICE_NS: i64 = 3_000_000;

fn constants(f: &Facts<'_>) -> Answer {
    let mut answers = Vec::new();
    for (name, good) in [("migration_cost_ns", &["500000"][..]), ("nr_migrate", &["32", "8"][..])] {
        if let Some(text) = f.optional(&format!("/sys/kernel/debug/sched/{name}"))? {
            let verdict = if good.contains(&text.as_str()) { CheckStatus::Ok } else { Warn };
            answers.push(Finding::new(verdict, Set, format!("{name} is {text}")));
        }
    }
    const SLICE: &str = "/sys/kernel/debug/sched/base_slice_ns";
    if f.optional(SLICE)?.is_some() {
        let ns = f.number(SLICE)?;
        let verdict = if ns <= LONGEST_SLICE_NS { CheckStatus::Ok } else { Warn };
        answers.push(Finding::new(verdict, Set, format!("base_slice_ns is {ns}")));
    }
    if answers.is_empty() {
        return not_applicable("debugfs does not show them (kernels before 5.13 had sysctls)");
    }
    Ok(crate::questions::worst(answers))
}

fn bpf_scheduler(f: &Facts<'_>) -> Answer {
    let Some(state) = f.optional("/sys/kernel/sched_ext/state")? else {
        return not_applicable("this kernel is built without CONFIG_SCHED_CLASS_EXT");
    };
    if state == "disabled" {
        return ok(Set, "none is loaded");
    }
    let name = f.optional("/sys/kernel/sched_ext/root/ops")?;
    judge(Set, false, Warn, format!("{} is {state}", name.as_deref().unwrap_or("one")))
}

fn preemption(f: &Facts<'_>) -> Answer {
    if f.is_real_time()? {
        let polls = f.intent().workload == Workload::Poll;
        let said = if polls {
            "real-time kernel: a lone polling thread is faster without"
        } else {
            "real-time kernel"
        };
        return judge(Set, !polls, Warn, said);
    }
    let version = f.text("/proc/sys/kernel/version")?;
    let built = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"]
        .into_iter()
        .find(|name| version.contains(name));
    let (model, offered) = match built {
        Some("PREEMPT_DYNAMIC") => dynamic_model(&f.text("/sys/kernel/debug/sched/preempt")?),
        Some("PREEMPT") if is_lazy(f)? => ("lazy".to_owned(), Vec::new()),
        Some("PREEMPT") => ("full".to_owned(), Vec::new()),
        Some(other) => (other.to_owned(), Vec::new()),
        None => ("none or voluntary".to_owned(), Vec::new()),
    };
    let bad = f.intent().workload == Workload::Poll && model == "full";
    // Which words preempt= takes depends on the kernel: it lists them.
    let right = ["none", "lazy"].into_iter().find(|word| offered.iter().any(|known| known == word));
    let said = match (bad, right) {
        (true, Some(word)) => {
            format!(
                "preemption: {model}; this kernel offers {}: preempt={word}",
                offered.join(", ")
            )
        }
        _ => format!("preemption: {model}"),
    };
    judge(Set, !bad, Warn, said)
}

/// Whether a kernel whose model is fixed was built with lazy preemption, which came with 6.13.
fn is_lazy(f: &Facts<'_>) -> Result<bool, Unread> {
    if f.kernel()? < KernelVersion::new(6, 13) {
        return Ok(false);
    }
    Ok(!f.built_with(&["PREEMPT_LAZY"])?.is_empty())
}

/// The model in force, which is in parentheses, and all that the kernel offers.
fn dynamic_model(text: &str) -> (String, Vec<String>) {
    let plain = |word: &str| word.trim_matches(['(', ')']).to_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let model = words.iter().find(|word| word.starts_with('(')).map(|word| plain(word));
    (model.unwrap_or_else(|| "not told".to_owned()), words.into_iter().map(plain).collect())
}
