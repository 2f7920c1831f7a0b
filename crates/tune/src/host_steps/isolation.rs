//! Steps that keep tasks, kernel threads, interrupts and kernel work off isolated CPUs, and others out of their cache.

use super::{CPUS, HostContext, Steps, some};
use crate::change::Step;
use crate::form::Form;
use crate::place::Place;
use tailtrim_host::{Cpus, ProcessStat, Workload};

const CGROUP: &str = "/sys/fs/cgroup";
const RESCTRL: &str = "/sys/fs/resctrl";

/// Name of our cgroup and of our resctrl group.
const GROUP: &str = "tailtrim";

pub(crate) fn cpuset(context: &HostContext<'_>) -> Steps {
    context.housekeeping()?;
    let isolated = &context.division.isolated;
    let since_start = context.text(&format!("{CPUS}/isolated")).and_then(|text| text.parse().ok());
    if since_start.is_some_and(|cpus: Cpus| isolated.is_subset(&cpus)) {
        return Err("these CPUs are isolated since the start (isolcpus=)".to_owned());
    }
    let offered = context.text(&format!("{CGROUP}/cgroup.controllers")).unwrap_or_default();
    if !offered.split_whitespace().any(|name| name == "cpuset") {
        return Err(format!("{CGROUP} is not a cgroup2 tree with the cpuset controller"));
    }
    let folder = format!("{CGROUP}/{GROUP}");
    if context.host.list(&folder).is_ok() {
        return Err(format!("{folder} already exists and was made by another program"));
    }
    let control = format!("{CGROUP}/cgroup.subtree_control");
    let mut steps: Vec<Step> =
        context.file(control, Form::Word("cpuset".into()), "cpuset").into_iter().collect();
    steps.push(Step::new(Place::Directory { path: folder.clone() }, Form::Bytes, None, ""));
    let list = isolated.to_string();
    for (name, form, new) in [
        ("cpuset.cpus", Form::List, list.as_str()),
        ("cpuset.cpus.partition", Form::Text, "isolated"),
    ] {
        steps.push(Step::new(Place::file(format!("{folder}/{name}")), form, None, new));
    }
    Ok(steps)
}

pub(crate) fn kernel_threads(context: &HostContext<'_>) -> Steps {
    let housekeeping = context.housekeeping()?;
    let mut steps = Vec::new();
    for pid in context.names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Some((name, start)) = movable(context, pid) else { continue };
        let allowed = context.text(&format!("/proc/{pid}/status")).and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            line.parse::<Cpus>().ok()
        });
        let Some(allowed) = allowed else { continue };
        if allowed.intersection(&context.division.isolated).is_empty() {
            continue;
        }
        let rest = allowed.intersection(housekeeping);
        let wanted = if rest.is_empty() { housekeeping } else { &rest };
        let place = Place::Thread { pid, start, name };
        let old = Some(allowed.to_string().into());
        steps.push(Step::new(place, Form::List, old, wanted.to_string()).optional());
    }
    some(steps, "no kernel thread that can be moved may run on isolated CPUs")
}

/// Name and start of a kernel thread whose CPUs can be changed.
fn movable(context: &HostContext<'_>, pid: u32) -> Option<(String, u64)> {
    let line = context.text(&format!("/proc/{pid}/stat"))?;
    let stat = ProcessStat::parse(&line)?;
    let start = stat.start_ticks()?;
    let movable = stat.is_kernel_thread() && !stat.has_fixed_cpus()
        // The threads of interrupts follow their interrupts by themselves.
        && !stat.name().starts_with("irq/");
    movable.then(|| (stat.name().to_owned(), start))
}

pub(crate) fn workqueues(context: &HostContext<'_>) -> Steps {
    let housekeeping = context.housekeeping()?;
    let folder = "/sys/devices/virtual/workqueue";
    let mut paths = vec![format!("{folder}/cpumask")];
    for name in context.names(folder) {
        let path = format!("{folder}/{name}/cpumask");
        if context.host.read(&path).is_ok() {
            paths.push(path);
        }
    }
    let of = |path| context.within(path, Form::Mask, housekeeping);
    some(paths.into_iter().filter_map(of).collect(), &format!("{folder} is not there"))
}

pub(crate) fn default_interrupts(context: &HostContext<'_>) -> Steps {
    let path = "/proc/irq/default_smp_affinity".to_owned();
    let step = context.within(path, Form::Mask, context.housekeeping()?);
    some(step.into_iter().collect(), "/proc/irq/default_smp_affinity is not there")
}

pub(crate) fn interrupts(context: &HostContext<'_>) -> Steps {
    let housekeeping = context.housekeeping()?;
    let own = own_interrupts(context);
    let targets: Vec<u32> = context.division.application.iter().collect();
    let keeps = context.request.workload == Workload::Interrupt && !targets.is_empty();
    let (mut steps, mut queue) = (Vec::new(), 0);
    let mut numbers: Vec<u32> =
        context.names("/proc/irq").iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    for number in numbers {
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        let step = if keeps && own.contains(&number) {
            queue += 1;
            context.file(path, Form::List, &targets[(queue - 1) % targets.len()].to_string())
        } else {
            context.within(path, Form::List, housekeeping)
        };
        steps.extend(step.map(Step::optional));
    }
    some(steps, "/proc/irq has no interrupts")
}

fn own_interrupts(context: &HostContext<'_>) -> Vec<u32> {
    let of = |nic: &String| {
        // A virtio interface's vectors are those of the PCI device above it.
        let device = format!("/sys/class/net/{nic}/device");
        [format!("{device}/msi_irqs"), format!("{device}/../msi_irqs")]
            .iter()
            .flat_map(|folder| context.names(folder))
            .collect::<Vec<_>>()
    };
    let names = context.request.nics.iter().flat_map(of);
    names.filter_map(|name| name.parse().ok()).collect()
}

pub(crate) fn cache_ways(context: &HostContext<'_>) -> Steps {
    context.housekeeping()?;
    let Some(schemata) = context.text(&format!("{RESCTRL}/schemata")) else {
        return Err(format!(
            "{RESCTRL} is not mounted: mount -t resctrl resctrl {RESCTRL}, where the CPU has it"
        ));
    };
    let taken: Vec<String> = context
        .names(RESCTRL)
        .into_iter()
        .filter(|name| context.host.read(&format!("{RESCTRL}/{name}/schemata")).is_ok())
        .collect();
    if !taken.is_empty() {
        return Err(format!("resctrl has groups of another program: {}", taken.join(", ")));
    }
    let (rest, mine) = split_ways(context, &schemata)?;
    let group = format!("{RESCTRL}/{GROUP}");
    let mut steps: Vec<Step> =
        context.file(format!("{RESCTRL}/schemata"), Form::Schemata, &rest).into_iter().collect();
    steps.push(Step::new(Place::Directory { path: group.clone() }, Form::Bytes, None, ""));
    let cpus = context.division.application.to_string();
    for (name, form, new) in [
        ("schemata", Form::Schemata, mine.as_str()),
        ("cpus_list", Form::List, cpus.as_str()),
        ("mode", Form::Text, "exclusive"),
    ] {
        let step = Step::new(Place::file(format!("{group}/{name}")), form, None, new);
        // Firmware and devices may share ways with everybody: then there is no exclusive group.
        steps.push(if name == "mode" { step.optional() } else { step });
    }
    Ok(steps)
}

/// The lower half of the ways for the application, without those that devices write to.
fn split_ways(context: &HostContext<'_>, schemata: &str) -> Result<(String, String), String> {
    let line = schemata.lines().map(str::trim).find_map(|line| line.strip_prefix("L3:"));
    let line = line.ok_or("resctrl does not divide the last-level cache (no L3 line)")?;
    let number = |name: &str| {
        let text = context.text(&format!("{RESCTRL}/info/L3/{name}"))?;
        u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    };
    let all = number("cbm_mask").ok_or("resctrl does not say which ways there are")?;
    let devices = number("shareable_bits").unwrap_or(0);
    let half = all.count_ones() / 2;
    let mine = (all & ((1 << half) - 1)) & !devices;
    let least = number("min_cbm_bits").unwrap_or(1) as u32;
    // The CPU takes ways that lie side by side only.
    let run = mine.checked_shr(mine.trailing_zeros()).unwrap_or(0);
    if mine == 0 || mine.count_ones() < least || run & (run + 1) != 0 {
        return Err(format!("{} ways cannot be divided beside those of devices", all.count_ones()));
    }
    let rest = all & !mine;
    let with = |ways: u64| {
        let domains = line.split(';').filter_map(|part| part.trim().split_once('='));
        let domains: Vec<String> =
            domains.map(|(domain, _)| format!("{domain}={ways:x}")).collect();
        format!("L3:{}", domains.join(";"))
    };
    Ok((with(rest), with(mine)))
}

pub(crate) fn systemd(context: &HostContext<'_>) -> Steps {
    let housekeeping = context.housekeeping()?;
    if context.host.list("/etc/systemd").is_err() {
        return Err("/etc/systemd is not there".to_owned());
    }
    let cpus: Vec<String> = housekeeping.iter().map(|cpu| cpu.to_string()).collect();
    let content = format!(
        "# Written by tailtrim-agent tune; `tailtrim-agent tune revert` removes it.\n[Manager]\nCPUAffinity={}\n",
        cpus.join(" ")
    );
    Ok(context.drop_in("/etc/systemd/system.conf.d", "50-tailtrim.conf", content))
}
