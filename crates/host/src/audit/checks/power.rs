//! PWR, second part: frequencies, links, heat, and who else turns these knobs.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, Finding, judge, not_applicable};
use super::super::ask::{chosen, cpu_values, few, file, per_cpu, per_nic};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;

const CPU: &str = "/sys/devices/system/cpu";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "PWR-007",
        title: "The frequency driver is known",
        importance: Importance::Low,
        why: "intel_pstate and amd_pstate in active mode let the hardware choose; intel_pstate=disable falls back to acpi-cpufreq or to nothing.",
        read_from: &[
            "/sys/devices/system/cpu/cpu#/cpufreq/scaling_driver",
            "/sys/devices/system/cpu/intel_pstate/status",
        ],
        wanted: "a driver with the governor performance (PWR-008)",
        set_boot: "intel_pstate=active or amd_pstate=active",
        undo: "put the old word back",
        source: "Documentation/admin-guide/pm/intel_pstate.rst",
        needs: &[Need::Metal],
        evaluate: driver,
        ..Check::BLANK
    },
    Check {
        id: "PWR-008",
        title: "CPUs run at full frequency",
        importance: Importance::High,
        why: "A governor that saves power lets a CPU wake slow, and needs milliseconds to find out that it is busy.",
        read_from: &["/sys/devices/system/cpu/cpu#/cpufreq/scaling_governor"],
        wanted: "performance",
        cost: "power and heat",
        set_now: "cpupower frequency-set -g performance",
        undo: "cpupower frequency-set -g with the old governor",
        source: "reflector study, section 4; tuned latency-performance",
        evaluate: |f| {
            per_cpu(
                f,
                "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor",
                CheckStatus::Fail,
                |text| text == "performance",
            )
        },
        ..Check::BLANK
    },
    Check {
        id: "PWR-009",
        title: "Frequencies do not change",
        importance: Importance::Medium,
        why: "A change of frequency stops the core for 10 µs and more; between the lowest and the highest lies a factor of three.",
        read_from: &[
            "/sys/devices/system/cpu/cpu#/cpufreq/scaling_min_freq",
            "/sys/devices/system/cpu/cpu#/cpufreq/scaling_max_freq",
        ],
        wanted: "lowest and highest allowed frequency are the same",
        cost: "power and heat",
        set_now: "cpupower -c {iso} frequency-set -d F -u F",
        undo: "cpupower with the old limits",
        source: "OpenShift's node tuning operator; AWS trading benchmark",
        needs: &[Need::Isolated],
        evaluate: fixed_frequency,
        ..Check::BLANK
    },
    Check {
        id: "PWR-010",
        title: "The hardware prefers performance",
        importance: Importance::Medium,
        why: "Beside the governor the CPU has its own preference between power and performance.",
        read_from: &[
            "/sys/devices/system/cpu/cpu#/cpufreq/energy_performance_preference",
            "/sys/devices/system/cpu/cpu#/power/energy_perf_bias",
        ],
        wanted: "performance, and a bias of 0",
        cost: "power and heat",
        set_now: "cpupower set -b 0; echo performance > energy_performance_preference of each CPU",
        undo: "write the old values",
        source: "tuned latency-performance; intel_epb.rst",
        evaluate: preference,
        ..Check::BLANK
    },
    Check {
        id: "PWR-011",
        title: "Turbo is chosen on purpose",
        importance: Importance::Low,
        why: "On gives the best median, off the least jitter: turbo depends on the load of the other cores.",
        read_from: &[
            "/sys/devices/system/cpu/intel_pstate/no_turbo",
            "/sys/devices/system/cpu/cpufreq/boost",
        ],
        wanted: "off for the least jitter; measure both",
        cost: "a third of the speed",
        set_now: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo (AMD: echo 0 > .../cpufreq/boost)",
        undo: "write the old value",
        source: "cpu-isolation.rst; AWS trading benchmark",
        needs: &[Need::Metal],
        evaluate: turbo,
        ..Check::BLANK
    },
    Check {
        id: "PWR-012",
        title: "The mesh and last-level cache keep their frequency",
        importance: Importance::Medium,
        why: "The uncore (what is between the cores) has a separate frequency. When it falls, each miss of the second-level cache takes longer.",
        read_from: &[
            "/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz",
            "/sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz",
        ],
        wanted: "lowest and highest are the same",
        cost: "power and heat",
        set_now: "write max_freq_khz to min_freq_khz in each folder",
        undo: "write the old value",
        source: "tuned's uncore plugin; PerfSpect",
        needs: &[Need::Metal],
        evaluate: uncore,
        ..Check::BLANK
    },
    Check {
        id: "PWR-013",
        title: "PCI Express links stay awake",
        importance: Importance::Medium,
        why: "A link that sleeps needs microseconds to wake, at the first packet after each pause.",
        read_from: &["/sys/module/pcie_aspm/parameters/policy", "/proc/cmdline"],
        wanted: "performance, or pcie_aspm=off where the firmware left it off",
        cost: "power",
        set_now: "echo performance > /sys/module/pcie_aspm/parameters/policy",
        set_boot: "pcie_aspm.policy=performance",
        undo: "echo default > the same file",
        source: "NFV host guide (there mistyped pcie_asmp); kernel-parameters.txt",
        needs: &[Need::Metal],
        evaluate: aspm,
        ..Check::BLANK
    },
    Check {
        id: "PWR-014",
        title: "No runtime suspend of the interface",
        importance: Importance::Low,
        why: "With auto the kernel may suspend a device that has no link or nothing to do.",
        read_from: &["/sys/class/net/*/device/power/control"],
        wanted: "on",
        set_now: "echo on > /sys/class/net/{nic}/device/power/control",
        undo: "echo auto > the same file",
        source: "Documentation/power/runtime_pm.rst",
        needs: &[Need::Nic],
        evaluate: |f| {
            per_nic(f, |f, nic| {
                file(
                    f,
                    &format!("/sys/class/net/{nic}/device/power/control"),
                    CheckStatus::Warn,
                    |text| text == "on",
                )
            })
        },
        ..Check::BLANK
    },
    Check {
        id: "PWR-015",
        title: "Only one program sets power management",
        importance: Importance::Medium,
        why: "thermald, tlp, power-profiles-daemon and tuned undo each other's settings, hours later.",
        read_from: &["/proc/#/task/#/stat", "/sys/firmware/acpi/platform_profile"],
        wanted: "at most one of them runs; the platform's profile is performance",
        set_now: "systemctl disable --now SERVICE; echo performance > /sys/firmware/acpi/platform_profile",
        undo: "systemctl enable --now SERVICE",
        source: "tuned latency-performance",
        evaluate: owners,
        ..Check::BLANK
    },
    Check {
        id: "PWR-016",
        title: "No thermal throttling",
        importance: Importance::High,
        why: "A CPU that is too hot reduces its speed until it has cooled down.",
        read_from: &["/sys/devices/system/cpu/cpu#/thermal_throttle/core_throttle_count"],
        wanted: "the count does not grow while watched",
        set_now: "cooling; less power on the other cores",
        undo: "",
        source: "Documentation/admin-guide/thermal",
        needs: &[Need::Metal],
        evaluate: heat,
        ..Check::BLANK
    },
];

fn driver(f: &Facts<'_>) -> Answer {
    let drivers = cpu_values(f, &format!("{CPU}/cpu{{}}/cpufreq/scaling_driver"))?;
    if drivers.is_empty() {
        f.cpus(&format!("{CPU}/online"))?;
        return judge(
            EvidenceLevel::Set,
            false,
            CheckStatus::Warn,
            "no driver sets frequencies: the firmware does",
        );
    }
    let names: Vec<&String> = drivers.keys().collect();
    let mode = f
        .optional(&format!("{CPU}/intel_pstate/status"))?
        .or(f.optional(&format!("{CPU}/amd_pstate/status"))?);
    let said = format!("driver {}, {}", few(&names), mode.as_deref().unwrap_or("no mode"));
    judge(EvidenceLevel::Set, drivers.len() == 1, CheckStatus::Warn, said)
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
                moving.push(format!("CPUs {both}: {low} to {high} kHz"));
            }
        }
    }
    let said = if moving.is_empty() {
        "lowest and highest frequency are the same".to_owned()
    } else {
        few(&moving)
    };
    judge(EvidenceLevel::Set, moving.is_empty(), CheckStatus::Warn, said)
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
            .map(|(text, cpus)| format!("preference of CPUs {cpus} is {text}")),
    );
    bad.extend(
        bias.iter()
            .filter(|(text, _)| *text != "0")
            .map(|(text, cpus)| format!("bias of CPUs {cpus} is {text}")),
    );
    let said = if bad.is_empty() { "performance".to_owned() } else { few(&bad) };
    judge(EvidenceLevel::Set, bad.is_empty(), CheckStatus::Warn, said)
}

fn turbo(f: &Facts<'_>) -> Answer {
    let on = match f.optional(&format!("{CPU}/intel_pstate/no_turbo"))? {
        Some(text) => Some(text == "0"),
        None => f.optional(&format!("{CPU}/cpufreq/boost"))?.map(|text| text == "1"),
    };
    match on {
        None => not_applicable("neither no_turbo nor boost: the firmware decides"),
        Some(on) => judge(
            EvidenceLevel::Set,
            !on,
            CheckStatus::Warn,
            if on { "turbo is on" } else { "turbo is off" },
        ),
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
    let said = if moving.is_empty() { "fixed".to_owned() } else { few(&moving) };
    judge(EvidenceLevel::Set, moving.is_empty(), CheckStatus::Warn, said)
}

fn aspm(f: &Facts<'_>) -> Answer {
    if f.boot()?.last("pcie_aspm") == Some("off") {
        return judge(
            EvidenceLevel::Asked,
            true,
            CheckStatus::Warn,
            "pcie_aspm=off: links are as the firmware set them",
        );
    }
    file(f, "/sys/module/pcie_aspm/parameters/policy", CheckStatus::Warn, |text| {
        chosen(text) == "performance"
    })
}

fn owners(f: &Facts<'_>) -> Answer {
    let mut running = Vec::new();
    for name in ["thermald", "tlp", "power-profiles-daemon", "tuned", "cpupower", "intel_lpmd"] {
        if f.runs(name)? {
            running.push(name);
        }
    }
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
    judge(EvidenceLevel::Seen, running.len() < 2 && !wrong, CheckStatus::Warn, said)
}

fn heat(f: &Facts<'_>) -> Answer {
    let online = f.cpus(&format!("{CPU}/online"))?;
    if f.glob(&format!("{CPU}/cpu#/thermal_throttle/core_throttle_count"))?.is_empty() {
        return not_applicable("the CPUs do not count it");
    }
    let mut total = 0;
    for cpu in online.iter() {
        total += f.growth(&format!("{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count"))?;
    }
    let finding = Finding::new(
        if total == 0 { CheckStatus::Ok } else { CheckStatus::Fail },
        EvidenceLevel::Seen,
        format!("throttled {total} times while watched"),
    );
    Ok(finding)
}
