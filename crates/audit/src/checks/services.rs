//! SVC: what else runs, and what watches.

use super::*;
use tailtrim_host::paths::TIMERS;

const TRACING: &str = "/sys/kernel/tracing";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("services.json"),
    evaluators: &[
        ("SVC-001", jobs),
        ("SVC-002", monitoring),
        ("SVC-003", tracing),
        ("SVC-004", tuners),
        ("SVC-005", quotas),
        ("SVC-006", plain),
        ("SVC-007", built),
        ("SVC-008", accounting),
    ],
};

fn jobs(f: &Facts<'_>) -> Answer {
    let mut found: Vec<String> = f
        .running(&["cron", "crond", "anacron", "atd", "unattended-upgr"])?
        .into_iter()
        .map(str::to_owned)
        .collect();
    // Without systemd there are no timers of systemd.
    if let Some(timers) = f.optional(TIMERS)? {
        found.extend(timers.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    }
    none_of(Seen, &found, Warn, "none")
}

fn monitoring(f: &Facts<'_>) -> Answer {
    let names = [
        "telegraf",
        "rezolus",
        "netdata",
        "pcm",
        "pcm-sensor-serv",
        "turbostat",
        "intel_lpmd",
        "perf",
        "node_exporter",
        "powertop",
        "sadc",
        "pmdaperfevent",
    ];
    let found = f.running(&names)?;
    let said = if found.is_empty() {
        "none of the known services runs".to_owned()
    } else {
        format!("running: {}", few(&found))
    };
    judge(Seen, found.is_empty(), Warn, said)
}

fn tracing(f: &Facts<'_>) -> Answer {
    let Some(tracer) = f.optional(&format!("{TRACING}/current_tracer"))? else {
        return not_applicable("tracefs is not mounted, or this kernel has none");
    };
    let mut on = Vec::new();
    if tracer != "nop" {
        on.push(format!("tracer {tracer}"));
    }
    // 0 none, 1 all, X some.
    let events = f.text(&format!("{TRACING}/events/enable"))?;
    if events != "0" {
        on.push(format!("events {events}"));
    }
    for (path, text) in f.glob(&format!("{TRACING}/instances/*/current_tracer"))? {
        on.push(format!("instance {} ({text})", path.split('/').nth(5).unwrap_or_default()));
    }
    none_of(Set, &on, Warn, "nothing is traced")
}

fn tuners(f: &Facts<'_>) -> Answer {
    let found =
        f.running(&["tuned", "bpftune", "stalld", "irqbalance", "rt-conf", "ksmtuned", "numad"])?;
    let others: Vec<&str> = found.iter().copied().filter(|name| *name != "irqbalance").collect();
    let said =
        if found.is_empty() { "none".to_owned() } else { format!("running: {}", few(&found)) };
    judge(Seen, others.is_empty(), Warn, said)
}

/// Groups as deep as those of a container in a pod: kubepods.slice/…-besteffort.slice/…-pod.slice/….scope.
const LIMITS: [&str; 4] = [
    "/sys/fs/cgroup/*/cpu.max",
    "/sys/fs/cgroup/*/*/cpu.max",
    "/sys/fs/cgroup/*/*/*/cpu.max",
    "/sys/fs/cgroup/*/*/*/*/cpu.max",
];

/// A quota stops a group also where its average is below: what counts is whether it was stopped.
fn quotas(f: &Facts<'_>) -> Answer {
    let mut groups = Vec::new();
    for pattern in LIMITS {
        groups.extend(f.glob(pattern)?);
    }
    if groups.is_empty() {
        return not_applicable("no group has a quota file (cgroup v2 with the cpu controller)");
    }
    let (mut limited, mut stopped) = (Vec::new(), Vec::new());
    for (path, quota) in groups.iter().filter(|(_, text)| !text.starts_with("max")) {
        let group = path.trim_end_matches("/cpu.max");
        let name = group.trim_start_matches("/sys/fs/cgroup/");
        limited.push(format!("{name}: {quota}"));
        let Ok((before, after)) = f.before_and_after(&format!("{group}/cpu.stat")) else {
            continue;
        };
        let grown = |key| {
            let count = |text: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(key))?;
                line.trim().parse::<u64>().ok()
            };
            count(&after)
                .zip(count(&before))
                .map_or(0, |(after, before)| after.saturating_sub(before))
        };
        let (times, us) = (grown("nr_throttled "), grown("throttled_usec "));
        if times > 0 {
            stopped.push(format!("{name} ({quota}) {times} times, {us} µs in all"));
        }
    }
    if !stopped.is_empty() {
        return judge(Seen, false, Fail, format!("stopped while watched: {}", few(&stopped)));
    }
    none_of(Set, &limited, Warn, format!("none of {} groups is limited", groups.len()))
}

fn plain(f: &Facts<'_>) -> Answer {
    let tainted = f.text("/proc/sys/kernel/tainted")?;
    let options =
        ["PROVE_LOCKING", "KASAN", "DEBUG_PAGEALLOC_ENABLE_DEFAULT", "KCSAN", "DEBUG_OBJECTS"];
    let slow = f.built_with(&options)?;
    let mut said = format!("tainted: {tainted}");
    if !slow.is_empty() {
        said += &format!("; built with {}", slow.join(", "));
    }
    let verdict = if slow.is_empty() { Warn } else { Fail };
    judge(Set, slow.is_empty() && tainted == "0", verdict, said)
}

fn built(f: &Facts<'_>) -> Answer {
    let options = ["NO_HZ_FULL", "RCU_NOCB_CPU", "CPU_ISOLATION", "CPUSETS"];
    let built = f.built_with(&options)?;
    let missing: Vec<&str> = options.into_iter().filter(|option| !built.contains(option)).collect();
    let said = if missing.is_empty() {
        "all four are built in".to_owned()
    } else {
        format!("not built in: {}", missing.join(", "))
    };
    judge(Set, missing.is_empty(), Fail, said)
}

fn accounting(f: &Facts<'_>) -> Answer {
    let mut on = f.built_with(&[
        "CONTEXT_TRACKING_FORCE",
        "CONTEXT_TRACKING_USER_FORCE",
        "DEBUG_PREEMPT",
        "IRQ_TIME_ACCOUNTING",
    ])?;
    if f.boot()?.all("tsc").any(|word| word.value.as_deref() == Some("noirqtime")) {
        on.retain(|option| *option != "IRQ_TIME_ACCOUNTING");
    }
    let said = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    judge(Set, on.is_empty(), Warn, said)
}
