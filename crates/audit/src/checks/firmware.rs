//! FW: what happens below the kernel.

use super::*;
use tailtrim_host::paths::TIMERS;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("firmware.json"),
    evaluators: &[("FW-002", agents), ("FW-004", versions), ("FW-005", scrubbing)],
};

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
    none_of(Seen, &found, Warn, "none of the known ones")
}

fn versions(f: &Facts<'_>) -> Answer {
    let microcode = f.cpuinfo_field("microcode")?;
    let bios = f.optional("/sys/class/dmi/id/bios_version")?;
    let date = f.optional("/sys/class/dmi/id/bios_date")?;
    if microcode.is_none() && bios.is_none() {
        return not_applicable("neither is told here");
    }
    let known = |text: Option<String>| text.unwrap_or_else(|| "not told".to_owned());
    let said =
        format!("firmware {} of {}, microcode {}", known(bios), known(date), known(microcode));
    ok(Set, said)
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
    judge(Set, on.is_empty(), Warn, said)
}
