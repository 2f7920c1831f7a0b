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
    /// The file that has the value, where the change is one file; empty otherwise.
    #[serde(default, deserialize_with = "text")]
    pub(crate) file: Text,
    /// Form of the value in that file.
    #[serde(default)]
    pub(crate) form: Form,
    #[serde(skip)]
    pub(crate) method: Method,
}

/// Method that carries a change out.
#[derive(Clone, Copy, Default)]
pub(crate) enum Method {
    /// A file with one value.
    File,
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
            Self::File | Self::Steps(_) => When::Now,
            Self::DropIn(_) | Self::Words(_) => When::NextBoot,
            Self::ByHand => When::ByHand,
        }
    }
}

static ALL: LazyLock<Vec<CatalogueChange>> = LazyLock::new(|| {
    let mut all: Vec<CatalogueChange> =
        TEXTS.iter().flat_map(|file| read::<Vec<CatalogueChange>>(file)).collect();
    for item in &mut all {
        let coded = METHODS.iter().find(|(id, _)| *id == item.id).map(|(_, method)| *method);
        let other = if item.file.is_empty() { Method::ByHand } else { Method::File };
        item.method = coded.unwrap_or(other);
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

const TEXTS: [&str; 6] = [
    include_str!("catalogue/cpus.json"),
    include_str!("catalogue/kernel.json"),
    include_str!("catalogue/memory.json"),
    include_str!("catalogue/network.json"),
    include_str!("catalogue/boot.json"),
    include_str!("catalogue/by_hand.json"),
];

/// The functions of changes that are more than a file or a hint, in the order of the texts.
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
    ("kernel.watchdog_cpumask", Method::Steps(services::watchdog_cpus)),
    ("sched.fair-server", Method::Steps(services::fair_server)),
    ("mce.ignore-ce", Method::Steps(services::machine_checks)),
    ("mce.interval", Method::Steps(services::machine_checks)),
    ("clock.source", Method::Steps(services::clock_source)),
    ("pcie.aspm", Method::Steps(services::aspm)),
    ("kvm.modules", Method::DropIn(services::kvm_modules)),
    ("services.periodic", Method::Steps(services::periodic)),
    ("mm.huge-pages", Method::Steps(memory::huge_pages)),
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
        let coded = all().filter(|item| !matches!(item.method, Method::File | Method::ByHand));
        let coded: Vec<&str> = coded.map(|item| item.id).collect();
        let by_hand = all().filter(|item| matches!(item.method, Method::ByHand));
        let groups: BTreeSet<_> = by_hand.filter_map(|item| item.id.split('.').next()).collect();
        assert_eq!(groups.into_iter().collect::<Vec<_>>(), ["firewall", "firmware", "link"]);
        assert_eq!(coded, METHODS.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    }
}
