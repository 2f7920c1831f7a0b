//! Watchdogs, machine checks, clock source, links, KVM and services.

use super::{CPUS, HostContext, Steps, some};
use crate::change::Step;
use crate::form::Form;
use crate::place::Place;

pub(crate) fn watchdog_cpus(context: &HostContext<'_>) -> Steps {
    let path = "/proc/sys/kernel/watchdog_cpumask".to_owned();
    let step = context.within(path, Form::List, context.housekeeping()?);
    some(step.into_iter().collect(), "/proc/sys/kernel/watchdog_cpumask is not there")
}

pub(crate) fn fair_server(context: &HostContext<'_>) -> Steps {
    context.housekeeping()?;
    let of = |cpu: u32| {
        let path = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
        Some(context.file(path, Form::Number, "0")?.optional())
    };
    let steps = context.division.isolated.iter().filter_map(of).collect();
    some(steps, "no fair_server in debugfs: a kernel before 6.12, or debugfs is not mounted")
}

/// The value says which file, and what goes into it.
pub(crate) fn machine_checks(context: &HostContext<'_>) -> Steps {
    let folder = "/sys/devices/system/machinecheck";
    let (file, value) = context.value.split_once('=').unwrap_or((context.value, "1"));
    let of = |name: &String| context.file(format!("{folder}/{name}/{file}"), Form::Number, value);
    let names = context.names(folder);
    let steps: Vec<Step> =
        names.iter().filter(|name| name.starts_with("machinecheck")).filter_map(of).collect();
    some(steps, "no machine checks in sysfs: a virtual machine, or mce=off")
}

pub(crate) fn clock_source(context: &HostContext<'_>) -> Steps {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let current = context.text(&format!("{folder}/current_clocksource")).unwrap_or_default();
    let known = context.text(&format!("{folder}/available_clocksource")).unwrap_or_default();
    if matches!(current.as_str(), "kvm-clock" | "hyperv_clocksource_tsc_page") {
        return Err(format!(
            "{current} is read from memory as well: a good source in a virtual machine"
        ));
    }
    if !known.split_whitespace().any(|name| name == context.value) {
        return Err(format!("this kernel does not offer {} (offered: {known})", context.value));
    }
    let step = context.file(format!("{folder}/current_clocksource"), Form::Text, context.value);
    some(step.into_iter().collect(), "no clock source in sysfs")
}

pub(crate) fn aspm(context: &HostContext<'_>) -> Steps {
    let step = context.file("/sys/module/pcie_aspm/parameters/policy", Form::Choice, context.value);
    some(step.map(Step::optional).into_iter().collect(), "this kernel has no ASPM policy")
}

pub(crate) fn kvm_modules(context: &HostContext<'_>) -> Steps {
    let intel = context.host.list("/sys/module/kvm_intel").is_ok();
    if !intel && context.host.list("/sys/module/kvm_amd").is_err() {
        return Err("KVM is not loaded".to_owned());
    }
    if !context.names("/etc").iter().any(|name| name == "modprobe.d") {
        return Err("/etc/modprobe.d is not there".to_owned());
    }
    let mut content =
        "# Written by tailtrim-agent tune; `tailtrim-agent tune revert` removes it.\n\
                       options kvm kvmclock_periodic_sync=N\n"
            .to_owned();
    if intel {
        content += "options kvm_intel ple_gap=0\n";
    }
    Ok(context.drop_in("/etc/modprobe.d", "tailtrim-kvm.conf", content))
}

/// Timers and services of distributions that load the machine now and then.
pub(crate) const PERIODIC: [&str; 14] = [
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "unattended-upgrades.service",
    "dnf-makecache.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "fwupd-refresh.timer",
    "logrotate.timer",
    "man-db.timer",
    "plocate-updatedb.timer",
    "sysstat-collect.timer",
    "cron.service",
    "crond.service",
];

pub(crate) fn periodic(context: &HostContext<'_>) -> Steps {
    let mut steps = Vec::new();
    for name in PERIODIC {
        let place = Place::Service { name: name.to_owned() };
        match context.host.place(&place) {
            Ok(Some(old)) if old.shown() == "active" => {
                steps.push(Step::new(place, Form::Text, Some(old), "inactive"));
            }
            Ok(_) => {}
            Err(why) => return Err(why.to_string()),
        }
    }
    some(steps, "none of the known services runs")
}

/// Whether a line of `/proc/cpuinfo` has a word.
pub(crate) fn cpu_has(context: &HostContext<'_>, line: &str, word: &str) -> bool {
    let info = context.text("/proc/cpuinfo").unwrap_or_default();
    info.lines()
        .filter(|text| text.starts_with(line))
        .take(1)
        .any(|text| text.split([' ', '\t', ':']).any(|known| known == word))
}

/// Whether the firmware or the boot line took control of `sysfs` file away.
pub(crate) fn smt_known(context: &HostContext<'_>) -> bool {
    matches!(
        context.text(&format!("{CPUS}/smt/control")).as_deref(),
        Some("on" | "off" | "forceoff")
    )
}
