//! IRQ: where interrupts arrive, wanted or not.

use super::super::answer::{
    Answer, CheckStatus, Evidence, EvidenceLevel, Finding, judge, not_applicable,
};
use super::super::ask::{few, keeps_off};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use super::super::observe::Counters;
use crate::{Cpus, Unread};
use std::collections::BTreeMap;

const ISOLATED: &[Need] = &[Need::Isolated];
pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "IRQ-001",
        title: "New interrupts go to housekeeping CPUs",
        importance: Importance::High,
        why: "A device that comes or is reset takes its interrupts to the CPUs of this mask. isolcpus does not change it.",
        read_from: &["/proc/irq/default_smp_affinity"],
        wanted: "no CPU of {iso} in the mask",
        set_now: "echo {hkmask} > /proc/irq/default_smp_affinity",
        set_boot: "irqaffinity={hk}",
        undo: "write the old mask",
        source: "ducked-tails, Table I; tuned cpu-partitioning",
        needs: ISOLATED,
        evaluate: |f| {
            keeps_off(
                f,
                "default affinity",
                &f.mask("/proc/irq/default_smp_affinity")?,
                CheckStatus::Fail,
            )
        },
        ..Check::BLANK
    },
    Check {
        id: "IRQ-002",
        title: "No interrupt may go to isolated CPUs",
        importance: Importance::High,
        why: "An interrupt moves to any allowed CPU when a CPU goes offline or irqbalance decides so.",
        read_from: &["/proc/irq/#/smp_affinity_list"],
        wanted: "only the queues of the workload's own interfaces on {iso}",
        set_now: "echo {hk} > /proc/irq/N/smp_affinity_list (managed ones answer with an error: IRQ-004)",
        undo: "write the old lists",
        source: "ducked-tails, Table I; NFV host guide",
        needs: ISOLATED,
        evaluate: |f| affinity(f, "smp_affinity_list", "may go to", CheckStatus::Warn),
        ..Check::BLANK
    },
    Check {
        id: "IRQ-003",
        title: "No interrupt goes to isolated CPUs",
        importance: Importance::High,
        why: "The effective affinity is where an interrupt fires, whatever was asked for.",
        read_from: &["/proc/irq/#/effective_affinity_list"],
        wanted: "only the queues of the workload's own interfaces on {iso}",
        set_now: "echo {hk} > /proc/irq/N/smp_affinity_list",
        undo: "write the old lists",
        source: "Documentation/core-api/irq/irq-affinity.rst",
        needs: ISOLATED,
        evaluate: |f| affinity(f, "effective_affinity_list", "go to", CheckStatus::Fail),
        ..Check::BLANK
    },
    Check {
        id: "IRQ-004",
        title: "No managed interrupt on isolated CPUs",
        importance: Importance::Medium,
        why: "A managed interrupt cannot be moved; only the boot line or fewer queues keep it away.",
        read_from: &["/sys/kernel/debug/irq/irqs/#"],
        wanted: "none effective on {iso}",
        set_now: "fewer queues: ethtool -L {nic} combined N",
        set_boot: "isolcpus=domain,managed_irq,{iso}",
        undo: "the old number of queues",
        source: "tuned realtime; kernel/irq/manage.c",
        needs: ISOLATED,
        evaluate: managed,
        ..Check::BLANK
    },
    Check {
        id: "IRQ-005",
        title: "No device interrupts on isolated CPUs (counted)",
        importance: Importance::High,
        why: "Counters show where interrupts really fired; masks only where they may.",
        read_from: &["/proc/interrupts"],
        wanted: "no device interrupt on {iso} beside the workload's own",
        set_now: "echo {hk} > /proc/irq/N/smp_affinity_list",
        undo: "write the old list",
        source: "Documentation/filesystems/proc.rst",
        needs: ISOLATED,
        evaluate: devices,
        ..Check::BLANK
    },
    Check {
        id: "IRQ-006",
        title: "irqbalance does not move interrupts",
        importance: Importance::High,
        why: "It moves interrupts every ten seconds; a list of banned CPUs turns off its own respect for isolated ones.",
        read_from: &["/proc/#/task/#/stat", "/etc/default/irqbalance", "/etc/sysconfig/irqbalance"],
        wanted: "not running, or IRQBALANCE_BANNED_CPULIST has {iso}",
        set_now: "systemctl disable --now irqbalance",
        undo: "systemctl enable --now irqbalance",
        source: "tuned cpu-partitioning; discussion 90 of irqbalance",
        evaluate: irqbalance,
        ..Check::BLANK
    },
    Check {
        id: "IRQ-007",
        title: "Interrupt threads keep off isolated CPUs",
        importance: Importance::Medium,
        why: "A threaded handler runs at real-time priority before every ordinary thread.",
        read_from: &["/proc/#/task/#/status"],
        wanted: "no irq/N thread may use {iso}, the workload's own aside",
        set_now: "move the interrupt: its thread follows",
        undo: "move it back",
        source: "kernel-per-CPU-kthreads.rst",
        needs: ISOLATED,
        evaluate: threads,
        ..Check::BLANK
    },
];

/// Interrupts of the workload's own interfaces: by number, and by how descriptions begin.
struct Own {
    numbers: Vec<u32>,
    names: Vec<String>,
}

impl Own {
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
        return Err(super::super::facts::broken(
            "/proc/interrupts",
            &text,
            "a column for each CPU",
        ));
    };
    let last = |label: &str| label.rsplit(' ').next().unwrap_or_default().to_owned();
    let numbered = counters.rows();
    Ok(numbered.filter_map(|(name, row)| Some((name.parse().ok()?, last(&row.label)))).collect())
}

fn affinity(f: &Facts<'_>, file: &str, does: &str, otherwise: CheckStatus) -> Answer {
    let (own, labels) = (Own::read(f)?, labels(f)?);
    let (mut there, mut evidence) = (Vec::new(), Vec::new());
    let all = f.glob(&format!("/proc/irq/#/{file}"))?;
    if all.is_empty() {
        return not_applicable(format!("this kernel shows no {file}"));
    }
    let mut asked = 0;
    for (path, text) in &all {
        let number = path.split('/').nth(3).and_then(|number| number.parse::<u32>().ok());
        // What no driver asked for cannot fire: it is in /proc/irq but not in /proc/interrupts.
        let Some((number, label)) = number.and_then(|number| Some((number, labels.get(&number)?)))
        else {
            continue;
        };
        asked += 1;
        let cpus: Cpus = match text.parse() {
            Ok(cpus) => cpus,
            Err(_) => return Err(super::super::facts::broken(path, text, "a list of CPUs")),
        };
        if !own.has(number, label) && !cpus.intersection(f.iso()).is_empty() {
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
    let finding = judge(EvidenceLevel::Set, there.is_empty(), otherwise, said)?;
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
        if !cpus.intersection(f.iso()).is_empty() {
            there.push(format!("{name} on {cpus}"));
        }
    }
    let said = match there.is_empty() {
        true => format!("{count} managed interrupts keep off {}", f.iso()),
        false => format!("managed: {}", few(&there)),
    };
    judge(EvidenceLevel::Set, there.is_empty(), CheckStatus::Warn, said)
}

fn devices(f: &Facts<'_>) -> Answer {
    let own = Own::read(f)?;
    let counters = f.counted("/proc/interrupts")?;
    let there: Vec<String> = counters
        .rows()
        .filter_map(|(name, row)| Some((name.parse::<u32>().ok()?, row)))
        .filter(|(number, row)| !own.has(*number, &row.label) && row.on(f.iso()) > 0)
        .map(|(number, row)| format!("{number} ({}) {} times", row.label, row.on(f.iso())))
        .collect();
    let said = if there.is_empty() { format!("none on {}", f.iso()) } else { few(&there) };
    judge(EvidenceLevel::Seen, there.is_empty(), CheckStatus::Fail, said)
}

fn irqbalance(f: &Facts<'_>) -> Answer {
    if !f.runs("irqbalance")? {
        return judge(EvidenceLevel::Seen, true, CheckStatus::Fail, "irqbalance does not run");
    }
    let mut banned = Cpus::none();
    for path in ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"] {
        let Some(text) = f.optional(path)? else { continue };
        for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            let cpus = match key.trim() {
                "IRQBALANCE_BANNED_CPULIST" => value.parse().ok(),
                "IRQBALANCE_BANNED_CPUS" => Cpus::from_mask(value).ok(),
                _ => None,
            };
            banned = banned.union(&cpus.unwrap_or_default());
        }
    }
    let good = !f.iso().is_empty() && f.iso().is_subset(&banned);
    let said = match (good, banned.is_empty()) {
        (true, _) => format!("irqbalance runs, CPUs {banned} are banned"),
        (false, true) => {
            "irqbalance runs, no CPU is banned: it skips only what is isolated at its start"
                .to_owned()
        }
        (false, false) => format!("irqbalance runs, only CPUs {banned} are banned"),
    };
    judge(EvidenceLevel::Seen, good, CheckStatus::Fail, said)
}

fn threads(f: &Facts<'_>) -> Answer {
    let own = Own::read(f)?;
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
            !own.has(*number, name) && !task.allowed.intersection(f.iso()).is_empty()
        })
        .map(|(_, task)| format!("{} may use {}", task.name, task.allowed))
        .collect();
    let said = if there.is_empty() {
        format!("{} threads keep off {}", all.len(), f.iso())
    } else {
        few(&there)
    };
    judge(EvidenceLevel::Set, there.is_empty(), CheckStatus::Warn, said)
}
