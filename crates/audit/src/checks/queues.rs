//! NET, second part: how the kernel spreads packets over CPUs, and when it looks for them.

use super::*;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("queues.json"),
    evaluators: &[
        ("NET-007", |f| spread(f, "/sys/class/net/*/queues/rx-#/rps_cpus")),
        ("NET-008", |f| per_nic(f, sending)),
        ("NET-009", busy_poll),
        ("NET-010", |f| per_nic(f, deferral)),
        ("NET-011", |f| per_nic(f, threaded)),
        ("NET-012", |f| per_nic(f, locality)),
        ("NET-013", kept_up),
        ("NET-014", losses),
    ],
};

fn spread(f: &Facts<'_>, pattern: &str) -> Answer {
    let all = f.glob(pattern)?;
    if all.is_empty() {
        return not_applicable("no interface has such a file");
    }
    let mut there = Vec::new();
    for (path, _) in &all {
        if f.touches(&f.mask(path)?) {
            let parts: Vec<&str> = path.split('/').collect();
            there.push(format!("{} {}", parts[4], parts[6]));
        }
    }
    let said = match there.is_empty() {
        true => format!("{} queues keep off {}", all.len(), f.iso()),
        false => format!("hand packets to {}: {}", f.isolated_cpus(), few(&there)),
    };
    judge(Set, there.is_empty(), Fail, said)
}

fn sending(f: &Facts<'_>, nic: &str) -> Answer {
    let all = f.glob(&format!("/sys/class/net/{nic}/queues/tx-#/xps_cpus"))?;
    if all.len() < 2 {
        return not_applicable("one queue: there is nothing to choose");
    }
    let mut covered = Cpus::none();
    for (path, _) in &all {
        covered = covered.union(&f.mask(path)?);
    }
    let left = f.cpus("/sys/devices/system/cpu/online")?.minus(&covered);
    let said = match left.is_empty() {
        true => format!("{} queues, every CPU has one", all.len()),
        false => format!("{} no separate queue", left.does("has", "have")),
    };
    judge(Set, left.is_empty(), Warn, said)
}

fn busy_poll(f: &Facts<'_>) -> Answer {
    let ask = |key| sysctl(f, key, Warn, |text| text.parse::<u32>().is_ok_and(|us| us > 0));
    Ok(worst(vec![ask("net.core.busy_read")?, ask("net.core.busy_poll")?]))
}

fn deferral(f: &Facts<'_>, nic: &str) -> Answer {
    let mut set = Vec::new();
    let mut known = 0;
    for file in ["gro_flush_timeout", "napi_defer_hard_irqs"] {
        let path = format!("/sys/class/net/{nic}/{file}");
        if let Some(text) = f.optional(&path)? {
            known += 1;
            if text != "0" {
                set.push(format!("{} is {text}", name(&path)));
            }
        }
    }
    if known == 0 {
        return not_applicable("this kernel cannot defer interrupts");
    }
    none_of(Set, &set, Warn, "not deferred")
}

fn threaded(f: &Facts<'_>, nic: &str) -> Answer {
    let Some(state) = f.optional(&format!("/sys/class/net/{nic}/threaded"))? else {
        return not_applicable("the interface does not know it");
    };
    if state == "0" {
        return ok(Set, "off");
    }
    let start = format!("napi/{nic}");
    let loose: Vec<String> = f
        .tasks()?
        .iter()
        .filter(|task| task.name.starts_with(&start) && f.touches(&task.allowed))
        .map(|task| format!("{} may use {}", task.name, task.allowed))
        .collect();
    none_of(Set, &loose, Warn, "on, and its threads are elsewhere")
}

fn locality(f: &Facts<'_>, nic: &str) -> Answer {
    let path = format!("/sys/class/net/{nic}/device/local_cpulist");
    if f.optional(&path)?.is_none() {
        return not_applicable("it belongs to no bus with nodes");
    }
    let local = f.cpus(&path)?;
    let far = f.iso().minus(&local);
    let said = match far.is_empty() {
        true => format!("local: {}", local.named()),
        false => format!("{} {far} are on another node (local: {local})", f.isolated_cpus()),
    };
    judge(Set, far.is_empty(), Fail, said)
}

fn kept_up(f: &Facts<'_>) -> Answer {
    let (before, after) = f.before_and_after("/proc/net/softnet_stat")?;
    let column = |text: &str, number: usize| -> u64 {
        let fields = text.lines().filter_map(|line| line.split_whitespace().nth(number));
        fields.filter_map(|field| u64::from_str_radix(field, 16).ok()).sum()
    };
    let growth = |number| column(&after, number).saturating_sub(column(&before, number));
    let (packets, drops, squeezes) = (growth(0), growth(1), growth(2));
    let said = format!("of {packets} packets {drops} dropped, {squeezes} squeezes");
    judge(Seen, drops == 0 && squeezes == 0, Fail, said)
}

fn losses(f: &Facts<'_>) -> Answer {
    let (before, after) = f.before_and_after("/proc/net/dev")?;
    let mut answers = Vec::new();
    for nic in &f.intent().nics {
        let (Some(old), Some(new)) = (device(&before, nic), device(&after, nic)) else {
            return not_applicable(format!("{nic} is not in /proc/net/dev"));
        };
        let lost: u64 = old.iter().zip(&new).map(|(old, new)| new.saturating_sub(*old)).sum();
        let verdict = if lost == 0 { CheckStatus::Ok } else { Fail };
        answers.push(Finding::new(verdict, Seen, format!("{nic}: {lost} errors and drops")));
    }
    // The driver's own counters know more, where there are any.
    if let [nic] = f.intent().nics.as_slice()
        && let Ok(Some(missed)) = ethtool(f, nic, "driver", "driver")
        && let Some(first) = answers.first_mut()
    {
        first.said += &format!(" ({missed}'s own counters: ethtool -S {nic})");
    }
    Ok(worst(answers))
}

/// Errors, drops, FIFO errors of both directions.
fn device(text: &str, nic: &str) -> Option<Vec<u64>> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(nic)?.strip_prefix(':'))?;
    let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    [2, 3, 4, 10, 11, 12].iter().map(|number| fields.get(*number).copied()).collect()
}
