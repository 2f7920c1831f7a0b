//! Words for the boot line, as this kernel and this CPU know them.

use super::services::{cpu_has, smt_known};
use super::{CPUS, Site};
use tailtrim_host::{KernelVersion, Workload};

type Words = Result<Vec<String>, String>;

/// The profile's words as they are.
pub(crate) fn fixed(site: &Site<'_>) -> Words {
    Ok(site.value.split_whitespace().map(str::to_owned).collect())
}

fn isolated(site: &Site<'_>) -> Result<String, String> {
    site.housekeeping()?;
    Ok(site.division.isolated.to_string())
}

pub(crate) fn isolcpus(site: &Site<'_>) -> Words {
    Ok(vec![format!("isolcpus=managed_irq,domain,{}", isolated(site)?)])
}

fn has_nohz_full(site: &Site<'_>) -> Result<(), String> {
    let file = format!("{CPUS}/nohz_full");
    match site.built_with("NO_HZ_FULL") {
        Some(true) => Ok(()),
        None if site.host.read(&file).is_ok() => Ok(()),
        _ => Err(format!("this kernel is built without CONFIG_NO_HZ_FULL (no {file})")),
    }
}

pub(crate) fn nohz_full(site: &Site<'_>) -> Words {
    has_nohz_full(site)?;
    Ok(vec![format!("nohz_full={}", isolated(site)?)])
}

fn has_offloading(site: &Site<'_>) -> Result<(), String> {
    match site.built_with("RCU_NOCB_CPU") {
        Some(true) => Ok(()),
        Some(false) => Err("this kernel is built without CONFIG_RCU_NOCB_CPU".to_owned()),
        // NO_HZ_FULL cannot be had without it.
        None => has_nohz_full(site).map_err(|_| {
            "whether this kernel has CONFIG_RCU_NOCB_CPU cannot be told: its configuration is not in /boot"
                .to_owned()
        }),
    }
}

pub(crate) fn rcu_nocbs(site: &Site<'_>) -> Words {
    has_offloading(site)?;
    Ok(vec![format!("rcu_nocbs={}", isolated(site)?)])
}

pub(crate) fn rcu_nocb_poll(site: &Site<'_>) -> Words {
    has_offloading(site)?;
    isolated(site)?;
    Ok(vec!["rcu_nocb_poll".to_owned()])
}

pub(crate) fn irqaffinity(site: &Site<'_>) -> Words {
    Ok(vec![format!("irqaffinity={}", site.housekeeping()?)])
}

pub(crate) fn nosmt(site: &Site<'_>) -> Words {
    if !site.request.smt_off() {
        return Ok(Vec::new());
    }
    if !smt_known(site) {
        return Err("this machine has no second hardware threads".to_owned());
    }
    Ok(vec!["nosmt".to_owned()])
}

fn of_intel(site: &Site<'_>) -> Result<(), String> {
    if cpu_has(site, "vendor_id", "GenuineIntel") {
        return Ok(());
    }
    Err("not an Intel CPU".to_owned())
}

pub(crate) fn intel(site: &Site<'_>) -> Words {
    of_intel(site)?;
    fixed(site)
}

pub(crate) fn cstate(site: &Site<'_>) -> Words {
    if site.value.starts_with("intel_") {
        of_intel(site)?;
    }
    fixed(site)
}

pub(crate) fn invariant_tsc(site: &Site<'_>) -> Words {
    for flag in ["constant_tsc", "nonstop_tsc"] {
        if !cpu_has(site, "flags", flag) {
            return Err(format!("the TSC is not invariant (no {flag} in /proc/cpuinfo)"));
        }
    }
    fixed(site)
}

pub(crate) fn rcu_patience(site: &Site<'_>) -> Words {
    has_nohz_full(site)?;
    let release = site.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version: Option<KernelVersion> = release.parse().ok();
    if version < Some(KernelVersion::new(6, 11)) {
        return Err(format!("this kernel ({release}) is older than 6.11"));
    }
    Ok(vec!["rcutree.nohz_full_patience_delay=1000".to_owned()])
}

pub(crate) fn iommu(site: &Site<'_>) -> Words {
    if site.request.workload == Workload::Guest {
        return Err("the host's business".to_owned());
    }
    let mut words = vec!["iommu=pt".to_owned()];
    // AMD's is on by itself.
    if of_intel(site).is_ok() {
        words.push("intel_iommu=on".to_owned());
    }
    Ok(words)
}

pub(crate) fn huge_pages(site: &Site<'_>) -> Words {
    let Some(pages) = site.request.huge_pages else { return Ok(Vec::new()) };
    // The number counts for the size named before it: the order matters.
    let size = pages.size();
    Ok(vec![
        format!("default_hugepagesz={size}"),
        format!("hugepagesz={size}"),
        format!("hugepages={}", pages.count),
    ])
}
