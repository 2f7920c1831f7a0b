//! Hosts that nobody has to own: their files, as kernels write them.

use tailtrim_host::Memory;

/// Files that every kernel has.
fn common(release: &str, cpus: u32, line: &str) -> Memory {
    let last = cpus - 1;
    let all = format!("{:x}\n", (1_u64 << cpus) - 1);
    let mut tree = Memory::new(true)
        .with("/proc/cmdline", format!("{line}\n"))
        .with("/proc/sys/kernel/osrelease", format!("{release}\n"))
        .with("/sys/devices/system/cpu/online", format!("0-{last}\n"))
        .with("/sys/devices/system/cpu/possible", format!("0-{last}\n"))
        .with("/sys/devices/system/cpu/isolated", "\n")
        .with("/proc/irq/default_smp_affinity", all.clone())
        .with("/sys/devices/virtual/workqueue/cpumask", all.clone())
        .with("/sys/devices/virtual/workqueue/writeback/cpumask", all)
        .with("/proc/sys/kernel/watchdog_cpumask", format!("0-{last}\n"))
        .with("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        .with(
            "/sys/kernel/mm/transparent_hugepage/defrag",
            "always defer defer+madvise [madvise] never\n",
        )
        .with("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", "1\n")
        .with("/sys/kernel/mm/ksm/run", "0\n")
        .with("/sys/kernel/rcu_normal", "0\n")
        .with(
            "/sys/devices/system/clocksource/clocksource0/available_clocksource",
            "tsc hpet acpi_pm \n",
        )
        .with("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    for (name, value) in [
        ("kernel/nmi_watchdog", "1"),
        ("kernel/soft_watchdog", "1"),
        ("kernel/hung_task_timeout_secs", "120"),
        ("kernel/sched_rt_runtime_us", "950000"),
        ("kernel/timer_migration", "1"),
        ("kernel/sched_autogroup_enabled", "1"),
        ("kernel/numa_balancing", "1"),
        ("vm/stat_interval", "1"),
        ("vm/compaction_proactiveness", "20"),
        ("vm/swappiness", "60"),
        ("net/core/busy_read", "0"),
        ("net/core/busy_poll", "0"),
        ("net/ipv4/tcp_fastopen", "1"),
    ] {
        tree.insert(&format!("/proc/sys/{name}"), format!("{value}\n"));
    }
    tree
}

fn topology(tree: &mut Memory, cores: u32, threads: u32, cores_of_cache: u32) {
    for cpu in 0..cores * threads {
        let place = format!("/sys/devices/system/cpu/cpu{cpu}");
        let siblings: Vec<String> =
            (0..threads).map(|thread| (cpu % cores + thread * cores).to_string()).collect();
        tree.insert(&format!("{place}/topology/thread_siblings_list"), siblings.join(",") + "\n");
        let first = cpu % cores / cores_of_cache * cores_of_cache;
        let shared: Vec<String> = (0..threads)
            .map(|t| format!("{}-{}", first + t * cores, first + cores_of_cache - 1 + t * cores))
            .collect();
        tree.insert(&format!("{place}/cache/index3/level"), "3\n");
        tree.insert(&format!("{place}/cache/index3/shared_cpu_list"), shared.join(",") + "\n");
    }
}

fn frequencies(tree: &mut Memory, cpus: u32) {
    for cpu in 0..cpus {
        let place = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
        for (name, value) in [
            ("scaling_governor", "powersave"),
            ("scaling_available_governors", "performance powersave"),
            ("scaling_min_freq", "800000"),
            ("scaling_max_freq", "3200000"),
            ("energy_performance_preference", "balance_performance"),
        ] {
            tree.insert(&format!("{place}/{name}"), format!("{value}\n"));
        }
    }
}

fn idle_states(tree: &mut Memory, cpus: u32, states: &[(&str, u32)]) {
    for cpu in 0..cpus {
        for (state, (name, latency)) in states.iter().enumerate() {
            let place = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
            tree.insert(&format!("{place}/name"), format!("{name}\n"));
            tree.insert(&format!("{place}/latency"), format!("{latency}\n"));
            tree.insert(&format!("{place}/disable"), "0\n");
        }
    }
}

const INTEL: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)\n\
                     flags\t\t: fpu constant_tsc nonstop_tsc cat_l3\n";
const AMD: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n\
                   flags\t\t: fpu constant_tsc nonstop_tsc\n";
const GUEST: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)\n\
                     flags\t\t: fpu constant_tsc nonstop_tsc hypervisor\n";

/// Four cores of two threads, one of the interfaces with virtual functions, resctrl mounted: Debian 12.
pub(crate) fn server() -> Memory {
    let mut tree =
        common("6.1.0-56-amd64", 8, "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet audit=0");
    topology(&mut tree, 4, 2, 4);
    frequencies(&mut tree, 8);
    idle_states(&mut tree, 8, &[("POLL", 0), ("C1", 2), ("C1E", 10), ("C6", 133)]);
    for (path, content) in [
        ("/proc/cpuinfo", INTEL),
        ("/boot/config-6.1.0-56-amd64", "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n"),
        ("/sys/devices/system/cpu/nohz_full", "(null)\n"),
        ("/sys/devices/system/cpu/smt/control", "on\n"),
        ("/sys/devices/system/node/node0/cpulist", "0-7\n"),
        ("/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "0\n"),
        (
            "/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/min_freq_khz",
            "800000\n",
        ),
        (
            "/sys/devices/system/cpu/intel_uncore_frequency/package_00_die_00/max_freq_khz",
            "2400000\n",
        ),
        ("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", "0\n"),
        ("/sys/devices/system/machinecheck/machinecheck0/check_interval", "300\n"),
        (
            "/sys/module/pcie_aspm/parameters/policy",
            "[default] performance powersave powersupersave \n",
        ),
        ("/sys/module/kvm/parameters/halt_poll_ns", "200000\n"),
        ("/sys/module/kvm_intel/parameters/ple_gap", "128\n"),
        ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory\n"),
        ("/sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
        ("/sys/fs/resctrl/schemata", "    MB:0=100\n    L3:0=7ff\n"),
        ("/sys/fs/resctrl/info/L3/cbm_mask", "7ff\n"),
        ("/sys/fs/resctrl/info/L3/shareable_bits", "600\n"),
        ("/sys/fs/resctrl/info/L3/min_cbm_bits", "1\n"),
        ("/sys/class/net/eth0/device/numa_node", "0\n"),
        ("/sys/class/net/eth1/device/numa_node", "0\n"),
        ("/sys/class/net/eth1/device/power/control", "auto\n"),
        ("/sys/class/net/eth1/device/msi_irqs/41", "msix\n"),
        ("/sys/class/net/eth1/queues/rx-0/rps_cpus", "00\n"),
        ("/sys/class/net/eth1/queues/tx-0/xps_cpus", "00\n"),
        ("/proc/irq/24/smp_affinity_list", "0-7\n"),
        ("/proc/irq/41/smp_affinity_list", "0-7\n"),
        ("/proc/irq/42/smp_affinity_list", "0\n"),
        ("/etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n"),
        ("/etc/systemd/system.conf", "[Manager]\n"),
        ("/etc/modprobe.d/fbdev.conf", "\n"),
        ("/usr/sbin/update-grub", "#!/bin/sh\n"),
        ("/proc/15/stat", "15 (rcu_preempt) I 2 0 0 0 -1 2097216 0 0 0 0 0 0 0 0 20 0 1 0 7 0\n"),
        ("/proc/15/status", "Name:\trcu_preempt\nCpus_allowed_list:\t0-7\n"),
        (
            "/proc/16/stat",
            "16 (migration/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 0 0 0 -100 0 1 0 7 0\n",
        ),
        ("/proc/16/status", "Name:\tmigration/0\nCpus_allowed_list:\t0\n"),
    ] {
        tree.insert(path, content);
    }
    tree.insert_link("/sys/class/net/eth1/device/virtfn0", "../0000:03:10.0");
    tree
}

/// Sixteen cores of one thread in caches of four: a chiplet server with a recent kernel.
pub(crate) fn amd_server() -> Memory {
    let mut tree =
        common("6.12.3-amd64", 16, "BOOT_IMAGE=/vmlinuz root=/dev/nvme0n1p2 ro isolcpus=1-3");
    topology(&mut tree, 16, 1, 4);
    frequencies(&mut tree, 16);
    idle_states(&mut tree, 16, &[("POLL", 0), ("C1", 1), ("C2", 18)]);
    tree.insert("/proc/cpuinfo", AMD);
    tree.insert("/boot/config-6.12.3-amd64", "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n");
    tree.insert("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    tree
}

/// Four virtual CPUs.
pub(crate) fn guest() -> Memory {
    let mut tree = common("6.1.0-56-amd64", 4, "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro");
    topology(&mut tree, 4, 1, 4);
    tree.insert("/proc/cpuinfo", GUEST);
    tree.insert("/boot/config-6.1.0-56-amd64", "CONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\n");
    tree.insert("/sys/devices/system/clocksource/clocksource0/current_clocksource", "kvm-clock\n");
    tree
}

/// Two cores, a kernel without tickless CPUs whose configuration nobody can read.
pub(crate) fn laptop() -> Memory {
    let mut tree = common("6.5.0-14-generic", 2, "BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet splash");
    topology(&mut tree, 2, 1, 2);
    frequencies(&mut tree, 2);
    idle_states(&mut tree, 2, &[("POLL", 0), ("C1", 2), ("C8", 200)]);
    tree.insert("/proc/cpuinfo", INTEL);
    tree
}
