//! IRQ: where interrupts arrive, wanted or not.

use super::*;
use crate::counters::Counters;
use crate::irqbalance::{Banned, By};
use std::collections::BTreeMap;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("interrupts.json"),
    evaluators: &[
        ("IRQ-001", |f| {
            keeps_off(f, "default affinity", &f.mask("/proc/irq/default_smp_affinity")?, Fail)
        }),
        ("IRQ-002", |f| affinity(f, "smp_affinity_list", "may go to", Warn)),
        ("IRQ-003", |f| affinity(f, "effective_affinity_list", "go to", Fail)),
        ("IRQ-004", managed),
        ("IRQ-005", devices),
        ("IRQ-006", irqbalance),
        ("IRQ-007", threads),
    ],
};

/// Interrupts of the workload's own interfaces: by number, and by how descriptions begin.
struct WorkloadInterrupts {
    numbers: Vec<u32>,
    names: Vec<String>,
}

impl WorkloadInterrupts {
    fn read(f: &Facts<'_>) -> Result<Self, Unread> {
        let mut own = Self { numbers: Vec::new(), names: Vec::new() };
        for nic in &f.intent().nics {
            let names = f.list_or_none(&format!("/sys/class/net/{nic}/device/msi_irqs"))?;
            own.numbers.extend(names.iter().filter_map(|name| name.parse::<u32>().ok()));
            own.names.push(format!("{nic}-"));
            // Those of a virtio device belong to the PCI device above it, but bear its name.
            let drivers = "/sys/bus/virtio/drivers/virtio_net";
            for (path, _) in f.glob(&format!("{drivers}/*/net/{nic}/operstate"))? {
                own.names.extend(path.split('/').nth(6).map(|device| format!("{device}-")));
            }
        }
        Ok(own)
    }

    fn has(&self, number: u32, label: &str) -> bool {
        let name = label.rsplit(' ').next().unwrap_or_default();
        self.numbers.contains(&number) || self.names.iter().any(|start| name.starts_with(start))
    }
}

/// Descriptions of interrupts by number, as `/proc/interrupts` has them.
fn labels(f: &Facts<'_>) -> Result<BTreeMap<u32, String>, Unread> {
    let text = f.text("/proc/interrupts")?;
    let Some(counters) = Counters::parse(&text) else {
        return Err(broken("/proc/interrupts", &text, "a column for each CPU"));
    };
    let last = |label: &str| label.rsplit(' ').next().unwrap_or_default().to_owned();
    let numbered = counters.rows();
    Ok(numbered.filter_map(|(name, row)| Some((name.parse().ok()?, last(&row.label)))).collect())
}

fn affinity(f: &Facts<'_>, file: &str, does: &str, otherwise: CheckStatus) -> Answer {
    let (own, labels) = (WorkloadInterrupts::read(f)?, labels(f)?);
    let (mut there, mut evidence) = (Vec::new(), Vec::new());
    let all = f.glob(&format!("/proc/irq/#/{file}"))?;
    if all.is_empty() {
        return not_applicable(format!("this kernel shows no {file}"));
    }
    let mut asked = 0;
    for (path, text) in &all {
        let number = path.split('/').nth(3).and_then(|number| number.parse::<u32>().ok());
        // An interrupt that no driver asked for cannot fire: it is in /proc/irq but not in /proc/interrupts.
        let Some((number, label)) = number.and_then(|number| Some((number, labels.get(&number)?)))
        else {
            continue;
        };
        asked += 1;
        let cpus: Cpus = match text.parse() {
            Ok(cpus) => cpus,
            Err(_) => return Err(broken(path, text, "a list of CPUs")),
        };
        if !own.has(number, label) && f.touches(&cpus) {
            there.push(format!("{number} ({label}) to {cpus}"));
            evidence.push(Evidence::new(path, text));
        }
    }
    let said = match there.is_empty() {
        true => format!("{asked} interrupts keep off {}", f.iso()),
        false => {
            let cpus = f.isolated_cpus();
            format!("{} of {asked} {does} {cpus}: {}", there.len(), few(&there))
        }
    };
    let finding = judge(Set, there.is_empty(), otherwise, said)?;
    evidence.truncate(8);
    Ok(Finding { evidence, ..finding })
}

fn managed(f: &Facts<'_>) -> Answer {
    let names = f.list("/sys/kernel/debug/irq/irqs")?;
    let mut there = Vec::new();
    let mut count = 0;
    for name in names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        let path = format!("/sys/kernel/debug/irq/irqs/{name}");
        let Some(text) = f.optional(&path)? else { continue };
        if !text.contains("IRQD_AFFINITY_MANAGED") {
            continue;
        }
        count += 1;
        let effective = text.lines().find_map(|line| line.trim().strip_prefix("effectiv:"));
        let Some(Ok(cpus)) = effective.map(|list| list.trim().parse::<Cpus>()) else { continue };
        if f.touches(&cpus) {
            there.push(format!("{name} on {cpus}"));
        }
    }
    let said = match there.is_empty() {
        true => format!("{count} managed interrupts keep off {}", f.iso()),
        false => format!("managed: {}", few(&there)),
    };
    judge(Set, there.is_empty(), Warn, said)
}

fn devices(f: &Facts<'_>) -> Answer {
    let own = WorkloadInterrupts::read(f)?;
    let counters = f.counter_growth("/proc/interrupts")?;
    let there: Vec<String> = counters
        .rows()
        .filter_map(|(name, row)| Some((name.parse::<u32>().ok()?, row)))
        .filter(|(number, row)| !own.has(*number, &row.label) && row.on(f.iso()) > 0)
        .map(|(number, row)| format!("{number} ({}) {} times", row.label, row.on(f.iso())))
        .collect();
    none_of(Seen, &there, Fail, format!("none on {}", f.iso()))
}

fn irqbalance(f: &Facts<'_>) -> Answer {
    if !f.runs("irqbalance")? {
        return ok(Seen, "irqbalance does not run");
    }
    let Banned { cpus, by, unmoved } = Banned::read(f)?;
    let cpus_told = cpus.named();
    let how = match &by {
        By::Itself => {
            format!("leaves out {cpus_told}: what is isolated or without ticks at its start")
        }
        By::Variable { name, value, mistaken: true } => format!(
            "takes {name}={value} up to a mistake and leaves out {cpus_told}; isolated CPUs it does not look for then"
        ),
        By::Variable { name, value, .. } => {
            format!("leaves out {cpus_told} ({name}={value}), and no isolated CPUs beside")
        }
    };
    let left = if unmoved.is_empty() {
        String::new()
    } else {
        format!("; it does not move interrupts of {}", unmoved.join(", "))
    };
    let good = !f.iso().is_empty() && f.iso().is_subset(&cpus);
    judge(Seen, good, Fail, format!("irqbalance runs and {how}{left}"))
}

fn threads(f: &Facts<'_>) -> Answer {
    let own = WorkloadInterrupts::read(f)?;
    let number = |name: &str| name.strip_prefix("irq/")?.split('-').next()?.parse::<u32>().ok();
    let all: Vec<_> =
        f.tasks()?.iter().filter_map(|task| Some((number(&task.name)?, task))).collect();
    if all.is_empty() {
        return not_applicable("no handler has a thread");
    }
    let there: Vec<String> = all
        .iter()
        .filter(|(number, task)| {
            let name = task.name.split_once('-').map_or("", |(_, name)| name);
            !own.has(*number, name) && f.touches(&task.allowed)
        })
        .map(|(_, task)| format!("{} may use {}", task.name, task.allowed))
        .collect();
    none_of(Set, &there, Warn, format!("{} threads keep off {}", all.len(), f.iso()))
}
