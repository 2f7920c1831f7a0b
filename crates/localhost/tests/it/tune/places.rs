//! Places of the machine in memory.

use tailtrim_tune::Place;

/// A file that is read and written like this. Journals may name places of the catalogue only.
pub(crate) fn file(name: &str) -> Place {
    Place::file(match name {
        "number" => "/proc/sys/vm/stat_interval",
        "other" => "/proc/sys/vm/swappiness",
        "choice" => "/sys/kernel/mm/transparent_hugepage/enabled",
        "mask" => "/proc/irq/default_smp_affinity",
        "list" => "/proc/sys/kernel/watchdog_cpumask",
        "managed" => "/proc/irq/7/smp_affinity_list",
        "watchdog" => "/proc/sys/kernel/hung_task_timeout_secs",
        "soft_watchdog" => "/proc/sys/kernel/soft_watchdog",
        "nmi_watchdog" => "/proc/sys/kernel/nmi_watchdog",
        other => other,
    })
}

pub(crate) fn configs() -> [Place; 2] {
    ["/etc/default/grub.d/99-tailtrim.cfg", "/etc/systemd/system.conf.d/50-tailtrim.conf"]
        .map(|path| Place::Config { path: path.into() })
}
