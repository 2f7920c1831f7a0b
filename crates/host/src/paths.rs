//! The files that an audit may read, and so the files that a captured host consists of.
//!
//! In a pattern `*` stands for any part of a name and `#` for digits. What lies below `/tailtrim/` is no
//! file on a host: whoever makes a tree puts it there (the kernel's log, `ethtool`'s answers, counters
//! before and after an observation).

use crate::{Tree, Unread};

pub use crate::LOG;
/// The configuration that the kernel was built with.
pub const CONFIG: &str = "/tailtrim/kernel_config";
/// Timers that systemd will start: one name a line.
pub const TIMERS: &str = "/tailtrim/systemd/timers";
/// The latency that a holder of `/dev/cpu_dma_latency` asks for, in µs.
pub const DMA_LATENCY: &str = "/tailtrim/cpu_dma_latency";
/// Number of rules that nftables has loaded.
pub const RULES: &str = "/tailtrim/nftables_rules";
/// Queueing disciplines: interface, kind, and whether it is the root.
pub const QDISCS: &str = "/tailtrim/qdiscs";
/// One folder for each interface: what `ethtool` says of it, as `key: value`.
pub const ETHTOOL: &str = "/tailtrim/ethtool";
/// Milliseconds between the two looks at the counters.
pub const OBSERVED_MS: &str = "/tailtrim/observation/milliseconds";
/// Counters at the first look, by the path of their file.
pub const BEFORE: &str = "/tailtrim/observation/before";
/// Counters at the second look.
pub const AFTER: &str = "/tailtrim/observation/after";
/// In an observation: how often each kernel thread went to sleep.
pub const KTHREADS: &str = "/tailtrim/kthread_switches";

/// Texts of which a line of the kernel's log must contain one to be kept.
pub const LOG_LINES: &[&str] = &[
    "Linux version ",
    "Unknown kernel command line parameters",
    "Offload RCU callbacks from CPUs",
    "Poll for callbacks from no-CBs CPUs",
    "NO_HZ: Full dynticks CPUs",
    "Housekeeping: ",
    "isolcpus: ",
    "using polling idle threads",
    "tsc: ",
    "TSC synchronization",
    "clocksource: ",
    "x86/split lock",
    "audit: ",
    "mce: ",
    "Lockdown: ",
    "Kernel is locked down",
    "vfio-noiommu",
    "DMAR: IOMMU enabled",
];

/// Counters that are looked at twice.
pub const COUNTERS: &[&str] = &[
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/net/softnet_stat",
    "/proc/net/dev",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed",
    "/sys/devices/system/cpu/cpu#/thermal_throttle/core_throttle_count",
    "/sys/devices/system/cpu/cpu#/thermal_throttle/package_throttle_count",
    "/sys/devices/system/cpu/cpu#/cpuidle/state#/usage",
    "/sys/fs/cgroup/*/cpu.stat",
    "/sys/fs/cgroup/*/*/cpu.stat",
    "/sys/fs/cgroup/*/*/*/cpu.stat",
    "/sys/fs/cgroup/*/*/*/*/cpu.stat",
];

/// A pattern and, where a file may hold more than an audit needs, what its lines must begin with or
/// contain to be kept.
pub type Wanted = (&'static str, &'static [&'static str]);

const MOUNTS: &[&str] = &["hugetlbfs", " resctrl ", " cgroup", " debugfs ", " tracefs "];
const CPUINFO: &[&str] =
    &["vendor_id", "model name", "cpu family", "microcode", "flags", "CPU implementer", "Features"];

/// Every file that may be read.
pub const FILES: &[Wanted] = &[
    ("/boot/firmware/cmdline.txt", &[]),
    ("/boot/loader/entries/*", &["options", "version", "linux"]),
    ("/etc/default/grub", &["GRUB_CMDLINE"]),
    ("/etc/default/grub.d/*", &["GRUB_CMDLINE"]),
    ("/etc/default/irqbalance", &["IRQBALANCE_"]),
    ("/etc/sysconfig/irqbalance", &["IRQBALANCE_"]),
    ("/etc/kernel/cmdline", &[]),
    ("/usr/lib/irqbalance/defaults.env", &["IRQBALANCE_"]),
    ("/proc/#/stat", &[]),
    ("/proc/#/status", &["Name:", "VmLck:", "VmRSS:", "Cpus_allowed_list:"]),
    ("/proc/#/task/#/stat", &[]),
    ("/proc/#/task/#/status", &["Name:", "Cpus_allowed_list:", "voluntary_ctxt_switches:"]),
    ("/proc/cmdline", &[]),
    ("/proc/cpuinfo", CPUINFO),
    ("/proc/filesystems", &[]),
    ("/proc/interrupts", &[]),
    ("/proc/irq/#/effective_affinity_list", &[]),
    ("/proc/irq/#/smp_affinity_list", &[]),
    ("/proc/irq/default_smp_affinity", &[]),
    ("/proc/modules", &[]),
    ("/proc/mounts", MOUNTS),
    ("/proc/net/dev", &[]),
    ("/proc/net/packet", &[]),
    ("/proc/net/softnet_stat", &[]),
    ("/proc/pressure/cpu", &[]),
    ("/proc/softirqs", &[]),
    ("/proc/stat", &[]),
    ("/proc/swaps", &[]),
    ("/proc/sys/kernel/hung_task_timeout_secs", &[]),
    ("/proc/sys/kernel/nmi_watchdog", &[]),
    ("/proc/sys/kernel/numa_balancing", &[]),
    ("/proc/sys/kernel/osrelease", &[]),
    ("/proc/sys/kernel/printk", &[]),
    ("/proc/sys/kernel/sched_autogroup_enabled", &[]),
    ("/proc/sys/kernel/sched_rt_runtime_us", &[]),
    ("/proc/sys/kernel/sched_schedstats", &[]),
    ("/proc/sys/kernel/soft_watchdog", &[]),
    ("/proc/sys/kernel/split_lock_mitigate", &[]),
    ("/proc/sys/kernel/tainted", &[]),
    ("/proc/sys/kernel/task_delayacct", &[]),
    ("/proc/sys/kernel/timer_migration", &[]),
    ("/proc/sys/kernel/version", &[]),
    ("/proc/sys/kernel/watchdog", &[]),
    ("/proc/sys/kernel/watchdog_cpumask", &[]),
    ("/proc/sys/kernel/watchdog_thresh", &[]),
    ("/proc/sys/net/core/busy_poll", &[]),
    ("/proc/sys/net/core/busy_read", &[]),
    ("/proc/sys/net/core/default_qdisc", &[]),
    ("/proc/sys/net/ipv4/tcp_fastopen", &[]),
    ("/proc/sys/net/netfilter/nf_conntrack_count", &[]),
    ("/proc/sys/vm/compaction_proactiveness", &[]),
    ("/proc/sys/vm/dirty_writeback_centisecs", &[]),
    ("/proc/sys/vm/laptop_mode", &[]),
    ("/proc/sys/vm/stat_interval", &[]),
    ("/proc/sys/vm/swappiness", &[]),
    ("/proc/sys/vm/zone_reclaim_mode", &[]),
    ("/sys/bus/virtio/drivers/virtio_net/*/net/*/operstate", &[]),
    ("/sys/class/dmi/id/bios_date", &[]),
    ("/sys/class/dmi/id/bios_version", &[]),
    ("/sys/class/net/*/device/current_link_speed", &[]),
    ("/sys/class/net/*/device/current_link_width", &[]),
    ("/sys/class/net/*/device/local_cpulist", &[]),
    ("/sys/class/net/*/device/max_link_speed", &[]),
    ("/sys/class/net/*/device/max_link_width", &[]),
    ("/sys/class/net/*/device/msi_irqs/#", &[]),
    ("/sys/class/net/*/device/numa_node", &[]),
    ("/sys/class/net/*/device/power/control", &[]),
    ("/sys/class/net/*/device/sriov_numvfs", &[]),
    ("/sys/class/net/*/gro_flush_timeout", &[]),
    ("/sys/class/net/*/napi_defer_hard_irqs", &[]),
    ("/sys/class/net/*/operstate", &[]),
    ("/sys/class/net/*/queues/rx-#/rps_cpus", &[]),
    ("/sys/class/net/*/queues/tx-#/xps_cpus", &[]),
    ("/sys/class/net/*/threaded", &[]),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", &[]),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", &[]),
    ("/sys/devices/system/cpu/amd_pstate/status", &[]),
    ("/sys/devices/system/cpu/cpu#/cache/index#/level", &[]),
    ("/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_list", &[]),
    ("/sys/devices/system/cpu/cpu#/cpufreq/energy_performance_preference", &[]),
    ("/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver", &[]),
    ("/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor", &[]),
    ("/sys/devices/system/cpu/cpu#/cpufreq/scaling_max_freq", &[]),
    ("/sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq", &[]),
    ("/sys/devices/system/cpu/cpu#/cpuidle/state#/disable", &[]),
    ("/sys/devices/system/cpu/cpu#/cpuidle/state#/latency", &[]),
    ("/sys/devices/system/cpu/cpu#/cpuidle/state#/name", &[]),
    ("/sys/devices/system/cpu/cpu#/cpuidle/state#/usage", &[]),
    ("/sys/devices/system/cpu/cpu#/power/energy_perf_bias", &[]),
    ("/sys/devices/system/cpu/cpu#/power/pm_qos_resume_latency_us", &[]),
    ("/sys/devices/system/cpu/cpu#/thermal_throttle/core_throttle_count", &[]),
    ("/sys/devices/system/cpu/cpu#/thermal_throttle/package_throttle_count", &[]),
    ("/sys/devices/system/cpu/cpu#/topology/physical_package_id", &[]),
    ("/sys/devices/system/cpu/cpu#/topology/thread_siblings_list", &[]),
    ("/sys/devices/system/cpu/cpufreq/boost", &[]),
    ("/sys/devices/system/cpu/cpuidle/current_driver", &[]),
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", &[]),
    ("/sys/devices/system/cpu/intel_pstate/status", &[]),
    ("/sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz", &[]),
    ("/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz", &[]),
    ("/sys/devices/system/cpu/isolated", &[]),
    ("/sys/devices/system/cpu/nohz_full", &[]),
    ("/sys/devices/system/cpu/online", &[]),
    ("/sys/devices/system/cpu/possible", &[]),
    ("/sys/devices/system/cpu/smt/active", &[]),
    ("/sys/devices/system/cpu/smt/control", &[]),
    ("/sys/devices/system/cpu/vulnerabilities/*", &[]),
    ("/sys/devices/system/edac/mc/mc#/sdram_scrub_rate", &[]),
    ("/sys/devices/system/machinecheck/machinecheck#/check_interval", &[]),
    ("/sys/devices/system/machinecheck/machinecheck#/ignore_ce", &[]),
    ("/sys/devices/system/node/node#/cpulist", &[]),
    ("/sys/devices/system/node/node#/hugepages/*/free_hugepages", &[]),
    ("/sys/devices/system/node/node#/hugepages/*/nr_hugepages", &[]),
    ("/sys/devices/virtual/workqueue/*/cpumask", &[]),
    ("/sys/devices/virtual/workqueue/cpumask", &[]),
    ("/sys/firmware/acpi/platform_profile", &[]),
    ("/sys/fs/cgroup/cpuset.cpus.isolated", &[]),
    ("/sys/fs/cgroup/*/cpu.max", &[]),
    ("/sys/fs/cgroup/*/*/cpu.max", &[]),
    ("/sys/fs/cgroup/*/*/*/cpu.max", &[]),
    ("/sys/fs/cgroup/*/*/*/*/cpu.max", &[]),
    ("/sys/fs/cgroup/*/cpuset.cpus.partition", &[]),
    ("/sys/fs/cgroup/*/*/cpuset.cpus.partition", &[]),
    ("/sys/fs/resctrl/*/cpus_list", &[]),
    ("/sys/fs/resctrl/*/mode", &[]),
    ("/sys/fs/resctrl/*/schemata", &[]),
    ("/sys/fs/resctrl/cpus_list", &[]),
    ("/sys/fs/resctrl/schemata", &[]),
    ("/sys/fs/selinux/avc/cache_threshold", &[]),
    (
        "/sys/kernel/debug/irq/irqs/#",
        &["affinity:", "effectiv:", "IRQD_AFFINITY_MANAGED", "dstate:"],
    ),
    ("/sys/kernel/debug/sched/base_slice_ns", &[]),
    ("/sys/kernel/debug/sched/debug", &["cpu#", ".nr_running"]),
    ("/sys/kernel/debug/sched/fair_server/cpu#/runtime", &[]),
    ("/sys/kernel/debug/sched/migration_cost_ns", &[]),
    ("/sys/kernel/debug/sched/nr_migrate", &[]),
    ("/sys/kernel/debug/sched/preempt", &[]),
    ("/sys/kernel/iommu_groups/#/type", &[]),
    ("/sys/kernel/mm/hugepages/*/nr_hugepages", &[]),
    ("/sys/kernel/mm/ksm/run", &[]),
    ("/sys/kernel/mm/transparent_hugepage/defrag", &[]),
    ("/sys/kernel/mm/transparent_hugepage/enabled", &[]),
    ("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", &[]),
    ("/sys/kernel/rcu_normal", &[]),
    ("/sys/kernel/realtime", &[]),
    ("/sys/kernel/sched_ext/root/ops", &[]),
    ("/sys/kernel/sched_ext/state", &[]),
    ("/sys/kernel/security/lockdown", &[]),
    ("/sys/kernel/tracing/current_tracer", &[]),
    ("/sys/kernel/tracing/events/enable", &[]),
    ("/sys/kernel/tracing/instances/*/current_tracer", &[]),
    ("/sys/module/kvm/parameters/halt_poll_ns", &[]),
    ("/sys/module/kvm/parameters/kvmclock_periodic_sync", &[]),
    ("/sys/module/kvm/parameters/nx_huge_pages", &[]),
    ("/sys/module/kvm_amd/parameters/avic", &[]),
    ("/sys/module/kvm_intel/parameters/enable_apicv", &[]),
    ("/sys/module/kvm_intel/parameters/ple_gap", &[]),
    ("/sys/module/kvm_amd/parameters/pause_filter_count", &[]),
    ("/sys/module/pcie_aspm/parameters/policy", &[]),
    ("/sys/module/processor/parameters/max_cstate", &[]),
    ("/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout", &[]),
    ("/sys/module/rcupdate/parameters/rcu_normal_after_boot", &[]),
    ("/sys/module/rcutree/parameters/kthread_prio", &[]),
    ("/sys/module/rcutree/parameters/nohz_full_patience_delay", &[]),
    ("/sys/module/rcutree/parameters/use_softirq", &[]),
    ("/sys/module/workqueue/parameters/power_efficient", &[]),
    ("/sys/module/workqueue/parameters/watchdog_thresh", &[]),
    ("/var/lib/kubelet/cpu_manager_state", &[]),
    (CONFIG, &["=y", "CONFIG_HZ="]),
    (DMA_LATENCY, &[]),
    (LOG, &[]),
    (QDISCS, &[]),
    (RULES, &[]),
    (TIMERS, &[]),
    ("/tailtrim/ethtool/*/*", &[]),
];

/// Links of which only the target is read.
pub const LINKS: &[&str] = &[
    "/proc/1/ns/cgroup",
    "/proc/1/ns/pid",
    "/sys/class/net/*/device/driver",
    "/sys/class/net/*/device/virtfn#/driver",
];

/// Patterns of files of which only the names are read.
pub const NAMES: &[&str] = &["/sys/bus/pci/drivers/igb_uio/*", "/sys/bus/pci/drivers/vfio-pci/*"];

/// All patterns: files, links and names.
pub fn patterns() -> impl Iterator<Item = &'static str> {
    FILES
        .iter()
        .map(|(pattern, _)| *pattern)
        .chain(LINKS.iter().copied())
        .chain(NAMES.iter().copied())
}

/// All paths in a tree that a pattern stands for, and the directories that could not be looked into.
pub fn expand(tree: &dyn Tree, pattern: &str) -> (Vec<String>, Vec<Unread>) {
    let mut found = vec![String::new()];
    let mut failed = Vec::new();
    for part in pattern.split('/').skip(1) {
        let mut next = Vec::new();
        for start in found {
            if !part.contains(['*', '#']) {
                next.push(format!("{start}/{part}"));
                continue;
            }
            match tree.list(if start.is_empty() { "/" } else { &start }) {
                Ok(names) => next.extend(
                    names
                        .iter()
                        .filter(|name| fits(part, name))
                        .map(|name| format!("{start}/{name}")),
                ),
                Err(Unread::Missing { .. }) => {}
                Err(why) => failed.push(why),
            }
        }
        found = next;
    }
    (found, failed)
}

/// Whether a path is one of those that a pattern stands for.
#[must_use]
pub fn matches(pattern: &str, path: &str) -> bool {
    let mut names = path.split('/');
    let fits = pattern.split('/').all(|part| names.next().is_some_and(|name| fits(part, name)));
    fits && names.next().is_none()
}

/// Whether a path may be read at all; a directory may where something below it may.
#[must_use]
pub fn known(path: &str) -> bool {
    path.starts_with("/tailtrim/observation/")
        || patterns().any(|pattern| matches(pattern, path) || leads_to(pattern, path))
}

/// Whether a path is a directory on the way to what a pattern stands for.
#[must_use]
pub fn leads_to(pattern: &str, directory: &str) -> bool {
    let mut parts = pattern.split('/');
    let fits = directory
        .trim_end_matches('/')
        .split('/')
        .all(|name| parts.next().is_some_and(|part| fits(part, name)));
    fits && parts.next().is_some()
}

/// Whether one name fits one part of a pattern with at most one `*` or `#`.
#[must_use]
pub fn fits(part: &str, name: &str) -> bool {
    let Some(at) = part.find(['*', '#']) else { return part == name };
    let (start, end) = (&part[..at], &part[at + 1..]);
    let middle = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
    let digits = part.as_bytes()[at] == b'#';
    middle.is_some_and(|middle| {
        !middle.is_empty() && (!digits || middle.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(matches("/proc/irq/#/smp_affinity_list", "/proc/irq/24/smp_affinity_list"));
        assert!(!matches("/proc/irq/#/smp_affinity_list", "/proc/irq/x/smp_affinity_list"));
        assert!(!matches("/sys/cpu#/online", "/sys/cpufreq/online"));
        assert!(known("/proc/irq") && known("/proc/irq/24") && !known("/etc/shadow"));
        assert!(!known("/proc/1/environ") && !known("/proc/1/cmdline"));
    }
}
