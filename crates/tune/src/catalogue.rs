//! All known changes: texts and profiles as data, and the function or file that carries each one out.

use super::change::{Step, When};
use super::form::Form;
use super::host_steps::{HostContext, cpus, isolation, memory, nics, services, words};
use super::request::Profile;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use tailtrim_host::texts::{Text, list, read, text};

/// A change before it met a host: its texts are data (`catalogue/*.json`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CatalogueChange {
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
    pub(crate) method: Method,
}

/// Method that carries a change out.
#[derive(Clone, Default)]
pub(crate) enum Method {
    /// A file with one value.
    File(&'static str, Form),
    /// Steps that depend on the host; `Err` says why there are none, an empty list that none is asked for.
    Steps(fn(&HostContext<'_>) -> Result<Vec<Step>, String>),
    /// The same, for files that are read when the host starts.
    DropIn(fn(&HostContext<'_>) -> Result<Vec<Step>, String>),
    /// Words for the boot line.
    Words(fn(&HostContext<'_>) -> Result<Vec<String>, String>),
    /// Nothing: the change is shown, and set by hand.
    #[default]
    ByHand,
}

impl Method {
    pub(crate) fn when(&self) -> When {
        match self {
            Self::File(..) | Self::Steps(_) => When::Now,
            Self::DropIn(_) | Self::Words(_) => When::NextBoot,
            Self::ByHand => When::ByHand,
        }
    }
}

static ALL: LazyLock<Vec<CatalogueChange>> = LazyLock::new(|| {
    let mut all: Vec<CatalogueChange> =
        TEXTS.iter().flat_map(|file| read::<Vec<CatalogueChange>>(file)).collect();
    for item in &mut all {
        if let Some((_, method)) = METHODS.iter().find(|(id, _)| *id == item.id) {
            item.method = method.clone();
        }
    }
    all
});

/// In the order in which they are carried out: what takes CPUs away first, since it changes what follows.
pub(crate) fn all() -> impl Iterator<Item = &'static CatalogueChange> {
    ALL.iter()
}

impl CatalogueChange {
    /// The value in a profile; `None` where the profile does not have it.
    pub(crate) fn value(&self, profile: Profile) -> Option<&str> {
        self.values.get(&profile).map(String::as_str)
    }
}

const fn number(path: &'static str) -> Method {
    Method::File(path, Form::Number)
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
const METHODS: &[(&str, Method)] = &[
    ("cpu.smt", Method::Steps(cpus::smt)),
    ("cpu.epp", Method::Steps(cpus::energy_preference)),
    ("cpu.epb", Method::Steps(cpus::energy_bias)),
    ("cpu.governor", Method::Steps(cpus::governor)),
    ("cpu.turbo", Method::Steps(cpus::turbo)),
    ("cpu.min-freq", Method::Steps(cpus::lowest_frequency)),
    ("cpu.uncore-freq", Method::Steps(cpus::uncore)),
    ("cpu.idle-states", Method::Steps(cpus::idle_states)),
    ("cpu.dma-latency", Method::Steps(cpus::dma_latency)),
    ("isolation.cpuset", Method::Steps(isolation::cpuset)),
    ("isolation.kthreads", Method::Steps(isolation::kernel_threads)),
    ("isolation.workqueues", Method::Steps(isolation::workqueues)),
    ("irq.default", Method::Steps(isolation::default_interrupts)),
    ("irq.affinity", Method::Steps(isolation::interrupts)),
    ("cache.ways", Method::Steps(isolation::cache_ways)),
    ("isolation.systemd", Method::DropIn(isolation::systemd)),
    ("kernel.nmi_watchdog", number("/proc/sys/kernel/nmi_watchdog")),
    ("kernel.watchdog_cpumask", Method::Steps(services::watchdog_cpus)),
    ("kernel.soft_watchdog", number("/proc/sys/kernel/soft_watchdog")),
    ("kernel.hung_task_timeout_secs", number("/proc/sys/kernel/hung_task_timeout_secs")),
    ("kernel.sched_rt_runtime_us", number("/proc/sys/kernel/sched_rt_runtime_us")),
    ("sched.fair-server", Method::Steps(services::fair_server)),
    ("kernel.timer_migration", number("/proc/sys/kernel/timer_migration")),
    ("kernel.sched_autogroup_enabled", number("/proc/sys/kernel/sched_autogroup_enabled")),
    ("kernel.split_lock_mitigate", number("/proc/sys/kernel/split_lock_mitigate")),
    ("rcu.normal", number("/sys/kernel/rcu_normal")),
    ("mce.ignore-ce", Method::Steps(services::machine_checks)),
    ("mce.interval", Method::Steps(services::machine_checks)),
    ("clock.source", Method::Steps(services::clock_source)),
    ("pcie.aspm", Method::Steps(services::aspm)),
    ("kvm.halt-poll", number("/sys/module/kvm/parameters/halt_poll_ns")),
    ("kvm.modules", Method::DropIn(services::kvm_modules)),
    ("services.periodic", Method::Steps(services::periodic)),
    ("vm.stat_interval", number("/proc/sys/vm/stat_interval")),
    ("kernel.numa_balancing", number("/proc/sys/kernel/numa_balancing")),
    ("mm.thp", Method::File("/sys/kernel/mm/transparent_hugepage/enabled", Form::Choice)),
    ("mm.thp-defrag", Method::File("/sys/kernel/mm/transparent_hugepage/defrag", Form::Choice)),
    ("mm.khugepaged", number("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")),
    ("mm.ksm", number("/sys/kernel/mm/ksm/run")),
    ("vm.compaction_proactiveness", number("/proc/sys/vm/compaction_proactiveness")),
    ("vm.swappiness", number("/proc/sys/vm/swappiness")),
    ("mm.huge-pages", Method::Steps(memory::huge_pages)),
    ("net.busy_read", number("/proc/sys/net/core/busy_read")),
    ("net.busy_poll", number("/proc/sys/net/core/busy_poll")),
    ("net.tcp_fastopen", number("/proc/sys/net/ipv4/tcp_fastopen")),
    ("nic.coalesce", Method::Steps(nics::coalescing)),
    ("nic.offload", Method::Steps(nics::offloads)),
    ("nic.ring", Method::Steps(nics::rings)),
    ("nic.queues", Method::Steps(nics::queues)),
    ("nic.pause", Method::Steps(nics::pause)),
    ("nic.eee", Method::Steps(nics::energy_efficient)),
    ("nic.runtime-pm", Method::Steps(nics::runtime_power)),
    ("net.rps", Method::Steps(nics::receive_steering)),
    ("net.xps", Method::Steps(nics::transmit_steering)),
    ("boot.isolcpus", Method::Words(words::isolcpus)),
    ("boot.nohz_full", Method::Words(words::nohz_full)),
    ("boot.rcu_nocbs", Method::Words(words::rcu_nocbs)),
    ("boot.rcu_nocb_poll", Method::Words(words::rcu_nocb_poll)),
    ("boot.irqaffinity", Method::Words(words::irqaffinity)),
    ("boot.nosmt", Method::Words(words::nosmt)),
    ("boot.idle", Method::Words(words::fixed)),
    ("boot.max_cstate", Method::Words(words::cstate)),
    ("boot.intel_pstate", Method::Words(words::intel)),
    ("boot.tsc", Method::Words(words::invariant_tsc)),
    ("boot.mce", Method::Words(words::fixed)),
    ("boot.audit", Method::Words(words::fixed)),
    ("boot.watchdogs", Method::Words(words::fixed)),
    ("boot.skew_tick", Method::Words(words::fixed)),
    ("boot.rcu_patience", Method::Words(words::rcu_patience)),
    ("boot.pcie_aspm", Method::Words(words::fixed)),
    ("boot.iommu", Method::Words(words::iommu)),
    ("boot.hugepages", Method::Words(words::huge_pages)),
    ("firmware.power", Method::ByHand),
    ("firmware.smi", Method::ByHand),
    ("firmware.scrub", Method::ByHand),
    ("link.direct", Method::ByHand),
    ("firewall.position", Method::ByHand),
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
        let coded: Vec<&str> = METHODS.iter().map(|(id, _)| *id).collect();
        assert_eq!(coded, all().map(|item| item.id).collect::<Vec<_>>());
    }
}
