//! What a kernel takes a word for.

use super::nearest::nearest;
use super::table::{How, Parameter, TABLE, Value, key};
use crate::KernelVersion;
use crate::Word;

/// What a word is to the kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sort {
    /// A parameter.
    Known(&'static Parameter),
    /// Taken for another parameter, whose name it begins with. Behind it, the name that was meant.
    Swallowed(&'static Parameter, Option<&'static str>),
    /// A parameter of kernels with this patch; what to use instead.
    Foreign(&'static Foreign),
    /// For init, for the programs of the initial file system, or for a module.
    UserSpace,
    /// Nearly a parameter.
    Near(&'static str),
    /// A variable of `sysctl`, without the word that makes it a boot parameter.
    Sysctl(String),
    /// A variable of `sysctl` that is nearly one known.
    NearSysctl(&'static str),
    /// The name of an option that a kernel is built with.
    BuildOption,
    /// A list or flag whose dash or quotation marks came out of a text processor.
    Typographic(String),
    /// Nothing known.
    Unknown,
}

/// A parameter that mainline does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    name: &'static str,
    /// Where it comes from.
    pub(super) home: &'static str,
    /// What does its work in mainline.
    pub(super) instead: &'static str,
    /// The word for that, where there is one.
    pub(super) right: Option<&'static str>,
}

const FOREIGN: [Foreign; 4] = [
    Foreign {
        name: "kthread_cpus",
        home: "real-time kernels of Ubuntu and Wind River",
        instead: "nohz_full= keeps kernel threads off its CPUs",
        right: Some("nohz_full"),
    },
    Foreign {
        name: "noibrs",
        home: "old kernels of Red Hat",
        instead: "spectre_v2= chooses the mitigation",
        right: Some("spectre_v2"),
    },
    Foreign {
        name: "noibpb",
        home: "old kernels of Red Hat",
        instead: "spectre_v2_user= chooses the mitigation",
        right: Some("spectre_v2_user"),
    },
    Foreign {
        name: "cgroup_enable",
        home: "kernels of Debian and of the Raspberry Pi",
        instead: "mainline enables every controller that is built in",
        right: None,
    },
];

/// Words that programs in user space look for in `/proc/cmdline`, or that init takes as arguments.
const USER_SPACE: &[&str] = &[
    "single",
    "s",
    "S",
    "1",
    "2",
    "3",
    "4",
    "5",
    "emergency",
    "rescue",
    "auto",
    "splash",
    "nosplash",
    "rhgb",
    "fastboot",
    "forcefsck",
    "fsckfix",
    "kexec",
    "BOOT_IMAGE",
    "BOOTIF",
    "boot",
    "live",
    "toram",
    "persistence",
    "components",
    "nopersistence",
    "noeject",
    "noprompt",
    "ostree",
    "rootovl",
    "biosdevname",
    "autorelabel",
    "cryptdevice",
    "cryptopts",
    "overlayroot",
    "ds",
    "cloud-config-url",
    "url",
    "preseed",
    "priority",
    "locale",
    "keymap",
    "interface",
    "domain",
    "hostname",
    "text",
    "inst",
    "ks",
    "repo",
    "noautologin",
    "vyos-union",
    "union",
    "fetch",
    "username",
    "initrd",
    "zfs",
    "rootfs",
    "break",
    "nopersistent",
    "panic_on_io_nmi",
    "unified_cgroup_hierarchy",
    "nfsopts",
    "netboot",
    "archisobasedir",
    "archisolabel",
    "verbose",
];

/// Beginnings of words for user space.
const USER_SPACE_BEGINNINGS: &[&str] = &[
    "-",
    "LC_",
    "DEBCONF_",
    "live-",
    "debian-installer/",
    "netcfg/",
    "rd_",
    "luks_",
    "zfs_",
    "bcache_",
];

/// Words for user space that are written in capitals, as variables of its environment are.
const ENVIRONMENT: &[&str] =
    &["LANG", "LANGUAGE", "TERM", "PATH", "HOME", "KEYTABLE", "SYSFONT", "KEYMAP", "FONT", "TZ"];

/// Variables of `sysctl` that a latency guide names.
const SYSCTLS: &[&str] = &[
    "kernel.nmi_watchdog",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.panic",
    "kernel.sched_min_granularity_ns",
    "kernel.sched_rt_runtime_us",
    "kernel.sched_schedstats",
    "kernel.printk",
    "kernel.soft_watchdog",
    "kernel.split_lock_mitigate",
    "kernel.timer_migration",
    "kernel.watchdog",
    "kernel.watchdog_cpumask",
    "kernel.watchdog_thresh",
    "kernel.hung_task_timeout_secs",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.rps_default_mask",
    "net.core.rps_sock_flow_entries",
    "net.core.wmem_max",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_rmem",
    "vm.compaction_proactiveness",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.dirty_writeback_centisecs",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.stat_interval",
    "vm.swappiness",
    "vm.watermark_boost_factor",
    "vm.zone_reclaim_mode",
];

/// Judge a word.
pub(super) fn sort(word: &Word, kernel: Option<KernelVersion>) -> Sort {
    let name = word.name.as_str();
    if let Some(parameter) = TABLE.find(name, kernel) {
        return Sort::Known(parameter);
    }
    if let Some(plain) = plain(&word.text()) {
        return Sort::Typographic(plain);
    }
    if let Some(foreign) = FOREIGN.iter().find(|foreign| key(name) == foreign.name) {
        return Sort::Foreign(foreign);
    }
    if let Some(flag) = TABLE.swallows(name, kernel) {
        return Sort::Swallowed(flag, meant(name).filter(|meant| *meant != flag.name));
    }
    if let Some(dot) = name.find('.') {
        return dotted(name, &name[..dot]);
    }
    if user_space(name) {
        return Sort::UserSpace;
    }
    if name.starts_with("CONFIG_") {
        return Sort::BuildOption;
    }
    meant(name).map_or(Sort::Unknown, Sort::Near)
}

/// Words that are believed to be parameters, and are near to others than those that are meant.
const BELIEVED: [(&str, &str); 2] = [("noht", "nosmt"), ("nohyperthreading", "nosmt")];

/// Names known in depth are meant rather than others as near.
fn meant(name: &str) -> Option<&'static str> {
    if let Some((_, meant)) = BELIEVED.iter().find(|(believed, _)| key(name) == *believed) {
        return Some(meant);
    }
    // Of other architectures and old drivers, short names are near to anything.
    let likely = |parameter: &&Parameter| match parameter.how {
        How::Documented => name.len() > 5,
        how => how != How::Elsewhere,
    };
    let names = TABLE.all().iter().filter(likely).map(|parameter| parameter.name);
    nearest(name, names)
}

fn dotted(name: &str, first: &str) -> Sort {
    let variable = name.strip_prefix("sysctl.").unwrap_or(name);
    let with_dots = variable.replace('/', ".");
    let is_sysctl = matches!(
        with_dots.split('.').next(),
        Some("kernel" | "vm" | "net" | "fs" | "dev" | "user")
    );
    if is_sysctl && !name.starts_with("net.ifnames") && !name.starts_with("net.naming") {
        return match nearest(&with_dots, SYSCTLS.iter().copied()) {
            Some(near) if near != with_dots => Sort::NearSysctl(near),
            _ if variable.len() == name.len() => Sort::Sysctl(format!("sysctl.{name}")),
            _ => Sort::UserSpace,
        };
    }
    match first {
        // The rest of the name is a path, a host, or whatever the program makes of it.
        "systemd" | "rd" | "luks" | "udev" | "plymouth" | "inst" | "vconsole" | "locale"
        | "fsck" => Sort::UserSpace,
        _ => meant(name).or_else(|| of_another_module(name)).map_or(Sort::UserSpace, Sort::Near),
    }
}

/// `processor_idle.max_cstate`: the parameter of a module whose name begins like this one.
fn of_another_module(name: &str) -> Option<&'static str> {
    let (module, parameter) = name.split_once('.')?;
    let related = |known: &str| known.starts_with(module) || module.starts_with(known);
    let mut deep = TABLE.all().iter().filter(|known| known.value != Value::Unknown);
    let found = deep.find(|known| {
        let parts = known.name.split_once('.');
        parts.is_some_and(|(other, same)| key(same) == key(parameter) && related(other))
    });
    found.map(|known| known.name)
}

fn user_space(name: &str) -> bool {
    USER_SPACE.contains(&name)
        || ENVIRONMENT.contains(&name)
        || USER_SPACE_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The word with the signs of the keyboard; `None` where it has no others.
fn plain(text: &str) -> Option<String> {
    let dash = |sign: char| matches!(sign, '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ad}');
    let quote = |sign: char| matches!(sign, '\u{201c}'..='\u{201f}');
    let space = |sign: char| matches!(sign, '\u{a0}' | '\u{200b}' | '\u{feff}' | '\u{202f}');
    text.chars().any(|sign| dash(sign) || quote(sign) || space(sign)).then(|| {
        let keyboard = |sign: char| if dash(sign) { '-' } else { sign };
        text.chars().filter(|sign| !quote(*sign) && !space(*sign)).map(keyboard).collect()
    })
}

/// As [`plain`], for the value of a word whose name is known.
pub(super) fn plain_value(word: &Word) -> Option<String> {
    plain(word.value.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BootLine;

    fn of(text: &str) -> Sort {
        sort(&BootLine::parse(text).words()[0], Some(KernelVersion::new(6, 1)))
    }

    #[test]
    fn what_words_are() {
        assert!(matches!(of("nohz-full=1"), Sort::Known(_)));
        assert_eq!(of("nosoftlookup"), Sort::Near("nosoftlockup"));
        assert_eq!(of("intel_idle.max_cstat=0"), Sort::Near("intel_idle.max_cstate"));
        assert!(
            matches!(of("rcu_nocbs_poll"), Sort::Swallowed(flag, Some("rcu_nocb_poll")) if flag.name == "rcu_nocbs")
        );
        assert!(matches!(of("kthread_cpus=0"), Sort::Foreign(_)));
        for legitimate in
            ["systemd.cpu_affinity=0", "splash", "BOOT_IMAGE=/vmlinuz", "mydriver.debug=1", "-b"]
        {
            assert_eq!(of(legitimate), Sort::UserSpace, "{legitimate}");
        }
        assert_eq!(of("vm.swappiness=1"), Sort::Sysctl("sysctl.vm.swappiness".to_owned()));
        assert_eq!(of("sysctl.net.core.bus_poll=50"), Sort::NearSysctl("net.core.busy_poll"));
        assert_eq!(of("sysctl.vm.swappiness=1"), Sort::UserSpace);
        assert_eq!(of("CONFIG_RCU_NOCB_FULL"), Sort::BuildOption);
        assert_eq!(of("frobnicate=1"), Sort::Unknown);
        assert_eq!(of("\u{2013}d"), Sort::Typographic("-d".to_owned()));
    }

    #[test]
    fn no_word_that_is_legitimate_is_also_a_parameter_of_another_name() {
        let twice: Vec<_> =
            USER_SPACE.iter().filter(|word| TABLE.swallows(word, None).is_some()).collect();
        assert_eq!(twice, Vec::<&&str>::new());
    }
}
