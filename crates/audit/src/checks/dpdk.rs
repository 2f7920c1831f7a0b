//! DPK: programs built with DPDK.

use super::*;
use crate::tasks::Task;
use tailtrim_host::paths::LOG;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("dpdk.json"),
    evaluators: &[
        ("DPK-001", |f| per_nic(f, driver)),
        ("DPK-002", workers),
        ("DPK-003", helpers),
        ("DPK-004", protected),
        ("DPK-005", spare),
        ("DPK-006", asked),
    ],
};

fn driver(f: &Facts<'_>, nic: &str) -> Answer {
    let name = f.link_name(&format!("/sys/class/net/{nic}/device/driver"))?;
    // A bound device is not an interface any more: the wish names it by its address.
    let bound = f.list_or_none("/sys/bus/pci/drivers/vfio-pci")?;
    if bound.iter().any(|device| device.ends_with(nic)) {
        return ok(Set, "driver vfio-pci");
    }
    match name {
        None => not_applicable("there is no device behind it"),
        Some(name) => judge(Set, name == "vfio-pci", Warn, format!("driver {name}")),
    }
}

fn is_worker(task: &Task) -> bool {
    ["dpdk-worker", "lcore-worker", "lcore-slave", "rte-worker"]
        .iter()
        .any(|start| task.name.starts_with(start))
}

/// Threads of DPDK programs: workers, and all others of the same programs.
fn threads<'f>(f: &'f Facts<'_>) -> Result<(Vec<&'f Task>, Vec<&'f Task>), Unread> {
    let tasks = f.tasks()?;
    let helper = |task: &&Task| {
        ["dpdk-intr", "dpdk-mp-msg", "eal-intr-thread", "rte_mp_handle", "dpdk-telemet"]
            .iter()
            .any(|start| task.name.starts_with(start))
    };
    let workers: Vec<&Task> = tasks.iter().filter(|task| is_worker(task)).collect();
    Ok((workers, tasks.iter().filter(helper).collect()))
}

fn workers(f: &Facts<'_>) -> Answer {
    let (workers, helpers) = threads(f)?;
    if workers.is_empty() && helpers.is_empty() {
        return not_applicable("no DPDK program runs");
    }
    let mut local: Option<Cpus> = None;
    for nic in &f.intent().nics {
        let path = format!("/sys/class/net/{nic}/device/local_cpulist");
        if f.optional(&path)?.is_some() {
            local = Some(local.unwrap_or_default().union(&f.cpus(&path)?));
        }
    }
    let mut wrong = Vec::new();
    for task in &workers {
        let alone = workers.iter().filter(|other| other.allowed == task.allowed).count() == 1;
        let near = local.as_ref().is_none_or(|local| task.allowed.is_subset(local));
        if !task.allowed.is_subset(f.iso()) || !alone || !near {
            wrong.push(format!("{} on {}", task.name, task.allowed));
        }
    }
    let said = match wrong.is_empty() {
        true => format!("{} workers, each on one of the {}", workers.len(), f.isolated_cpus()),
        false => format!("{} ({}: {})", few(&wrong), f.isolated_cpus(), or_none(f.iso())),
    };
    judge(Set, wrong.is_empty(), Fail, said)
}

fn helpers(f: &Facts<'_>) -> Answer {
    let (_, helpers) = threads(f)?;
    if helpers.is_empty() {
        return not_applicable("no DPDK program runs");
    }
    let there = helpers.iter().filter(|task| f.touches(&task.allowed));
    let there: Vec<String> =
        there.map(|task| format!("{} may use {}", task.name, task.allowed)).collect();
    none_of(Set, &there, Warn, format!("{} threads, elsewhere", helpers.len()))
}

fn protected(f: &Facts<'_>) -> Answer {
    let bound = f.list_or_none("/sys/bus/pci/drivers/igb_uio")?;
    let loaded = f
        .optional("/proc/modules")?
        .is_some_and(|text| text.lines().any(|line| line.starts_with("igb_uio ")));
    if loaded || !bound.is_empty() {
        return judge(Set, false, Warn, "igb_uio is in use");
    }
    let log = f.log()?;
    let open = log.after("vfio-noiommu");
    let finding = judge(
        Set,
        open.is_none(),
        Warn,
        if open.is_some() { "VFIO without IOMMU was used" } else { "neither is in use" },
    )?;
    Ok(open.map_or(finding.clone(), |text| finding.because(LOG, text)))
}

fn spare(f: &Facts<'_>) -> Answer {
    let (workers, helpers) = threads(f)?;
    if workers.is_empty() && helpers.is_empty() {
        return not_applicable("no DPDK program runs");
    }
    let all = f.glob("/sys/devices/system/node/node#/hugepages/*/free_hugepages")?;
    if all.is_empty() {
        return not_applicable("this kernel shows no huge pages by node");
    }
    let free: u64 = all.iter().filter_map(|(_, text)| text.parse::<u64>().ok()).sum();
    judge(Set, free > 0, Warn, format!("{free} huge pages are free"))
}

fn asked(f: &Facts<'_>) -> Answer {
    let (workers, helpers) = threads(f)?;
    if workers.is_empty() && helpers.is_empty() {
        return not_applicable("no DPDK program runs");
    }
    let names = ["dpdk-telemetry.py", "dpdk-pdump", "dpdk-dumpcap", "dpdk-proc-info"];
    let running = f.running(&names)?;
    none_of(Seen, &running, Warn, "none")
}
