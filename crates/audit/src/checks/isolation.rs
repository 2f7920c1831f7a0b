//! ISO, first part: which CPUs the kernel keeps free, and what runs there all the same.

use super::*;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("isolation.json"),
    evaluators: &[
        ("ISO-001", scheduler_isolation),
        ("ISO-002", managed_irq),
        ("ISO-003", full_dynticks),
        ("ISO-004", lists_agree),
        ("ISO-005", nohz_flag),
        ("ISO-016", programs_keep_off),
        ("ISO-017", manager),
        ("ISO-021", siblings),
        ("ISO-022", boot_cpu),
        ("ISO-023", all_online),
        ("ISO-024", tick_gone),
    ],
};

/// CPUs that the scheduler leaves alone, by boot line or by cpuset.
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
    if missing.is_empty() {
        return judge(Set, true, Fail, format!("{} isolated", set.does("is", "are")));
    }
    let mut said =
        format!("{} not isolated (isolated: {})", missing.does("is", "are"), or_none(&set));
    // A partition that the kernel cannot make says why: isolated invalid (Parent is not a partition root).
    for pattern in PARTITIONS {
        for (path, state) in f.glob(pattern)?.iter().filter(|(_, state)| state.contains("invalid"))
        {
            let group = path.trim_start_matches("/sys/fs/cgroup/");
            said += &format!("; {}: {state}", group.trim_end_matches("/cpuset.cpus.partition"));
        }
    }
    judge(Set, false, Fail, said)
}

const PARTITIONS: [&str; 2] =
    ["/sys/fs/cgroup/*/cpuset.cpus.partition", "/sys/fs/cgroup/*/*/cpuset.cpus.partition"];

fn managed_irq(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let has =
        line.last("isolcpus").is_some_and(|list| list.split(',').any(|flag| flag == "managed_irq"));
    let said = if has {
        "isolcpus= has managed_irq".to_owned()
    } else {
        format!("managed interrupts may be placed on {}", f.isolated_cpus())
    };
    judge(Asked, has, Warn, said)
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
        return judge(Set, false, Fail, "this kernel is built without CONFIG_NO_HZ_FULL");
    };
    let missing = f.iso().minus(&set);
    let said = match missing.is_empty() {
        true => format!("nohz_full has {set}"),
        false => format!("{} a tick (nohz_full: {})", missing.does("keeps", "keep"), or_none(&set)),
    };
    judge(Set, missing.is_empty(), Fail, said)
}

fn lists_agree(f: &Facts<'_>) -> Answer {
    let (set, Some(tickless)) = (isolated(f)?, tickless(f)?) else {
        return not_applicable("this kernel is built without CONFIG_NO_HZ_FULL");
    };
    if set.is_empty() && tickless.is_empty() {
        return not_applicable("neither list is set");
    }
    let said = format!("isolated: {}, nohz_full: {}", or_none(&set), or_none(&tickless));
    judge(Set, set == tickless, Warn, said)
}

fn nohz_flag(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let Some(value) = line.last("isolcpus") else {
        return not_applicable("isolcpus= is not in the line");
    };
    let has = value.split(',').any(|flag| flag == "nohz");
    if has && f.kernel()? >= KernelVersion::new(7, 2) {
        let said = format!("isolcpus={value}: in this kernel nohz does what nohz_full= does");
        return ok(Asked, said);
    }
    judge(Asked, !has, Warn, format!("isolcpus={value}"))
}

fn programs_keep_off(f: &Facts<'_>) -> Answer {
    if !f.iso().is_subset(&isolated(f)?) {
        return not_applicable("the CPUs are not isolated, anything may run there (ISO-001)");
    }
    let online = f.cpus("/sys/devices/system/cpu/online")?;
    let tasks = f.tasks()?;
    // Threads that may run everywhere were not pinned here: ISO-001 answers for those.
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
        let said =
            format!("threads that may run anywhere last ran on {}: {strays}", f.iso().named());
        return judge(Seen, false, Fail, said);
    }
    let said = match (names.is_empty(), shared.is_empty()) {
        (true, _) => "no program's thread ran on an isolated CPU".to_owned(),
        (false, true) => format!("pinned to isolated CPUs: {}", few(&names)),
        (false, false) => {
            format!("several threads share CPU {}: {}", shared.join(", "), few(&names))
        }
    };
    judge(Seen, shared.is_empty(), Warn, said)
}

fn manager(f: &Facts<'_>) -> Answer {
    let tasks = f.tasks()?;
    let Some(first) = tasks.iter().find(|task| task.pid == 1 && task.tid == 1) else {
        return not_applicable("there is no process 1");
    };
    // isolcpus= alone already takes the isolated CPUs out of the first process.
    let touched = first.allowed.intersection(f.iso());
    let said = format!("{} (process 1) may use {}", first.name, first.allowed.named());
    judge(Set, touched.is_empty(), Warn, said)
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
        return ok(Set, format!("{}: each is alone on its core", f.isolated_cpus()));
    }
    let with_others: Vec<String> = shared
        .iter()
        .filter(|(_, others)| !others.is_subset(f.iso()))
        .map(|(cpu, others)| format!("{cpu} with {others}"))
        .collect();
    match with_others.is_empty() {
        true => judge(
            Set,
            false,
            Warn,
            format!("{} share cores with each other: use one of each pair", f.isolated_cpus()),
        ),
        false => judge(
            Set,
            false,
            Fail,
            format!("{} share cores with others: {}", f.isolated_cpus(), few(&with_others)),
        ),
    }
}

fn boot_cpu(f: &Facts<'_>) -> Answer {
    f.cpus("/sys/devices/system/cpu/online")?;
    let good = !f.iso().contains(0);
    let said = if good { "CPU 0 is for housekeeping" } else { "CPU 0 is to be isolated" };
    judge(Set, good, Warn, said)
}

fn all_online(f: &Facts<'_>) -> Answer {
    let missing = f.iso().minus(&f.cpus("/sys/devices/system/cpu/online")?);
    let said = match missing.is_empty() {
        true => format!("{} online", f.iso().does("is", "are")),
        false => {
            format!("{} offline: bringing them back stops all others", missing.does("is", "are"))
        }
    };
    judge(Set, missing.is_empty(), Warn, said)
}

fn tick_gone(f: &Facts<'_>) -> Answer {
    let counters = f.counter_growth("/proc/interrupts")?;
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
    judge(Seen, good, Fail, said)
}
