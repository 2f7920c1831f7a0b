//! Counters before and after.

use super::smi::Smi;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use tailtrim_host::Cpus;
use tailtrim_trace::counters::Counters;

/// Counters of how often a CPU was slowed down for its temperature, below its folder in sysfs.
const THROTTLES: [&str; 2] =
    ["thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count"];

/// Files that have to stay open for counting.
#[derive(Debug)]
pub struct Watch(BTreeMap<u32, Smi>);

impl Watch {
    /// Opens the counters of these CPUs.
    #[must_use]
    pub fn open(cpus: &Cpus) -> Self {
        Self(cpus.iter().map(|cpu| (cpu, Smi::open(cpu))).collect())
    }
}

/// A counter of each CPU, or the reason why it has none.
type Readings = BTreeMap<u32, Result<u64, String>>;

/// The counters at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    interrupts: Counters,
    softirqs: Counters,
    /// By CPU, in ticks of 10 ms.
    steal: BTreeMap<u32, u64>,
    /// By CPU; or the reason why it cannot be read.
    smi: Readings,
    throttled: Readings,
    switches: Readings,
}

/// Differences of one CPU's counters between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Delta {
    /// By name.
    pub interrupts: BTreeMap<String, u64>,
    /// By name.
    pub softirqs: BTreeMap<String, u64>,
    /// Time that a hypervisor gave to others, by its own report; steps of 10 ms.
    pub steal_ms: Option<u64>,
    /// System management interrupts.
    pub smi: Option<u64>,
    /// Number of times that the CPU or its package was slowed down for its temperature.
    pub throttled: Option<u64>,
    /// Number of calls of the CPU's scheduler to switch threads, of any kind.
    pub switches: Option<u64>,
    /// Counters that cannot be read here, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unread: BTreeMap<&'static str, String>,
}

impl Snapshot {
    /// Reads them.
    #[must_use]
    pub fn take(watch: &Watch) -> Self {
        let cpus = || watch.0.keys().copied();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let schedstat = fs::read_to_string("/proc/schedstat");
        let switches = |cpu| match &schedstat {
            Ok(text) => switches(text, cpu)
                .ok_or_else(|| format!("/proc/schedstat has no numbers of CPU {cpu}")),
            Err(error) => Err(format!("/proc/schedstat: {error} (CONFIG_SCHEDSTATS)")),
        };
        Self {
            interrupts: Counters::parse(&read("/proc/interrupts")),
            softirqs: Counters::parse(&read("/proc/softirqs")),
            steal: steal(&read("/proc/stat")),
            smi: watch.0.iter().map(|(cpu, smi)| (*cpu, smi.count())).collect(),
            throttled: cpus().map(|cpu| (cpu, throttled(cpu))).collect(),
            switches: cpus().map(|cpu| (cpu, switches(cpu))).collect(),
        }
    }

    /// Differences of a CPU's counters since `before`.
    #[must_use]
    pub fn since(&self, before: &Self, cpu: u32) -> Delta {
        let mut unread = BTreeMap::new();
        let mut grown =
            |name, now: &Readings, then: &Readings| match (now.get(&cpu)?, then.get(&cpu)?) {
                (Ok(now), Ok(then)) => Some(now.saturating_sub(*then)),
                (Err(why), _) | (_, Err(why)) => {
                    unread.insert(name, why.clone());
                    None
                }
            };
        let smi = grown("SMI", &self.smi, &before.smi);
        let throttled = grown("throttling", &self.throttled, &before.throttled);
        let switches = grown("switches of the CPU", &self.switches, &before.switches);
        if self.interrupts.has(cpu) && !before.interrupts.has(cpu) {
            let why = "the CPU had no counters before: it was offline";
            unread.insert("interrupts", why.to_owned());
        }
        let steal = |snapshot: &Self| snapshot.steal.get(&cpu).copied();
        Delta {
            interrupts: self.interrupts.since(&before.interrupts, cpu),
            softirqs: self.softirqs.since(&before.softirqs, cpu),
            steal_ms: steal(self)
                .zip(steal(before))
                .map(|(now, then)| now.saturating_sub(then) * 10),
            smi,
            throttled,
            switches,
            unread,
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

/// `cpu1 yields 0 schedules …`: the third number is that of calls to `schedule()`
/// (Documentation/scheduler/sched-stats.rst).
fn switches(schedstat: &str, cpu: u32) -> Option<u64> {
    let label = format!("cpu{cpu} ");
    let line = schedstat.lines().find_map(|line| line.strip_prefix(&label))?;
    line.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn throttled(cpu: u32) -> Result<u64, String> {
    let mut sum = 0;
    for file in THROTTLES {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{path}: {error} (Intel only, not in virtual machines)"))?;
        sum += text.trim().parse::<u64>().map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(sum)
}

/// The scheduler's counters of the thread that opened it. They are read into the stack: memory that is given back
/// interrupts the CPUs on which other threads measure.
#[derive(Debug)]
pub(super) struct Scheduled {
    status: Option<File>,
    schedstat: Option<File>,
}

/// More than either file has.
const PAGE_BYTES: usize = 4_096;

impl Scheduled {
    pub(super) fn open() -> Self {
        let open = |name: &str| File::open(format!("/proc/thread-self/{name}")).ok();
        Self { status: open("status"), schedstat: open("schedstat") }
    }

    /// Number of times that the thread gave up its CPU, and that it was preempted.
    pub(super) fn context_switches(&self) -> (u64, u64) {
        let mut page = [0; PAGE_BYTES];
        let status = now(self.status.as_ref(), &mut page).unwrap_or("");
        let of = |label: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(label));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        (of("voluntary_ctxt_switches:"), of("nonvoluntary_ctxt_switches:"))
    }

    /// Time that the thread has waited for its CPU so far, in ns; `None` where the kernel does not count it.
    pub(super) fn waited_ns(&self) -> Option<u64> {
        let mut page = [0; PAGE_BYTES];
        let schedstat = now(self.schedstat.as_ref(), &mut page)?;
        schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// Present text of a file of the kernel.
fn now<'a>(file: Option<&File>, page: &'a mut [u8]) -> Option<&'a str> {
    let bytes = file?.read_at(page, 0).ok()?;
    std::str::from_utf8(&page[..bytes]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_by_cpu() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 0\ncpu12 1 2 3 4 5 6 7 88 9 0\nintr 5\n";
        assert_eq!(steal(stat), BTreeMap::from([(0, 8), (12, 88)]));
    }

    #[test]
    fn switches_by_cpu() {
        let schedstat = "version 17\ntimestamp 4\ncpu1 3 0 870 4 5\ndomain0 MC 3\ncpu12 3 0 9 4\n";
        assert_eq!((switches(schedstat, 1), switches(schedstat, 12)), (Some(870), Some(9)));
        assert_eq!(switches(schedstat, 2), None);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let of = |smi| Snapshot { smi: BTreeMap::from([(1, smi)]), ..Snapshot::default() };
        let delta = of(Ok(7)).since(&of(Ok(5)), 1);
        assert_eq!((delta.smi, delta.unread.len()), (Some(2), 0));
        let delta = of(Ok(7)).since(&of(Err("no".into())), 1);
        assert_eq!((delta.smi, delta.unread), (None, BTreeMap::from([("SMI", "no".to_owned())])));
    }
}
