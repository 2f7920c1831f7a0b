//! IRQ, second part: interrupts between CPUs, softirqs, and what the hardware says of itself.

use super::*;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("vectors.json"),
    evaluators: &[
        ("IRQ-008", |f| vectors(f, &["RES", "CAL", "TLB", "IWI", "NMI", "PMI", "MCP"], 1)),
        ("IRQ-009", |f| vectors(f, &["TRM", "THR", "DFR", "MCE"], 0)),
        ("IRQ-010", softirqs),
        ("IRQ-011", usb),
    ],
};

/// Rates of some rows of `/proc/interrupts` on isolated CPUs are at most this, a second and a CPU.
fn vectors(f: &Facts<'_>, names: &[&str], most: u64) -> Answer {
    let counters = f.counter_growth("/proc/interrupts")?;
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
    judge(Seen, good, Fail, said)
}

fn softirqs(f: &Facts<'_>) -> Answer {
    let counters = f.counter_growth("/proc/softirqs")?;
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
    judge(Seen, good, Fail, said)
}

fn usb(f: &Facts<'_>) -> Answer {
    let counters = f.counter_growth("/proc/interrupts")?;
    let busy: Vec<String> = counters
        .rows()
        .filter(|(_, row)| ["xhci", "ehci", "uhci"].iter().any(|host| row.label.contains(host)))
        .map(|(_, row)| (row.label.clone(), row.counts.values().sum::<u64>()))
        .filter(|(_, count)| *count > 0)
        .map(|(label, count)| format!("{label}: {count}"))
        .collect();
    let none = busy.is_empty();
    judge(Seen, none, Warn, if none { "no USB host interrupted".into() } else { few(&busy) })
}
