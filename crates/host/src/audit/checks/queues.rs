//! NET, second part: how the kernel spreads packets over CPUs, and when it looks for them.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, Finding, judge, not_applicable};
use super::super::ask::{ethtool, few, name, per_nic, sysctl, worst};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use crate::{Cpus, KernelVersion, Workload};

const NIC: &[Need] = &[Need::Nic];
const INTERRUPT: &[Need] = &[Need::Work(&[Workload::Interrupt, Workload::Guest])];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "NET-007",
        title: "Packets are not steered to isolated CPUs (RPS)",
        importance: Importance::High,
        why: "RPS sends an interprocessor interrupt to the CPU that it chose, for packets that came in elsewhere.",
        read_from: &["/sys/class/net/*/queues/rx-#/rps_cpus"],
        wanted: "0, or a mask without {iso}",
        set_now: "echo 0 > /sys/class/net/{nic}/queues/rx-0/rps_cpus, likewise the others",
        undo: "write the old masks",
        source: "Documentation/networking/scaling.rst; OpenShift's node tuning operator",
        needs: &[Need::Isolated],
        evaluate: |f| spread(f, "/sys/class/net/*/queues/rx-#/rps_cpus"),
        ..Check::BLANK
    },
    Check {
        id: "NET-008",
        title: "Each CPU sends on a separate queue",
        importance: Importance::Low,
        why: "Two CPUs that send on one queue wait for each other, and the one that is interrupted frees buffers for both.",
        read_from: &["/sys/class/net/*/queues/tx-#/xps_cpus"],
        wanted: "every CPU is in the mask of some queue",
        set_now: "echo MASK > /sys/class/net/{nic}/queues/tx-N/xps_cpus",
        undo: "write the old masks",
        source: "Documentation/networking/scaling.rst; seastar's perftune",
        needs: NIC,
        evaluate: |f| per_nic(f, sending),
        ..Check::BLANK
    },
    Check {
        id: "NET-009",
        title: "Sockets busy-poll",
        importance: Importance::Medium,
        why: "A thread that polls the queue itself saves interrupt and wake-up: 5 µs and more for each packet \
            after a pause.",
        read_from: &["/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll"],
        wanted: "50 in both, for programs that read sockets",
        cost: "a busy CPU while it asks",
        set_now: "sysctl -w net.core.busy_read=50 net.core.busy_poll=50",
        undo: "sysctl -w net.core.busy_read=0 net.core.busy_poll=0",
        source: "reflector study, section 4; tuned network-latency",
        needs: INTERRUPT,
        evaluate: busy_poll,
        ..Check::BLANK
    },
    Check {
        id: "NET-010",
        title: "Interrupts are not deferred without a poller",
        importance: Importance::Medium,
        why: "gro_flush_timeout with napi_defer_hard_irqs makes packets wait for a timer, unless a program polls.",
        read_from: &["/sys/class/net/*/gro_flush_timeout", "/sys/class/net/*/napi_defer_hard_irqs"],
        wanted: "0 in both, unless a program polls with SO_PREFER_BUSY_POLL",
        set_now: "echo 0 > /sys/class/net/{nic}/gro_flush_timeout",
        undo: "write the old value",
        source: "Documentation/networking/napi.rst",
        needs: NIC,
        evaluate: |f| per_nic(f, deferral),
        ..Check::BLANK
    },
    Check {
        id: "NET-011",
        title: "Packets are handled where the interrupt came",
        importance: Importance::Low,
        why: "With threaded NAPI each queue has a thread that the scheduler may put anywhere: pin it, or leave it off.",
        read_from: &["/sys/class/net/*/threaded"],
        wanted: "0, or napi threads that keep off {iso}",
        set_now: "echo 0 > /sys/class/net/{nic}/threaded",
        undo: "echo 1 > the same file",
        source: "Documentation/networking/napi.rst",
        since: Some(KernelVersion::new(5, 12)),
        needs: NIC,
        evaluate: |f| per_nic(f, threaded),
        ..Check::BLANK
    },
    Check {
        id: "NET-012",
        title: "CPUs and interface are on the same NUMA node",
        importance: Importance::High,
        why: "Each descriptor and each packet crosses the link between sockets otherwise: 100 ns an access, more under load.",
        read_from: &["/sys/class/net/*/device/local_cpulist", "/sys/class/net/*/device/numa_node"],
        wanted: "{iso} within the CPUs that are local to {nic}",
        set_boot: "isolate CPUs of the interface's node, or use another slot",
        undo: "",
        source: "DPDK's Linux guide; NFV host guide",
        needs: &[Need::Nic, Need::Isolated],
        evaluate: |f| per_nic(f, locality),
        ..Check::BLANK
    },
    Check {
        id: "NET-013",
        title: "No backlog drops or squeezed softirqs",
        importance: Importance::High,
        why: "A squeeze means that packets waited for the next round of a softirq, up to 8 ms; a drop that the backlog was full.",
        read_from: &["/proc/net/softnet_stat"],
        wanted: "no drops and no squeezes while watched",
        set_now: "sysctl -w net.core.netdev_budget=600 net.core.netdev_budget_usecs=8000",
        undo: "set the old values",
        source: "net/core/net-procfs.c; Documentation/admin-guide/sysctl/net.rst",
        evaluate: kept_up,
        ..Check::BLANK
    },
    Check {
        id: "NET-014",
        title: "No losses at the interface",
        importance: Importance::High,
        why: "What is lost has no latency: without this count a good tail may be a lossy one.",
        read_from: &["/proc/net/dev"],
        wanted: "no errors and no drops while watched",
        set_now: "longer rings (NET-002), or less load",
        undo: "",
        source: "Documentation/networking/statistics.rst",
        needs: NIC,
        evaluate: losses,
        ..Check::BLANK
    },
];

fn spread(f: &Facts<'_>, pattern: &str) -> Answer {
    let all = f.glob(pattern)?;
    if all.is_empty() {
        return not_applicable("no interface has such a file");
    }
    let mut there = Vec::new();
    for (path, _) in &all {
        if !f.mask(path)?.intersection(f.iso()).is_empty() {
            let parts: Vec<&str> = path.split('/').collect();
            there.push(format!("{} {}", parts[4], parts[6]));
        }
    }
    let said = match there.is_empty() {
        true => format!("{} queues keep off {}", all.len(), f.iso()),
        false => format!("hand packets to {}: {}", f.isolated_cpus(), few(&there)),
    };
    judge(EvidenceLevel::Set, there.is_empty(), CheckStatus::Fail, said)
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
        false => format!("CPUs {left} have no separate queue"),
    };
    judge(EvidenceLevel::Set, left.is_empty(), CheckStatus::Warn, said)
}

fn busy_poll(f: &Facts<'_>) -> Answer {
    let ask =
        |key| sysctl(f, key, CheckStatus::Warn, |text| text.parse::<u32>().is_ok_and(|us| us > 0));
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
    let said = if set.is_empty() { "not deferred".to_owned() } else { few(&set) };
    judge(EvidenceLevel::Set, set.is_empty(), CheckStatus::Warn, said)
}

fn threaded(f: &Facts<'_>, nic: &str) -> Answer {
    let Some(state) = f.optional(&format!("/sys/class/net/{nic}/threaded"))? else {
        return not_applicable("the interface does not know it");
    };
    if state == "0" {
        return judge(EvidenceLevel::Set, true, CheckStatus::Warn, "off");
    }
    let start = format!("napi/{nic}");
    let loose: Vec<String> = f
        .tasks()?
        .iter()
        .filter(|task| {
            task.name.starts_with(&start) && !task.allowed.intersection(f.iso()).is_empty()
        })
        .map(|task| format!("{} may use {}", task.name, task.allowed))
        .collect();
    let said =
        if loose.is_empty() { "on, and its threads are elsewhere".to_owned() } else { few(&loose) };
    judge(EvidenceLevel::Set, loose.is_empty(), CheckStatus::Warn, said)
}

fn locality(f: &Facts<'_>, nic: &str) -> Answer {
    let path = format!("/sys/class/net/{nic}/device/local_cpulist");
    if f.optional(&path)?.is_none() {
        return not_applicable("it belongs to no bus with nodes");
    }
    let local = f.cpus(&path)?;
    let far = f.iso().minus(&local);
    let said = match far.is_empty() {
        true => format!("local CPUs {local}"),
        false => format!("{} {far} are on another node (local: {local})", f.isolated_cpus()),
    };
    judge(EvidenceLevel::Set, far.is_empty(), CheckStatus::Fail, said)
}

fn kept_up(f: &Facts<'_>) -> Answer {
    let (before, after) = f.twice("/proc/net/softnet_stat")?;
    let column = |text: &str, number: usize| -> u64 {
        let fields = text.lines().filter_map(|line| line.split_whitespace().nth(number));
        fields.filter_map(|field| u64::from_str_radix(field, 16).ok()).sum()
    };
    let growth = |number| column(&after, number).saturating_sub(column(&before, number));
    let (packets, drops, squeezes) = (growth(0), growth(1), growth(2));
    let said = format!("of {packets} packets {drops} dropped, {squeezes} squeezes");
    judge(EvidenceLevel::Seen, drops == 0 && squeezes == 0, CheckStatus::Fail, said)
}

fn losses(f: &Facts<'_>) -> Answer {
    let (before, after) = f.twice("/proc/net/dev")?;
    let mut answers = Vec::new();
    for nic in &f.intent().nics {
        let (Some(old), Some(new)) = (device(&before, nic), device(&after, nic)) else {
            return not_applicable(format!("{nic} is not in /proc/net/dev"));
        };
        let lost: u64 = old.iter().zip(&new).map(|(old, new)| new.saturating_sub(*old)).sum();
        let verdict = if lost == 0 { CheckStatus::Ok } else { CheckStatus::Fail };
        answers.push(Finding::new(
            verdict,
            EvidenceLevel::Seen,
            format!("{nic}: {lost} errors and drops"),
        ));
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
