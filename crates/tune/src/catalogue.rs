//! All known changes: texts and profiles as data, and the function or file that carries each one out.

use super::change::{Step, When};
use super::form::Form;
use super::makers::{Site, cpus, isolation, memory, nics, services, words};
use super::request::Profile;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use tailtrim_host::texts::{Text, list, read, text};

/// A change before it met a host: its texts are data (`catalogue/*.json`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    #[serde(deserialize_with = "text")]
    pub(crate) id: Text,
    /// Checks of the audit that it answers.
    #[serde(deserialize_with = "list")]
    pub(crate) checks: &'static [Text],
    #[serde(deserialize_with = "text")]
    pub(crate) title: Text,
    #[serde(deserialize_with = "text")]
    pub(crate) reason: Text,
    #[serde(deserialize_with = "text")]
    pub(crate) cost: Text,
    #[serde(deserialize_with = "text")]
    pub(crate) source: Text,
    /// The profiles that have it, with the value for each; empty where there is nothing to say beyond that.
    pub(crate) values: BTreeMap<Profile, String>,
    #[serde(skip)]
    pub(crate) how: How,
}

/// What carries it out.
#[derive(Clone, Default)]
pub(crate) enum How {
    /// A file with one value.
    File(&'static str, Form),
    /// Steps that depend on the host; `Err` says why there are none, an empty list that none is asked for.
    Steps(fn(&Site<'_>) -> Result<Vec<Step>, String>),
    /// The same, for files that are read when the host starts.
    Drop(fn(&Site<'_>) -> Result<Vec<Step>, String>),
    /// Words for the boot line.
    Words(fn(&Site<'_>) -> Result<Vec<String>, String>),
    /// Told, not done.
    #[default]
    Told,
}

impl How {
    pub(crate) fn when(&self) -> When {
        match self {
            Self::File(..) | Self::Steps(_) => When::Now,
            Self::Drop(_) | Self::Words(_) => When::NextBoot,
            Self::Told => When::ByHand,
        }
    }
}

static ALL: LazyLock<Vec<Item>> = LazyLock::new(|| {
    let mut all: Vec<Item> = TEXTS.iter().flat_map(|file| read::<Vec<Item>>(file)).collect();
    for item in &mut all {
        if let Some((_, how)) = HOW.iter().find(|(id, _)| *id == item.id) {
            item.how = how.clone();
        }
    }
    all
});

/// In the order in which they are carried out: what takes CPUs away first, since it changes what follows.
pub(crate) fn all() -> impl Iterator<Item = &'static Item> {
    ALL.iter()
}

impl Item {
    /// The value in a profile; `None` where the profile does not have it.
    pub(crate) fn value(&self, profile: Profile) -> Option<&str> {
        self.values.get(&profile).map(String::as_str)
    }
}

const fn number(path: &'static str) -> How {
    How::File(path, Form::Number)
}

const TEXTS: [&str; 6] = [
    include_str!("catalogue/cpus.json"),
    include_str!("catalogue/kernel.json"),
    include_str!("catalogue/memory.json"),
    include_str!("catalogue/network.json"),
    include_str!("catalogue/boot.json"),
    include_str!("catalogue/by_hand.json"),
];

/// The way of each change, in the order of the texts.
const HOW: &[(&str, How)] = &[
    ("cpu.smt", How::Steps(cpus::smt)),
    ("cpu.epp", How::Steps(cpus::energy_preference)),
    ("cpu.epb", How::Steps(cpus::energy_bias)),
    ("cpu.governor", How::Steps(cpus::governor)),
    ("cpu.turbo", How::Steps(cpus::turbo)),
    ("cpu.min-freq", How::Steps(cpus::lowest_frequency)),
    ("cpu.uncore-freq", How::Steps(cpus::uncore)),
    ("cpu.idle-states", How::Steps(cpus::idle_states)),
    ("cpu.dma-latency", How::Steps(cpus::dma_latency)),
    ("isolation.cpuset", How::Steps(isolation::cpuset)),
    ("isolation.kthreads", How::Steps(isolation::kernel_threads)),
    ("isolation.workqueues", How::Steps(isolation::workqueues)),
    ("irq.default", How::Steps(isolation::default_interrupts)),
    ("irq.affinity", How::Steps(isolation::interrupts)),
    ("cache.ways", How::Steps(isolation::cache_ways)),
    ("isolation.systemd", How::Drop(isolation::systemd)),
    ("kernel.nmi_watchdog", number("/proc/sys/kernel/nmi_watchdog")),
    ("kernel.watchdog_cpumask", How::Steps(services::watchdog_cpus)),
    ("kernel.soft_watchdog", number("/proc/sys/kernel/soft_watchdog")),
    ("kernel.hung_task_timeout_secs", number("/proc/sys/kernel/hung_task_timeout_secs")),
    ("kernel.sched_rt_runtime_us", number("/proc/sys/kernel/sched_rt_runtime_us")),
    ("sched.fair-server", How::Steps(services::fair_server)),
    ("kernel.timer_migration", number("/proc/sys/kernel/timer_migration")),
    ("kernel.sched_autogroup_enabled", number("/proc/sys/kernel/sched_autogroup_enabled")),
    ("kernel.split_lock_mitigate", number("/proc/sys/kernel/split_lock_mitigate")),
    ("rcu.normal", number("/sys/kernel/rcu_normal")),
    ("mce.ignore-ce", How::Steps(services::machine_checks)),
    ("mce.interval", How::Steps(services::machine_checks)),
    ("clock.source", How::Steps(services::clock_source)),
    ("pcie.aspm", How::Steps(services::aspm)),
    ("kvm.halt-poll", number("/sys/module/kvm/parameters/halt_poll_ns")),
    ("kvm.modules", How::Drop(services::kvm_modules)),
    ("services.periodic", How::Steps(services::periodic)),
    ("vm.stat_interval", number("/proc/sys/vm/stat_interval")),
    ("kernel.numa_balancing", number("/proc/sys/kernel/numa_balancing")),
    ("mm.thp", How::File("/sys/kernel/mm/transparent_hugepage/enabled", Form::Choice)),
    ("mm.thp-defrag", How::File("/sys/kernel/mm/transparent_hugepage/defrag", Form::Choice)),
    ("mm.khugepaged", number("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")),
    ("mm.ksm", number("/sys/kernel/mm/ksm/run")),
    ("vm.compaction_proactiveness", number("/proc/sys/vm/compaction_proactiveness")),
    ("vm.swappiness", number("/proc/sys/vm/swappiness")),
    ("mm.huge-pages", How::Steps(memory::huge_pages)),
    ("net.busy_read", number("/proc/sys/net/core/busy_read")),
    ("net.busy_poll", number("/proc/sys/net/core/busy_poll")),
    ("net.tcp_fastopen", number("/proc/sys/net/ipv4/tcp_fastopen")),
    ("nic.coalesce", How::Steps(nics::coalescing)),
    ("nic.offload", How::Steps(nics::offloads)),
    ("nic.ring", How::Steps(nics::rings)),
    ("nic.queues", How::Steps(nics::queues)),
    ("nic.pause", How::Steps(nics::pause)),
    ("nic.eee", How::Steps(nics::energy_efficient)),
    ("nic.runtime-pm", How::Steps(nics::runtime_power)),
    ("net.rps", How::Steps(nics::receive_steering)),
    ("net.xps", How::Steps(nics::transmit_steering)),
    ("boot.isolcpus", How::Words(words::isolcpus)),
    ("boot.nohz_full", How::Words(words::nohz_full)),
    ("boot.rcu_nocbs", How::Words(words::rcu_nocbs)),
    ("boot.rcu_nocb_poll", How::Words(words::rcu_nocb_poll)),
    ("boot.irqaffinity", How::Words(words::irqaffinity)),
    ("boot.nosmt", How::Words(words::nosmt)),
    ("boot.idle", How::Words(words::fixed)),
    ("boot.max_cstate", How::Words(words::cstate)),
    ("boot.intel_pstate", How::Words(words::intel)),
    ("boot.tsc", How::Words(words::invariant_tsc)),
    ("boot.mce", How::Words(words::fixed)),
    ("boot.audit", How::Words(words::fixed)),
    ("boot.watchdogs", How::Words(words::fixed)),
    ("boot.skew_tick", How::Words(words::fixed)),
    ("boot.rcu_patience", How::Words(words::rcu_patience)),
    ("boot.pcie_aspm", How::Words(words::fixed)),
    ("boot.iommu", How::Words(words::iommu)),
    ("boot.hugepages", How::Words(words::huge_pages)),
    ("firmware.power", How::Told),
    ("firmware.smi", How::Told),
    ("firmware.scrub", How::Told),
    ("link.direct", How::Told),
    ("firewall.position", How::Told),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_says_what_why_and_at_what_price() {
        let mut known = BTreeSet::new();
        for item in all() {
            assert!(known.insert(item.id), "{} twice", item.id);
            for text in [item.title, item.reason, item.cost, item.source] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{}: {text:?}", item.id);
            }
            assert!(!item.values.is_empty(), "{}", item.id);
            for check in item.checks {
                let (group, number) = check.split_once('-').unwrap();
                assert!(group.chars().all(|letter| letter.is_ascii_uppercase()), "{check}");
                assert!(number.len() == 3 && number.parse::<u32>().is_ok(), "{check}");
            }
        }
        let coded: Vec<&str> = HOW.iter().map(|(id, _)| *id).collect();
        assert_eq!(coded, all().map(|item| item.id).collect::<Vec<_>>());
    }
}
