//! PWR, second part: frequencies, links, heat, and who else turns these knobs.

use super::*;

const CPU: &str = "/sys/devices/system/cpu";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("power.json"),
    evaluators: &[
        ("PWR-007", driver),
        ("PWR-008", |f| {
            per_cpu(f, "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor", Fail, |text| {
                text == "performance"
            })
        }),
        ("PWR-009", fixed_frequency),
        ("PWR-010", preference),
        ("PWR-011", turbo),
        ("PWR-012", uncore),
        ("PWR-013", aspm),
        ("PWR-014", |f| {
            per_nic(f, |f, nic| {
                file(f, &format!("/sys/class/net/{nic}/device/power/control"), Warn, |text| {
                    text == "on"
                })
            })
        }),
        ("PWR-015", owners),
        ("PWR-016", heat),
    ],
};

fn driver(f: &Facts<'_>) -> Answer {
    let drivers = cpu_values(f, &format!("{CPU}/cpu{{}}/cpufreq/scaling_driver"))?;
    if drivers.is_empty() {
        f.cpus(&format!("{CPU}/online"))?;
        return judge(Set, false, Warn, "no driver sets frequencies: the firmware does");
    }
    let names: Vec<&String> = drivers.keys().collect();
    let mode = f
        .optional(&format!("{CPU}/intel_pstate/status"))?
        .or(f.optional(&format!("{CPU}/amd_pstate/status"))?);
    let said = format!("driver {}, {}", few(&names), mode.as_deref().unwrap_or("no mode"));
    judge(Set, drivers.len() == 1, Warn, said)
}

fn fixed_frequency(f: &Facts<'_>) -> Answer {
    let lowest = cpu_values(f, &format!("{CPU}/cpu{{}}/cpufreq/scaling_min_freq"))?;
    let highest = cpu_values(f, &format!("{CPU}/cpu{{}}/cpufreq/scaling_max_freq"))?;
    if lowest.is_empty() {
        return not_applicable("no driver sets frequencies");
    }
    let mut moving = Vec::new();
    for (low, cpus) in &lowest {
        for (high, others) in &highest {
            let both = cpus.intersection(others);
            if low != high && !both.is_empty() {
                moving.push(format!("{}: {low} to {high} kHz", both.named()));
            }
        }
    }
    none_of(Set, &moving, Warn, "lowest and highest frequency are the same")
}

fn preference(f: &Facts<'_>) -> Answer {
    let wanted = cpu_values(f, &format!("{CPU}/cpu{{}}/cpufreq/energy_performance_preference"))?;
    let bias = cpu_values(f, &format!("{CPU}/cpu{{}}/power/energy_perf_bias"))?;
    if wanted.is_empty() && bias.is_empty() {
        return not_applicable("the CPUs have neither preference nor bias");
    }
    let mut bad = Vec::new();
    // 0 is the number behind performance.
    bad.extend(
        wanted
            .iter()
            .filter(|(text, _)| !matches!(text.as_str(), "performance" | "0"))
            .map(|(text, cpus)| format!("preference of {} is {text}", cpus.named())),
    );
    bad.extend(
        bias.iter()
            .filter(|(text, _)| *text != "0")
            .map(|(text, cpus)| format!("bias of {} is {text}", cpus.named())),
    );
    none_of(Set, &bad, Warn, "performance")
}

fn turbo(f: &Facts<'_>) -> Answer {
    let on = match f.optional(&format!("{CPU}/intel_pstate/no_turbo"))? {
        Some(text) => Some(text == "0"),
        None => f.optional(&format!("{CPU}/cpufreq/boost"))?.map(|text| text == "1"),
    };
    match on {
        None => not_applicable("neither no_turbo nor boost: the firmware decides"),
        Some(on) => judge(Set, !on, Warn, if on { "turbo is on" } else { "turbo is off" }),
    }
}

fn uncore(f: &Facts<'_>) -> Answer {
    let folder = format!("{CPU}/intel_uncore_frequency");
    let lowest = f.glob(&format!("{folder}/*/min_freq_khz"))?;
    if lowest.is_empty() {
        return not_applicable("the kernel does not show this frequency (intel_uncore_frequency)");
    }
    let mut moving = Vec::new();
    for (path, low) in &lowest {
        let high = f.text(&path.replace("min_freq", "max_freq"))?;
        if *low != high {
            moving.push(format!("{low} to {high} kHz"));
        }
    }
    none_of(Set, &moving, Warn, "fixed")
}

fn aspm(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("pcie_aspm") == Some("off") {
        return ok(Asked, "pcie_aspm=off: links are as the firmware set them");
    }
    file(f, "/sys/module/pcie_aspm/parameters/policy", Warn, |text| chosen(text) == "performance")
}

fn owners(f: &Facts<'_>) -> Answer {
    let names = ["thermald", "tlp", "power-profiles-daemon", "tuned", "cpupower", "intel_lpmd"];
    let running = f.running(&names)?;
    let profile = f.optional("/sys/firmware/acpi/platform_profile")?;
    let wrong = profile.as_deref().is_some_and(|name| name != "performance");
    let mut said = match running.len() {
        0 => "none of them runs".to_owned(),
        1 => format!("{} runs", running[0]),
        _ => format!("run side by side: {}", running.join(", ")),
    };
    if let Some(name) = profile {
        said += &format!("; platform profile {name}");
    }
    judge(Seen, running.len() < 2 && !wrong, Warn, said)
}

fn heat(f: &Facts<'_>) -> Answer {
    let online = f.cpus(&format!("{CPU}/online"))?;
    if f.glob(&format!("{CPU}/cpu#/thermal_throttle/core_throttle_count"))?.is_empty() {
        return not_applicable("the CPUs do not count it");
    }
    let mut total = 0;
    for cpu in online.iter() {
        total +=
            f.number_growth(&format!("{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count"))?;
    }
    let finding = Finding::new(
        if total == 0 { CheckStatus::Ok } else { Fail },
        Seen,
        format!("throttled {total} times while watched"),
    );
    Ok(finding)
}
