//! VM: hosts of virtual machines, and guests.

use super::*;

const KVM: &str = "/sys/module/kvm/parameters";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("virtualisation.json"),
    evaluators: &[
        ("VM-001", steal),
        ("VM-002", |f| {
            file(f, "/sys/module/kvm/parameters/kvmclock_periodic_sync", Warn, |text| text == "N")
        }),
        ("VM-003", pause_loops),
        ("VM-004", |f| {
            file(f, "/sys/module/kvm/parameters/nx_huge_pages", Warn, |text| {
                matches!(text, "N" | "never" | "off")
            })
        }),
        ("VM-005", halt_polling),
        ("VM-006", pinning),
        ("VM-007", backing),
        ("VM-008", inside),
        ("VM-009", timers),
        ("VM-010", functions),
        ("VM-011", iommu),
        ("VM-012", posted),
    ],
};

fn steal(f: &Facts<'_>) -> Answer {
    let (before, after) = f.before_and_after("/proc/stat")?;
    let ms = f.observed_ms()?;
    // user nice system idle iowait irq softirq steal: in hundredths of a second.
    let total = |text: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        line.split_whitespace().nth(7)?.parse().ok()
    };
    let (Some(before), Some(after)) = (total(&before), total(&after)) else {
        return not_applicable("this kernel does not count stolen time");
    };
    let stolen = after.saturating_sub(before) * 10;
    judge(Seen, stolen == 0, Fail, format!("{stolen} ms stolen in {ms} ms, over all CPUs"))
}

fn pause_loops(f: &Facts<'_>) -> Answer {
    let intel = file(f, "/sys/module/kvm_intel/parameters/ple_gap", Warn, |text| text == "0")?;
    if intel.verdict != CheckStatus::NotApplicable {
        return Ok(intel);
    }
    file(f, "/sys/module/kvm_amd/parameters/pause_filter_count", Warn, |text| text == "0")
}

fn halt_polling(f: &Facts<'_>) -> Answer {
    if f.intent().workload == Workload::Vm {
        return file(f, &format!("{KVM}/halt_poll_ns"), Warn, |text| text == "0");
    }
    if f.boot()?.last("idle") == Some("poll") {
        return ok(Asked, "idle=poll");
    }
    let driver = f.text("/sys/devices/system/cpu/cpuidle/current_driver")?;
    judge(Set, driver == "haltpoll", Warn, format!("idle driver {driver}"))
}

fn pinning(f: &Facts<'_>) -> Answer {
    let tasks = f.tasks()?;
    let virtual_cpus: Vec<_> = tasks
        .iter()
        .filter(|task| task.name.starts_with("CPU ") && task.name.ends_with("/KVM"))
        .collect();
    if virtual_cpus.is_empty() {
        return not_applicable("no guest runs");
    }
    let mut wrong = Vec::new();
    for task in &virtual_cpus {
        let alone = virtual_cpus.iter().filter(|other| other.allowed == task.allowed).count() == 1;
        if task.allowed.len() != 1 || !alone || !task.allowed.is_subset(f.iso()) {
            wrong.push(format!("{} of {} may use {}", task.name, task.pid, task.allowed));
        }
    }
    let pids: Vec<u32> = virtual_cpus.iter().map(|task| task.pid).collect();
    let others =
        tasks.iter().filter(|task| pids.contains(&task.pid) && !task.name.starts_with("CPU "));
    wrong.extend(
        others
            .filter(|task| f.touches(&task.allowed))
            .map(|task| format!("{} of {} may use {}", task.name, task.pid, task.allowed)),
    );
    none_of(Set, &wrong, Fail, format!("{} virtual CPUs, one to one", virtual_cpus.len()))
}

fn backing(f: &Facts<'_>) -> Answer {
    let runs = f.tasks()?.iter().any(|task| task.name.ends_with("/KVM"));
    if !runs {
        return not_applicable("no guest runs");
    }
    let total = |file: &str| -> Result<u64, Unread> {
        let all = f.glob(&format!("/sys/devices/system/node/node#/hugepages/*/{file}"))?;
        Ok(all.iter().filter_map(|(_, text)| text.parse::<u64>().ok()).sum())
    };
    let (all, free) = (total("nr_hugepages")?, total("free_hugepages")?);
    let said = format!("{} of {all} huge pages are in use", all.saturating_sub(free));
    judge(Set, all > free, Warn, said)
}

fn inside(f: &Facts<'_>) -> Answer {
    let isolated = super::isolation::isolated(f)?;
    let left = f.iso().minus(&isolated);
    let said = match left.is_empty() {
        true => format!("{} isolated in the guest", isolated.does("is", "are")),
        false => format!("{} not isolated in the guest", left.does("is", "are")),
    };
    judge(Set, left.is_empty(), Warn, said)
}

fn timers(f: &Facts<'_>) -> Answer {
    let clocks = f.text("/sys/devices/system/clocksource/clocksource0/available_clocksource")?;
    let hpet = clocks.split_whitespace().any(|name| name == "hpet");
    judge(Set, !hpet, Warn, format!("clocks: {clocks}"))
}

fn functions(f: &Facts<'_>) -> Answer {
    let mut bound = Vec::new();
    let mut known = false;
    for nic in &f.intent().nics {
        let folder = format!("/sys/class/net/{nic}/device");
        let Some(count) = f.optional(&format!("{folder}/sriov_numvfs"))? else { continue };
        known = true;
        for number in 0..count.parse::<u32>().unwrap_or(0) {
            if f.link_name(&format!("{folder}/virtfn{number}/driver"))?.as_deref()
                == Some("vfio-pci")
            {
                bound.push(format!("{nic} function {number}"));
            }
        }
    }
    if !known {
        return not_applicable("the interface has no virtual functions");
    }
    let said =
        if bound.is_empty() { "no function is handed to a guest".to_owned() } else { few(&bound) };
    judge(Set, !bound.is_empty(), Warn, said)
}

fn iommu(f: &Facts<'_>) -> Answer {
    let groups = f.glob("/sys/kernel/iommu_groups/#/type")?;
    let line = f.boot()?;
    if groups.is_empty() {
        return judge(
            Set,
            false,
            Warn,
            "the IOMMU is off: VFIO needs it (intel_iommu=on iommu=pt)",
        );
    }
    let translated = groups.iter().filter(|(_, kind)| kind.starts_with("DMA")).count();
    let passed = line.last("iommu") == Some("pt") || translated == 0;
    let said = format!(
        "{translated} of {} groups are translated, iommu={}",
        groups.len(),
        line.last("iommu").unwrap_or("(default)")
    );
    judge(Set, passed, Warn, said)
}

fn posted(f: &Facts<'_>) -> Answer {
    let good = |text: &str| matches!(text, "Y" | "1");
    let intel = file(f, "/sys/module/kvm_intel/parameters/enable_apicv", Warn, good)?;
    if intel.verdict != CheckStatus::NotApplicable {
        return Ok(intel);
    }
    file(f, "/sys/module/kvm_amd/parameters/avic", Warn, good)
}
