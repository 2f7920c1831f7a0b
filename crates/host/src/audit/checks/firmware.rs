//! FW: what happens below the kernel.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::few;
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use super::super::paths::TIMERS;

const METAL: &[Need] = &[Need::Metal];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "FW-002",
        title: "No program polls the firmware or the management controller",
        importance: Importance::Medium,
        why: "Programs that read sensors or look for firmware updates cause work in system management mode.",
        read_from: &["/proc/#/task/#/stat", "/tailtrim/systemd/timers"],
        wanted: "no ipmievd, dcdbas, fwupd and the like",
        set_now: "systemctl disable --now fwupd-refresh.timer ipmievd",
        undo: "systemctl enable --now the same",
        source: "OpenShift's node tuning operator",
        needs: METAL,
        evaluate: agents,
        ..Check::BLANK
    },
    Check {
        id: "FW-004",
        title: "Versions of firmware and microcode are known",
        importance: Importance::Low,
        why: "Hosts with the same settings can differ in these.",
        read_from: &[
            "/proc/cpuinfo",
            "/sys/class/dmi/id/bios_version",
            "/sys/class/dmi/id/bios_date",
        ],
        wanted: "recorded",
        set_boot: "update the firmware",
        undo: "",
        source: "NFV host guide",
        needs: METAL,
        evaluate: versions,
        ..Check::BLANK
    },
    Check {
        id: "FW-005",
        title: "No memory scrubbing during operation",
        importance: Importance::Low,
        why: "The memory controller reads all memory to find errors, and takes bandwidth for it.",
        read_from: &["/sys/devices/system/edac/mc/mc#/sdram_scrub_rate"],
        wanted: "0, or known",
        cost: "single errors may add up to double ones",
        set_now: "echo 0 > /sys/devices/system/edac/mc/mc0/sdram_scrub_rate",
        undo: "write the old rate",
        source: "NFV host guide; Documentation/driver-api/edac.rst",
        needs: METAL,
        evaluate: scrubbing,
        ..Check::BLANK
    },
];

fn agents(f: &Facts<'_>) -> Answer {
    let mut found = Vec::new();
    for name in
        ["ipmievd", "fwupd", "dsm_sa_datamgrd", "hpasmlited", "amsd", "sfcbd", "ipmi_exporter"]
    {
        if f.runs(name)? {
            found.push(name.to_owned());
        }
    }
    // Where systemd is not, nothing is started by it: processes alone answer.
    if let Some(timers) = f.optional(TIMERS)? {
        found.extend(timers.lines().filter(|name| name.starts_with("fwupd")).map(str::to_owned));
    }
    let said = if found.is_empty() { "none of the known ones".to_owned() } else { few(&found) };
    judge(EvidenceLevel::Seen, found.is_empty(), CheckStatus::Warn, said)
}

fn versions(f: &Facts<'_>) -> Answer {
    let microcode = f.cpu_says("microcode")?;
    let bios = f.optional("/sys/class/dmi/id/bios_version")?;
    let date = f.optional("/sys/class/dmi/id/bios_date")?;
    if microcode.is_none() && bios.is_none() {
        return not_applicable("neither is told here");
    }
    let known = |text: Option<String>| text.unwrap_or_else(|| "not told".to_owned());
    let said =
        format!("firmware {} of {}, microcode {}", known(bios), known(date), known(microcode));
    judge(EvidenceLevel::Set, true, CheckStatus::Warn, said)
}

fn scrubbing(f: &Facts<'_>) -> Answer {
    let rates = f.glob("/sys/devices/system/edac/mc/mc#/sdram_scrub_rate")?;
    if rates.is_empty() {
        return not_applicable("no memory controller tells its rate");
    }
    let on: Vec<&str> = rates
        .iter()
        .filter(|(_, rate)| !matches!(rate.as_str(), "0" | "-1"))
        .map(|(_, rate)| rate.as_str())
        .collect();
    let said = if on.is_empty() {
        "not scrubbed, or not told".to_owned()
    } else {
        format!("{} bytes/s", few(&on))
    };
    judge(EvidenceLevel::Set, on.is_empty(), CheckStatus::Warn, said)
}
