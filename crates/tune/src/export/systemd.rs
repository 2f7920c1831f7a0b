//! A unit that applies a plan at each start and takes it back, and the CPUs of services.

use super::ExportedFile;
use crate::plan::Plan;
use crate::request::{Boot, Request, Smt, Turbo};

/// For `/etc/systemd`.
#[must_use]
pub fn systemd(plan: &Plan) -> Vec<ExportedFile> {
    let arguments = arguments(&plan.request).join(" ");
    let unit = format!(
        "# Written by tailtrim-agent tune export.\n\
         [Unit]\n\
         Description=Tail latency of packet processing: tailtrim profile {profile}\n\
         After=systemd-sysctl.service systemd-tmpfiles-setup.service network.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n# What an earlier start left behind ended with it.\n\
         ExecStartPre=/usr/bin/tailtrim-agent tune revert\n\
         ExecStart=/usr/bin/tailtrim-agent tune apply {arguments}\n\
         ExecStop=/usr/bin/tailtrim-agent tune revert\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        profile = plan.request.profile.name(),
    );
    let mut files = ExportedFile::one("system/tailtrim-tune.service", unit);
    if let Some(content) = cpu_affinity(plan) {
        files.extend(ExportedFile::one("system.conf.d/50-tailtrim.conf", content));
    }
    files
}

/// The CPUs of services, where they are to leave the isolated ones.
pub(super) fn services_cpus(plan: &Plan) -> Option<String> {
    if plan.division.isolated.is_empty() || !plan.wants("isolation.systemd") {
        return None;
    }
    let cpus: Vec<String> = plan.division.housekeeping.iter().map(|cpu| cpu.to_string()).collect();
    Some(cpus.join(" "))
}

/// A drop-in with the CPUs of services.
fn cpu_affinity(plan: &Plan) -> Option<String> {
    let cpus = services_cpus(plan)?;
    Some(format!("# Written by tailtrim-agent tune export.\n[Manager]\nCPUAffinity={cpus}\n"))
}

/// The options that say the same.
fn arguments(request: &Request) -> Vec<String> {
    let mut words = vec!["--profile".to_owned(), request.profile.name().to_owned()];
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([format!("--{name}"), value]);
        }
    };
    let usual = Request::new(request.profile);
    add("isolate", request.isolate.as_ref().map(ToString::to_string));
    add("housekeeping", request.housekeeping.as_ref().map(ToString::to_string));
    add("isolate-cores", request.isolate_cores.map(|n| n.to_string()));
    add("housekeeping-cores", request.housekeeping_cores.map(|n| n.to_string()));
    let list = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
    add("interface", list(&request.nics));
    let workload = request.workload;
    add("workload", (workload != usual.workload).then(|| workload.to_string()));
    add("hugepages", request.huge_pages.map(|pages| pages.to_string()));
    add("ring", request.ring.map(|n| n.to_string()));
    add("queues", request.queues.map(|n| n.to_string()));
    add(
        "smt",
        match request.smt {
            Smt::Profile => None,
            Smt::Off => Some("off".to_owned()),
            Smt::Keep => Some("keep".to_owned()),
        },
    );
    add(
        "turbo",
        match request.turbo {
            Turbo::Keep => None,
            Turbo::Off => Some("off".to_owned()),
            Turbo::On => Some("on".to_owned()),
        },
    );
    let latency = request.exit_latency_us;
    add("exit-latency", (latency != usual.exit_latency_us).then(|| latency.to_string()));
    add("boot", (request.boot == Boot::Grub).then(|| "grub".to_owned()));
    add("take-over", list(&request.take_over));
    add("without", list(&request.without));
    add("only", list(&request.only));
    words
}
