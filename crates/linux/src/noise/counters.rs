//! Counters before and after.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use tailtrim_model::host::Cpus;
use tailtrim_model::trace::counters::Counters;

/// Intel's count of system management interrupts (SDM volume 4, `MSR_SMI_COUNT`).
const SMI_COUNT: u64 = 0x34;

/// The counters at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    interrupts: Counters,
    softirqs: Counters,
    /// By CPU, in ticks of 10 ms.
    steal: BTreeMap<u32, u64>,
    smi: BTreeMap<u32, u64>,
    throttled: BTreeMap<u32, u64>,
}

/// What one CPU counted between two of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// By name.
    pub interrupts: BTreeMap<String, u64>,
    /// By name.
    pub softirqs: BTreeMap<String, u64>,
    /// Time that a hypervisor gave to others, as it says; steps of 10 ms.
    pub steal_ms: Option<u64>,
    /// System management interrupts; nothing where the counter cannot be read (`/dev/cpu/N/msr`, Intel only).
    pub smi: Option<u64>,
    /// How often the CPU was slowed down by its temperature; nothing where nobody counts.
    pub throttled: Option<u64>,
}

impl Snapshot {
    /// Reads them.
    #[must_use]
    pub fn take(cpus: &Cpus) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let of_each = |read: &dyn Fn(u32) -> Option<u64>| {
            cpus.iter().filter_map(|cpu| Some((cpu, read(cpu)?))).collect()
        };
        Self {
            interrupts: Counters::parse(&read("/proc/interrupts")),
            softirqs: Counters::parse(&read("/proc/softirqs")),
            steal: steal(&read("/proc/stat")),
            smi: of_each(&smi),
            throttled: of_each(&|cpu| {
                let path = format!(
                    "/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count"
                );
                fs::read_to_string(path).ok()?.trim().parse().ok()
            }),
        }
    }

    /// What a CPU counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self, cpu: u32) -> Delta {
        let grown = |now: &BTreeMap<u32, u64>, then: &BTreeMap<u32, u64>| {
            Some(now.get(&cpu)?.saturating_sub(*then.get(&cpu)?))
        };
        Delta {
            interrupts: self.interrupts.since(&before.interrupts, cpu),
            softirqs: self.softirqs.since(&before.softirqs, cpu),
            steal_ms: grown(&self.steal, &before.steal).map(|ticks| ticks * 10),
            smi: grown(&self.smi, &before.smi),
            throttled: grown(&self.throttled, &before.throttled),
        }
    }
}

/// `cpu1 user nice system idle iowait irq softirq steal …` in hundredths of a second.
fn steal(stat: &str) -> BTreeMap<u32, u64> {
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        Some((words.next()?.parse().ok()?, words.nth(7)?.parse().ok()?))
    };
    // The first line is that of all CPUs: no number follows.
    stat.lines().filter(|line| !line.starts_with("cpu ")).filter_map(of_line).collect()
}

fn smi(cpu: u32) -> Option<u64> {
    let file = fs::File::open(format!("/dev/cpu/{cpu}/msr")).ok()?;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(bytes))
}

/// How often the calling thread gave up its CPU, and how often it was taken.
pub(super) fn context_switches() -> (u64, u64) {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let of = |label: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(label));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    (of("voluntary_ctxt_switches:"), of("nonvoluntary_ctxt_switches:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_by_cpu() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 0\ncpu12 1 2 3 4 5 6 7 88 9 0\nintr 5\n";
        assert_eq!(steal(stat), BTreeMap::from([(0, 8), (12, 88)]));
    }
}
