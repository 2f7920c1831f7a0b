//! Words for the boot line, as this kernel and this CPU know them.

use super::services::{cpu_has, smt_known};
use super::{CPUS, HostContext};
use tailtrim_host::{KernelVersion, Workload};

type Words = Result<Vec<String>, String>;

/// The profile's words as they are.
pub(crate) fn fixed(context: &HostContext<'_>) -> Words {
    Ok(context.value.split_whitespace().map(str::to_owned).collect())
}

fn isolated(context: &HostContext<'_>) -> Result<String, String> {
    context.housekeeping()?;
    Ok(context.division.isolated.to_string())
}

pub(crate) fn isolcpus(context: &HostContext<'_>) -> Words {
    Ok(vec![format!("isolcpus=managed_irq,domain,{}", isolated(context)?)])
}

fn has_nohz_full(context: &HostContext<'_>) -> Result<(), String> {
    let file = format!("{CPUS}/nohz_full");
    match context.built_with("NO_HZ_FULL") {
        Some(true) => Ok(()),
        None if context.host.read(&file).is_ok() => Ok(()),
        _ => Err(format!("this kernel is built without CONFIG_NO_HZ_FULL (no {file})")),
    }
}

pub(crate) fn nohz_full(context: &HostContext<'_>) -> Words {
    has_nohz_full(context)?;
    Ok(vec![format!("nohz_full={}", isolated(context)?)])
}

fn has_offloading(context: &HostContext<'_>) -> Result<(), String> {
    match context.built_with("RCU_NOCB_CPU") {
        Some(true) => Ok(()),
        Some(false) => Err("this kernel is built without CONFIG_RCU_NOCB_CPU".to_owned()),
        // NO_HZ_FULL cannot be had without it.
        None => has_nohz_full(context).map_err(|_| {
            "whether this kernel has CONFIG_RCU_NOCB_CPU cannot be told: its configuration is not in /boot"
                .to_owned()
        }),
    }
}

pub(crate) fn rcu_nocbs(context: &HostContext<'_>) -> Words {
    has_offloading(context)?;
    Ok(vec![format!("rcu_nocbs={}", isolated(context)?)])
}

pub(crate) fn rcu_nocb_poll(context: &HostContext<'_>) -> Words {
    has_offloading(context)?;
    isolated(context)?;
    Ok(vec!["rcu_nocb_poll".to_owned()])
}

pub(crate) fn irqaffinity(context: &HostContext<'_>) -> Words {
    Ok(vec![format!("irqaffinity={}", context.housekeeping()?)])
}

pub(crate) fn nosmt(context: &HostContext<'_>) -> Words {
    if !context.request.smt_off() {
        return Ok(Vec::new());
    }
    if !smt_known(context) {
        return Err("this machine has no second hardware threads".to_owned());
    }
    Ok(vec!["nosmt".to_owned()])
}

fn of_intel(context: &HostContext<'_>) -> Result<(), String> {
    if cpu_has(context, "vendor_id", "GenuineIntel") {
        return Ok(());
    }
    Err("not an Intel CPU".to_owned())
}

pub(crate) fn intel(context: &HostContext<'_>) -> Words {
    of_intel(context)?;
    fixed(context)
}

pub(crate) fn cstate(context: &HostContext<'_>) -> Words {
    if context.value.starts_with("intel_") {
        of_intel(context)?;
    }
    fixed(context)
}

pub(crate) fn invariant_tsc(context: &HostContext<'_>) -> Words {
    for flag in ["constant_tsc", "nonstop_tsc"] {
        if !cpu_has(context, "flags", flag) {
            return Err(format!("the TSC is not invariant (no {flag} in /proc/cpuinfo)"));
        }
    }
    fixed(context)
}

pub(crate) fn rcu_patience(context: &HostContext<'_>) -> Words {
    has_nohz_full(context)?;
    let release = context.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version: Option<KernelVersion> = release.parse().ok();
    if version < Some(KernelVersion::new(6, 11)) {
        return Err(format!("this kernel ({release}) is older than 6.11"));
    }
    Ok(vec!["rcutree.nohz_full_patience_delay=1000".to_owned()])
}

pub(crate) fn iommu(context: &HostContext<'_>) -> Words {
    if context.request.workload == Workload::Guest {
        return Err("the host's business".to_owned());
    }
    let mut words = vec!["iommu=pt".to_owned()];
    // AMD's is on by itself.
    if of_intel(context).is_ok() {
        words.push("intel_iommu=on".to_owned());
    }
    Ok(words)
}

pub(crate) fn huge_pages(context: &HostContext<'_>) -> Words {
    let Some(pages) = context.request.huge_pages else { return Ok(Vec::new()) };
    // The number counts for the size named before it: the order matters.
    let size = pages.size();
    Ok(vec![
        format!("default_hugepagesz={size}"),
        format!("hugepagesz={size}"),
        format!("hugepages={}", pages.count),
    ])
}
