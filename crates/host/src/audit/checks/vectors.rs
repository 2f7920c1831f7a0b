//! IRQ, second part: interrupts between CPUs, softirqs, and what the hardware says of itself.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::few;
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;

const ISOLATED: &[Need] = &[Need::Isolated];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "IRQ-008",
        title: "No interprocessor interrupts on isolated CPUs",
        importance: Importance::High,
        why: "Other CPUs interrupt to flush address translations, to run functions, to wake threads: 1 to 10 µs \
            each, often from unrelated programs.",
        read_from: &["/proc/interrupts"],
        wanted: "at most 1 a second of RES, CAL, TLB, IWI, NMI, PMI",
        set_now: "find the sender with the tracepoints ipi:ipi_send_cpu and ipi:ipi_send_cpumask",
        undo: "",
        source: "cpu-isolation.rst",
        needs: ISOLATED,
        evaluate: |f| vectors(f, &["RES", "CAL", "TLB", "IWI", "NMI", "PMI", "MCP"], 1),
        ..Check::BLANK
    },
    Check {
        id: "IRQ-009",
        title: "No thermal or threshold interrupts",
        importance: Importance::Medium,
        why: "They report heat or corrected errors, and the CPU slows down afterwards.",
        read_from: &["/proc/interrupts"],
        wanted: "no TRM, THR, DFR on {iso}",
        set_now: "cooling; see PWR-016 and AUD-003",
        undo: "",
        source: "arch/x86/kernel/irq.c",
        needs: ISOLATED,
        evaluate: |f| vectors(f, &["TRM", "THR", "DFR", "MCE"], 0),
        ..Check::BLANK
    },
    Check {
        id: "IRQ-010",
        title: "No softirqs on isolated CPUs",
        importance: Importance::High,
        why: "Deferred work of interrupts runs before the thread goes on: timers, network, RCU.",
        read_from: &["/proc/softirqs"],
        wanted: "at most 2 a second on each of {iso}",
        set_now: "for each kind its remedy: kernel-per-CPU-kthreads.rst",
        set_boot: "nohz_full={iso} rcu_nocbs={iso}",
        undo: "",
        source: "kernel-per-CPU-kthreads.rst",
        needs: ISOLATED,
        evaluate: softirqs,
        ..Check::BLANK
    },
    Check {
        id: "IRQ-011",
        title: "No USB devices that the firmware emulates",
        importance: Importance::Low,
        why: "Emulating a keyboard for old systems costs system management interrupts; a USB host interrupts by itself.",
        read_from: &["/proc/interrupts"],
        wanted: "no interrupts of USB hosts during operation",
        set_now: "unbind the device from its driver",
        set_boot: "turn off legacy USB support in the firmware",
        undo: "bind it again",
        source: "NFV host guide, section 3",
        needs: &[Need::Metal],
        evaluate: usb,
        ..Check::BLANK
    },
];

/// Rates of some rows of `/proc/interrupts` on isolated CPUs are at most this, a second and a CPU.
fn vectors(f: &Facts<'_>, names: &[&str], most: u64) -> Answer {
    let counters = f.counted("/proc/interrupts")?;
    let ms = f.observed_ms()?;
    let known: Vec<_> =
        names.iter().filter_map(|name| Some((*name, counters.row(name)?))).collect();
    if known.is_empty() {
        return not_applicable(format!("this architecture has no {}", names.join(", ")));
    }
    let cpus = f.iso().len() as u64;
    let many: Vec<String> = known
        .iter()
        .map(|(name, row)| (name, row.on(f.iso())))
        .filter(|(_, count)| count * 1_000 > most * ms * cpus)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let good = many.is_empty();
    let said = match good {
        true => format!("at most {most}/s on each of {}", f.iso()),
        false => format!("in {} s on {}: {}", ms as f64 / 1e3, f.iso(), many.join(", ")),
    };
    judge(EvidenceLevel::Seen, good, CheckStatus::Fail, said)
}

fn softirqs(f: &Facts<'_>) -> Answer {
    let counters = f.counted("/proc/softirqs")?;
    let ms = f.observed_ms()?;
    let cpus = f.iso().len() as u64;
    let all: Vec<_> = counters.rows().map(|(name, row)| (name, row.on(f.iso()))).collect();
    let total: u64 = all.iter().map(|(_, count)| count).sum();
    let good = total * 1_000 <= 2 * ms * cpus;
    let named: Vec<String> = all
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let said = match named.is_empty() {
        true => format!("none on {}", f.iso()),
        false => format!("in {} s on {}: {}", ms as f64 / 1e3, f.iso(), named.join(", ")),
    };
    judge(EvidenceLevel::Seen, good, CheckStatus::Fail, said)
}

fn usb(f: &Facts<'_>) -> Answer {
    let counters = f.counted("/proc/interrupts")?;
    let busy: Vec<String> = counters
        .rows()
        .filter(|(_, row)| ["xhci", "ehci", "uhci"].iter().any(|host| row.label.contains(host)))
        .map(|(_, row)| (row.label.clone(), row.counts.values().sum::<u64>()))
        .filter(|(_, count)| *count > 0)
        .map(|(label, count)| format!("{label}: {count}"))
        .collect();
    let none = busy.is_empty();
    judge(
        EvidenceLevel::Seen,
        none,
        CheckStatus::Warn,
        if none { "no USB host interrupted".into() } else { few(&busy) },
    )
}
