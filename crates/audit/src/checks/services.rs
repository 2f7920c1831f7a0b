//! SVC: what else runs, and what watches.

use crate::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use crate::ask::few;
use crate::check::Topic;
use crate::facts::Facts;
use tailtrim_host::paths::{CONFIG, TIMERS};

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

/// Which of some programs run.
fn running(
    f: &Facts<'_>,
    names: &[&'static str],
) -> Result<Vec<&'static str>, tailtrim_host::Unread> {
    let mut found = Vec::new();
    for name in names {
        if f.runs(name)? {
            found.push(*name);
        }
    }
    Ok(found)
}

fn jobs(f: &Facts<'_>) -> Answer {
    let mut found: Vec<String> =
        running(f, &["cron", "crond", "anacron", "atd", "unattended-upgr"])?
            .into_iter()
            .map(str::to_owned)
            .collect();
    // Without systemd there are no timers of systemd.
    if let Some(timers) = f.optional(TIMERS)? {
        found.extend(timers.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    }
    let said = if found.is_empty() { "none".to_owned() } else { few(&found) };
    judge(EvidenceLevel::Seen, found.is_empty(), CheckStatus::Warn, said)
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
    let found = running(f, &names)?;
    let said = if found.is_empty() {
        "none of the known services runs".to_owned()
    } else {
        format!("running: {}", few(&found))
    };
    judge(EvidenceLevel::Seen, found.is_empty(), CheckStatus::Warn, said)
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
    let said = if on.is_empty() { "nothing is traced".to_owned() } else { few(&on) };
    judge(EvidenceLevel::Set, on.is_empty(), CheckStatus::Warn, said)
}

fn tuners(f: &Facts<'_>) -> Answer {
    let found =
        running(f, &["tuned", "bpftune", "stalld", "irqbalance", "rt-conf", "ksmtuned", "numad"])?;
    let others: Vec<&str> = found.iter().copied().filter(|name| *name != "irqbalance").collect();
    let said =
        if found.is_empty() { "none".to_owned() } else { format!("running: {}", few(&found)) };
    judge(EvidenceLevel::Seen, others.is_empty(), CheckStatus::Warn, said)
}

fn quotas(f: &Facts<'_>) -> Answer {
    let mut groups = f.glob("/sys/fs/cgroup/*/cpu.max")?;
    groups.extend(f.glob("/sys/fs/cgroup/*/*/cpu.max")?);
    if groups.is_empty() {
        return not_applicable("no group has a quota file (cgroup v2 with the cpu controller)");
    }
    let limited: Vec<String> = groups
        .iter()
        .filter(|(_, text)| !text.starts_with("max"))
        .map(|(path, text)| {
            format!(
                "{}: {text}",
                path.trim_start_matches("/sys/fs/cgroup/").trim_end_matches("/cpu.max")
            )
        })
        .collect();
    let said = if limited.is_empty() {
        format!("none of {} groups is limited", groups.len())
    } else {
        few(&limited)
    };
    judge(EvidenceLevel::Set, limited.is_empty(), CheckStatus::Warn, said)
}

/// Which options the kernel was built with.
fn has(config: &str, option: &str) -> bool {
    config.lines().any(|line| {
        line.strip_prefix("CONFIG_").and_then(|rest| rest.strip_prefix(option)) == Some("=y")
    })
}

fn plain(f: &Facts<'_>) -> Answer {
    let tainted = f.text("/proc/sys/kernel/tainted")?;
    let config = f.text(CONFIG)?;
    let slow: Vec<&str> =
        ["PROVE_LOCKING", "KASAN", "DEBUG_PAGEALLOC_ENABLE_DEFAULT", "KCSAN", "DEBUG_OBJECTS"]
            .into_iter()
            .filter(|option| has(&config, option))
            .collect();
    let mut said = format!("tainted: {tainted}");
    if !slow.is_empty() {
        said += &format!("; built with {}", slow.join(", "));
    }
    let verdict = if slow.is_empty() { CheckStatus::Warn } else { CheckStatus::Fail };
    judge(EvidenceLevel::Set, slow.is_empty() && tainted == "0", verdict, said)
}

fn built(f: &Facts<'_>) -> Answer {
    let config = f.text(CONFIG)?;
    let missing: Vec<&str> = ["NO_HZ_FULL", "RCU_NOCB_CPU", "CPU_ISOLATION", "CPUSETS"]
        .into_iter()
        .filter(|option| !has(&config, option))
        .collect();
    let said = if missing.is_empty() {
        "all four are built in".to_owned()
    } else {
        format!("not built in: {}", missing.join(", "))
    };
    judge(EvidenceLevel::Set, missing.is_empty(), CheckStatus::Fail, said)
}

fn accounting(f: &Facts<'_>) -> Answer {
    let config = f.text(CONFIG)?;
    let line = f.boot()?;
    let quiet = line.all("tsc").any(|word| word.value.as_deref() == Some("noirqtime"));
    let mut on: Vec<&str> =
        ["CONTEXT_TRACKING_FORCE", "CONTEXT_TRACKING_USER_FORCE", "DEBUG_PREEMPT"]
            .into_iter()
            .filter(|option| has(&config, option))
            .collect();
    if has(&config, "IRQ_TIME_ACCOUNTING") && !quiet {
        on.push("IRQ_TIME_ACCOUNTING");
    }
    let said = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    judge(EvidenceLevel::Set, on.is_empty(), CheckStatus::Warn, said)
}
