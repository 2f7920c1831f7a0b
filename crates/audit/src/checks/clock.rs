//! CLK: clocks and what keeps them right.

use super::*;
use std::collections::BTreeSet;
use tailtrim_host::paths::CONFIG;

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("clock.json"),
    evaluators: &[
        ("CLK-001", source),
        ("CLK-002", invariant),
        ("CLK-003", watchdog),
        ("CLK-004", skew),
        ("CLK-005", tick_rate),
        ("CLK-006", keepers),
    ],
};

fn source(f: &Facts<'_>) -> Answer {
    let name = f.text(CURRENT)?;
    let virtual_clock =
        matches!(name.as_str(), "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen");
    let arm = name == "arch_sys_counter";
    let good = name == "tsc" || arm || virtual_clock && f.is_guest()?;
    judge(Set, good, Fail, format!("clock source {name}"))
}

fn invariant(f: &Facts<'_>) -> Answer {
    if f.cpuinfo_field("vendor_id")?.is_none() {
        return not_applicable("no x86 CPU");
    }
    let mut missing = Vec::new();
    for flag in ["constant_tsc", "nonstop_tsc"] {
        if !f.has_flag(flag)? {
            missing.push(flag);
        }
    }
    let said = if missing.is_empty() {
        "constant_tsc nonstop_tsc".to_owned()
    } else {
        format!("the CPU lacks {}", missing.join(", "))
    };
    judge(Set, missing.is_empty(), Warn, said)
}

fn watchdog(f: &Facts<'_>) -> Answer {
    if f.text(CURRENT)? != "tsc" {
        return not_applicable("the clock source is another one (CLK-001)");
    }
    let line = f.boot()?;
    let words: Vec<&str> = line.all("tsc").filter_map(|word| word.value.as_deref()).collect();
    if words.contains(&"reliable") {
        return ok(Asked, "tsc=reliable");
    }
    let adjust = f.has_flag("tsc_adjust")?;
    let off = words.contains(&"nowatchdog");
    let (good, said) = match (off, if off { Some(true) } else { left_out(f, adjust)? }) {
        (true, _) if adjust => {
            (false, "tsc=nowatchdog: a timer still reads TSC_ADJUST on the next CPU every 10 min")
        }
        (true, _) => (true, "tsc=nowatchdog, and the CPU has no TSC_ADJUST to look at"),
        (_, Some(true)) => (
            false,
            "this kernel's watchdog leaves the counter out (tsc_adjust); a timer reads TSC_ADJUST on the next CPU \
             every 10 min",
        ),
        (_, Some(false)) => {
            (false, "a watchdog compares the counter with another clock twice a second")
        }
        (_, None) => (
            false,
            "whether the watchdog leaves the counter out depends on the patch level of this kernel",
        ),
    };
    judge(Asked, good, Warn, said)
}

/// Whether the clock source watchdog leaves the TSC out without being asked to, as `check_system_tsc_reliable()`
/// (arch/x86/kernel/tsc.c) decides; `None` where that is not known.
fn left_out(f: &Facts<'_>, adjust: bool) -> Result<Option<bool>, Unread> {
    let asked = f.boot()?.all("tsc").any(|word| word.value.as_deref() == Some("watchdog"));
    let kernel = f.kernel()?;
    let invariant = adjust && f.has_flag("constant_tsc")? && f.has_flag("nonstop_tsc")?;
    // In 6.12 this word makes the TSC the watchdog of others; in 7.2 it puts the TSC under one.
    if !invariant || asked && kernel >= KernelVersion::new(7, 2) {
        return Ok(Some(false));
    }
    if asked && kernel > KernelVersion::new(6, 12) {
        return Ok(None);
    }
    if kernel < KernelVersion::new(5, 17) {
        // Stable kernels from 5.10 on got it later; older ones did not.
        return Ok((kernel < KernelVersion::new(5, 10)).then_some(false));
    }
    let nodes = f.glob("/sys/devices/system/node/node#/cpulist")?.len();
    let ids = f.glob("/sys/devices/system/cpu/cpu#/topology/physical_package_id")?;
    let packages: BTreeSet<String> = ids.into_iter().map(|(_, id)| id).collect();
    // 6.1 counts nodes up to 2, 6.12 packages up to 4; where both agree it does not matter which of them it is.
    Ok(match (nodes <= 2, packages.len() <= 4) {
        (true, true) => Some(true),
        (false, true) if kernel >= KernelVersion::new(6, 12) => Some(true),
        (false, _) if kernel <= KernelVersion::new(6, 1) => Some(false),
        (_, false) if kernel >= KernelVersion::new(6, 12) => Some(false),
        _ => None,
    })
}

fn skew(f: &Facts<'_>) -> Answer {
    let line = f.boot()?;
    let good = line.last("skew_tick") == Some("1");
    judge(Asked, good, Warn, if good { "skew_tick=1" } else { "ticks come at the same instant" })
}

fn tick_rate(f: &Facts<'_>) -> Answer {
    let config = f.text(CONFIG)?;
    let rate = config
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_HZ="))
        .and_then(|text| text.parse::<u32>().ok());
    let Some(rate) = rate else {
        return not_applicable("the configuration does not tell CONFIG_HZ");
    };
    let tickless = match f.optional("/sys/devices/system/cpu/nohz_full")? {
        Some(_) => f.cpus("/sys/devices/system/cpu/nohz_full")?,
        None => Cpus::none(),
    };
    let good = rate <= 250 || !f.iso().is_empty() && f.iso().is_subset(&tickless);
    judge(Set, good, Warn, format!("CONFIG_HZ is {rate}"))
}

fn keepers(f: &Facts<'_>) -> Answer {
    let names = ["chronyd", "ntpd", "ptp4l", "phc2sys", "systemd-timesyn", "openntpd", "ts2phc"];
    let found: Vec<_> =
        f.tasks()?.iter().filter(|task| names.contains(&task.name.as_str())).collect();
    if found.is_empty() {
        return ok(Seen, "no time keeper runs");
    }
    let there = found.iter().filter(|task| f.touches(&task.allowed));
    let there: Vec<String> =
        there.map(|task| format!("{} may use {}", task.name, task.allowed)).collect();
    none_of(Set, &there, Warn, format!("{} of them, elsewhere", found.len()))
}
