//! ISO, second part: RCU.

use super::*;
use crate::intent::listed_cpus;
use tailtrim_host::paths::LOG;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("rcu.json"),
    evaluators: &[
        ("ISO-006", offloaded),
        ("ISO-007", threads),
        ("ISO-008", polling),
        ("ISO-009", |f| {
            file(f, "/sys/module/rcutree/parameters/nohz_full_patience_delay", Warn, |text| {
                text.parse::<i64>().is_ok_and(|delay| delay > 0)
            })
        }),
        ("ISO-010", normal_grace_periods),
        ("ISO-011", priority),
    ],
};

fn offloaded(f: &Facts<'_>) -> Answer {
    const TEXT: &str = "Offload RCU callbacks from CPUs:";
    let log = f.log()?;
    let Some(list) = log.after(TEXT) else {
        return match log.whole() {
            true => judge(Set, false, Fail, "no CPU's RCU callbacks are offloaded"),
            false => unknown("the beginning of the kernel's log is gone, which would say it"),
        };
    };
    let set = listed_cpus(list.trim_end_matches('.'));
    let missing = f.iso().minus(&set);
    let said = match missing.is_empty() {
        true => format!("RCU callbacks of {} are offloaded", set.named()),
        false => {
            let run = missing.does("runs RCU callbacks itself", "run RCU callbacks themselves");
            format!("{run} (offloaded: {})", or_none(&set))
        }
    };
    let verdict = if missing.is_empty() { CheckStatus::Ok } else { Fail };
    Ok(Finding::new(verdict, Set, said).because(LOG, &format!("{TEXT} {list}")))
}

fn threads(f: &Facts<'_>) -> Answer {
    let rcu = |name: &str| name.starts_with("rcuo");
    let all: Vec<_> = f.tasks()?.iter().filter(|task| task.kernel && rcu(&task.name)).collect();
    if all.is_empty() {
        return not_applicable("no rcuo thread: callbacks are not offloaded (ISO-006)");
    }
    let there = all.iter().filter(|task| f.touches(&task.allowed));
    let names: Vec<String> =
        there.map(|task| format!("{} may use {}", task.name, task.allowed)).collect();
    none_of(Set, &names, Fail, format!("{} threads keep to housekeeping CPUs", all.len()))
}

fn polling(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    if line.has("rcu_nocb_poll") {
        return ok(Asked, "rcu_nocb_poll is in the line");
    }
    if line.words().iter().any(|word| word.name.starts_with("rcu_nocbs_")) {
        return judge(Asked, false, Warn, "the line has a mistyped rcu_nocb_poll (BOOT-002)");
    }
    not_applicable("not asked for: only CPUs that often enter the kernel gain by it")
}

fn normal_grace_periods(f: &Facts<'_>) -> Answer {
    let files = ["/sys/kernel/rcu_normal", "/sys/module/rcupdate/parameters/rcu_normal_after_boot"];
    if f.is_real_time()? {
        return ok(Set, "a real-time kernel expedites nothing after boot");
    }
    let mut values = Vec::new();
    for path in files {
        values.extend(f.optional(path)?);
    }
    if values.is_empty() {
        return not_applicable("this kernel has neither file");
    }
    let good = values.iter().any(|value| value == "1");
    let said =
        if good { "grace periods are not expedited" } else { "grace periods may be expedited" };
    judge(Set, good, Warn, said)
}

fn priority(f: &Facts<'_>) -> Answer {
    let real_time = f.is_real_time()?;
    file(f, "/sys/module/rcutree/parameters/kthread_prio", Warn, |text| {
        let priority = text.parse::<i64>().unwrap_or(-1);
        if real_time { priority >= 2 } else { (0..=1).contains(&priority) }
    })
}
