//! Every place that a change may be to. A journal that names another one is refused: reverting it would let the journal
//! choose what root writes.

use super::catalogue::{self, Method};
use super::managers;
use super::place::{NicGroup, Place};
use super::{grub, host_steps};
use tailtrim_host::paths::matches;

/// Kernel files that the makers of steps write, beside the files that the catalogue names itself. `*` stands for any
/// name, `#` for a number.
const FILES: &[&str] = &[
    "/proc/irq/#/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/watchdog_cpumask",
    "/sys/class/net/*/device/power/control",
    "/sys/class/net/*/queues/rx-#/rps_cpus",
    "/sys/class/net/*/queues/tx-#/xps_cpus",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu#/cpufreq/energy_performance_preference",
    "/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq",
    "/sys/devices/system/cpu/cpu#/cpuidle/state#/disable",
    "/sys/devices/system/cpu/cpu#/power/energy_perf_bias",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/machinecheck/machinecheck#/check_interval",
    "/sys/devices/system/machinecheck/machinecheck#/ignore_ce",
    "/sys/devices/system/node/node#/hugepages/*/nr_hugepages",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/fs/cgroup/cgroup.subtree_control",
    "/sys/fs/cgroup/tailtrim/cpuset.cpus",
    "/sys/fs/cgroup/tailtrim/cpuset.cpus.partition",
    "/sys/fs/resctrl/schemata",
    "/sys/fs/resctrl/tailtrim/cpus_list",
    "/sys/fs/resctrl/tailtrim/mode",
    "/sys/fs/resctrl/tailtrim/schemata",
    "/sys/kernel/debug/sched/fair_server/cpu#/runtime",
    "/sys/kernel/mm/hugepages/*/nr_hugepages",
    "/sys/module/pcie_aspm/parameters/policy",
];

/// Drop-ins, all of them files of ours.
const CONFIGS: &[&str] = &[
    grub::FILE,
    "/etc/modprobe.d/tailtrim-kvm.conf",
    "/etc/systemd/system.conf.d/50-tailtrim.conf",
];

/// Directories that are made for them, and groups of CPUs and caches.
const DIRECTORIES: &[&str] = &[
    grub::FOLDER,
    "/etc/modprobe.d",
    "/etc/systemd/system.conf.d",
    "/sys/fs/cgroup/tailtrim",
    "/sys/fs/resctrl/tailtrim",
];

/// Whether a change of this program may be to this place.
pub(crate) fn is_allowed(place: &Place) -> bool {
    match place {
        Place::File { path } => is_plain(path) && (is_listed(path) || is_item(path)),
        Place::Config { path } => CONFIGS.contains(&path.as_str()),
        Place::Directory { path } => DIRECTORIES.contains(&path.as_str()),
        Place::Nic { interface, group, key } => is_name(interface) && has_setting(*group, key),
        Place::Service { name } => {
            managers::services().any(|known| known == name)
                || host_steps::services::PERIODIC.contains(&name.as_str())
        }
        // Only the CPUs of a thread are set, and only of the one that was started at that time.
        Place::Thread { .. } | Place::Latency => true,
    }
}

fn is_listed(path: &str) -> bool {
    FILES.iter().any(|pattern| matches(pattern, path))
}

fn is_item(path: &str) -> bool {
    catalogue::all().any(|item| matches!(item.method, Method::File) && item.file == path)
}

/// A name that stands for a `*` must not lead elsewhere.
fn is_plain(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_name))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

fn has_setting(group: NicGroup, key: &str) -> bool {
    let known: &[(&str, &str)] = match group {
        NicGroup::Coalesce => &host_steps::nics::COALESCING,
        NicGroup::Feature => &host_steps::nics::OFFLOADS,
        NicGroup::Pause => &host_steps::nics::PAUSE,
        NicGroup::Eee => &host_steps::nics::EEE,
        NicGroup::Ring => return matches!(key, "rx" | "tx"),
        NicGroup::Channels => return key == "combined",
    };
    known.iter().any(|(name, _)| *name == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_change_writes_cannot_be_named() {
        for path in [
            "/etc/passwd",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/sys/class/net/../../../etc/device/power/control",
            "/sys/class/net//device/power/control",
            "/sys/devices/system/cpu/cpu0x/cpufreq/scaling_governor",
            "proc/sys/vm/stat_interval",
        ] {
            assert!(!is_allowed(&Place::file(path)), "{path}");
            assert!(!is_allowed(&Place::Config { path: path.into() }), "{path}");
            assert!(!is_allowed(&Place::Directory { path: path.into() }), "{path}");
        }
        assert!(!is_allowed(&Place::Service { name: "sshd.service".into() }));
        let nic = |interface: &str, key: &str| Place::Nic {
            interface: interface.into(),
            group: NicGroup::Feature,
            key: key.into(),
        };
        assert!(!is_allowed(&nic("eth0", "rx-checksum")) && !is_allowed(&nic("../eth0", "gro")));
        assert!(is_allowed(&nic("eth0", "gro")));
    }
}
