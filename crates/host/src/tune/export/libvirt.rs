//! A domain of libvirt: virtual CPUs pinned one to one, memory in huge pages, a virtual function passed through.

use super::ExportedFile;
use crate::tune::place::Places;
use crate::tune::plan::Plan;
use crate::{Cpus, Unread};
use std::fmt::Write;
use thiserror::Error;

/// Memory of a domain for which no huge pages were asked for: 4 GiB.
const USUAL_KIB: u64 = 4 << 20;

/// A plan that no domain can be made of.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LibvirtError {
    /// The plan keeps no CPU for a virtual machine.
    #[error("the plan has no CPUs for a virtual machine")]
    NoCpus,
    /// Nothing can be passed through.
    #[error("{0}: not backed by a device ({1})")]
    NoDevice(String, Unread),
    /// It cannot be passed through.
    #[error("{0}: {1} is not a PCI device that can be passed through")]
    NotPci(String, String),
}

/// A domain for the CPUs of a plan.
///
/// # Errors
///
/// [`LibvirtError`]: no CPU is for a virtual machine, or an interface is not a PCI device.
pub fn libvirt(plan: &Plan, host: &impl Places) -> Result<Vec<ExportedFile>, LibvirtError> {
    let division = &plan.division;
    if division.vm_os.is_empty() {
        return Err(LibvirtError::NoCpus);
    }
    // Threads of a core side by side, as the guest counts them.
    let vcpus: Vec<u32> = division.cores.iter().flat_map(Cpus::iter).collect();
    let threads = division.vm_os.len();
    let threads = if division.cores.iter().all(|core| core.len() == threads) { threads } else { 1 };
    let devices: Result<Vec<String>, LibvirtError> =
        plan.request.nics.iter().map(|nic| device(host, nic)).collect();
    let mut text =
        String::from("<!-- Written by tailtrim-agent tune export. -->\n<domain type=\"kvm\">\n");
    text += "  <name>tailtrim</name>\n";
    let line = guest_line(plan, vcpus.len() as u32);
    let _ = write!(
        text,
        "  <metadata>\n    <!-- The guest's boot line: set it inside the guest. -->\n    \
         <tailtrim:boot xmlns:tailtrim=\"urn:tailtrim\">{line}</tailtrim:boot>\n  </metadata>\n"
    );
    memory(&mut text, plan);
    let _ = writeln!(text, "  <vcpu placement=\"static\">{}</vcpu>", vcpus.len());
    pinning(&mut text, plan, &vcpus);
    if let Some(node) = division.node {
        let _ = writeln!(
            text,
            "  <numatune>\n    <memory mode=\"strict\" nodeset=\"{node}\"/>\n  </numatune>"
        );
    }
    machine(&mut text, vcpus.len() / threads, threads);
    text += "  <devices>\n";
    for device in devices? {
        text += &device;
    }
    text += "    <memballoon model=\"none\"/>\n  </devices>\n</domain>\n";
    Ok(ExportedFile::one("tailtrim.xml", text))
}

fn memory(text: &mut String, plan: &Plan) {
    let kib = plan.request.huge_pages.map_or(USUAL_KIB, |pages| pages.kib * pages.count);
    let _ = writeln!(text, "  <memory unit=\"KiB\">{kib}</memory>");
    text.push_str("  <memoryBacking>\n");
    if let Some(pages) = plan.request.huge_pages {
        let _ = write!(
            text,
            "    <hugepages>\n      <page size=\"{}\" unit=\"KiB\"/>\n    </hugepages>\n",
            pages.kib
        );
    }
    text.push_str("    <nosharepages/>\n    <locked/>\n  </memoryBacking>\n");
}

fn pinning(text: &mut String, plan: &Plan, vcpus: &[u32]) {
    text.push_str("  <cputune>\n");
    for (vcpu, cpu) in vcpus.iter().enumerate() {
        let _ = writeln!(text, "    <vcpupin vcpu=\"{vcpu}\" cpuset=\"{cpu}\"/>");
    }
    let _ = writeln!(text, "    <emulatorpin cpuset=\"{}\"/>", plan.division.housekeeping);
    text.push_str("  </cputune>\n");
}

fn machine(text: &mut String, cores: usize, threads: usize) {
    let _ = write!(
        text,
        "  <os>\n    <type arch=\"x86_64\" machine=\"q35\">hvm</type>\n    <boot dev=\"hd\"/>\n  </os>\n\
         \x20 <features>\n    <acpi/>\n    <apic/>\n    <pmu state=\"off\"/>\n    <kvm>\n      \
         <hint-dedicated state=\"on\"/>\n      <poll-control state=\"on\"/>\n    </kvm>\n  </features>\n\
         \x20 <cpu mode=\"host-passthrough\" check=\"none\" migratable=\"off\">\n    \
         <topology sockets=\"1\" dies=\"1\" cores=\"{cores}\" threads=\"{threads}\"/>\n    \
         <feature policy=\"require\" name=\"invtsc\"/>\n  </cpu>\n\
         \x20 <clock offset=\"utc\">\n    <timer name=\"tsc\" present=\"yes\" mode=\"native\"/>\n    \
         <timer name=\"hpet\" present=\"no\"/>\n    <timer name=\"pit\" tickpolicy=\"delay\"/>\n  </clock>\n"
    );
}

/// An interface's first virtual function, or the device itself where it has none.
fn device(host: &impl Places, nic: &str) -> Result<String, LibvirtError> {
    let folder = format!("/sys/class/net/{nic}/device");
    let link = host.link(&format!("{folder}/virtfn0")).or_else(|_| host.link(&folder));
    let link = link.map_err(|why| LibvirtError::NoDevice(nic.to_owned(), why))?;
    let name = link.rsplit('/').next().unwrap_or_default();
    let wrong = || LibvirtError::NotPci(nic.to_owned(), name.to_owned());
    let (domain, rest) = name.split_once(':').ok_or_else(wrong)?;
    let (bus, rest) = rest.split_once(':').ok_or_else(wrong)?;
    let (slot, function) = rest.split_once('.').ok_or_else(wrong)?;
    Ok(format!(
        "    <!-- {nic} -->\n    <hostdev mode=\"subsystem\" type=\"pci\" managed=\"yes\">\n      <source>\n        \
         <address domain=\"0x{domain}\" bus=\"0x{bus}\" slot=\"0x{slot}\" function=\"0x{function}\"/>\n      \
         </source>\n    </hostdev>\n"
    ))
}

/// Table I of "Ducked Tails" inside the machine: without `nosmt`, which is the host's business.
fn guest_line(plan: &Plan, vcpus: u32) -> String {
    let system = plan.division.vm_os.len() as u32;
    let list = |from, to| (from..to).collect::<Cpus>().to_string();
    let (os, application) = (list(0, system), list(system, vcpus));
    let mut words = format!(
        "isolcpus=managed_irq,domain,{application} nohz_full={application} rcu_nocbs={application} rcu_nocb_poll \
         irqaffinity={os} idle=poll tsc=reliable mce=ignore_ce audit=0 nmi_watchdog=0 nosoftlockup skew_tick=1"
    );
    if let Some(pages) = plan.request.huge_pages {
        let _ = write!(words, " default_hugepagesz={0} hugepagesz={0}", pages.size());
    }
    words
}
