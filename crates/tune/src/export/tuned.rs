//! A profile of tuned, by the plugins of version 2.20 and later.

use super::ExportedFile;
use super::settings::{Settings, left_out};
use super::systemd::services_cpus;
use crate::place::NicGroup;
use crate::plan::Plan;
use std::fmt::Write;

/// A folder for `/etc/tuned` (2.23 and later: `/etc/tuned/profiles`).
#[must_use]
pub fn tuned(plan: &Plan) -> Vec<ExportedFile> {
    let settings = Settings::of(plan);
    let mut text = String::from("# Written by tailtrim-agent tune export.\n");
    let mut others = settings.others.clone();
    // tuned moves kernel threads and sets the default together with the interrupts, not without them.
    let moves = !plan.division.isolated.is_empty() && plan.wants("irq.affinity");
    others.retain(|id| !(moves && matches!(*id, "irq.affinity" | "isolation.kthreads")));
    if !moves && plan.changes.iter().any(|change| change.id == "irq.default") {
        others.push("irq.default");
    }
    if !settings.stopped.is_empty() {
        others.push("services that are stopped");
    }
    text += &left_out(&others, "tuned 2.20");
    let _ = write!(
        text,
        "\n[main]\nsummary=tailtrim {}: tail latency of packet processing\n",
        plan.request.profile.name()
    );
    section(
        &mut text,
        "sysctl",
        settings.sysctls.iter().map(|(name, value, _)| (name.as_str(), value.clone())),
    );
    let (vm, rest) = huge_pages(&settings);
    section(&mut text, "vm", vm.into_iter());
    cpu(&mut text, &settings, plan);
    section(&mut text, "sysfs", rest.into_iter().filter(|(path, _)| !is_elsewhere(path)));
    if moves {
        scheduler(&mut text, plan);
    }
    if let Some(cpus) = services_cpus(plan) {
        section(&mut text, "systemd", [("cpu_affinity", cpus)].into_iter());
    }
    interfaces(&mut text, &settings);
    let words = plan.boot_words();
    if !words.is_empty() {
        section(
            &mut text,
            "bootloader",
            [("cmdline_tailtrim", format!("+{}", words.join(" ")))].into_iter(),
        );
    }
    ExportedFile::one("tailtrim/tuned.conf", text)
}

/// Interrupts off the isolated CPUs, with what tuned does together with them where it is wanted.
fn scheduler(text: &mut String, plan: &Plan) {
    let list = plan.division.isolated.to_string();
    let default = if plan.wants("irq.default") { "calc" } else { "ignore" };
    // Threads that stay where they are: those that poll packets, or all.
    let polls = ".*pmd.*;.*PMD.*;^DPDK;.*qemu-.*;^lcore-.*;^rte_mp_.*;^eal-.*";
    let stays = if plan.wants("isolation.kthreads") { polls } else { ".*" };
    let values = [
        ("isolated_cores", list.clone()),
        ("default_irq_smp_affinity", default.to_owned()),
        ("ps_blacklist", stays.to_owned()),
    ];
    section(text, "scheduler", values.into_iter());
    section(text, "irqbalance", [("banned_cpus", list)].into_iter());
}

fn section<'a>(text: &mut String, name: &str, values: impl Iterator<Item = (&'a str, String)>) {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return;
    }
    let _ = write!(text, "\n[{name}]\n");
    for (key, value) in values {
        let _ = writeln!(text, "{key}={value}");
    }
}

type Pairs<'a> = Vec<(&'a str, String)>;

/// tuned has words of its own for transparent huge pages.
fn huge_pages<'a>(settings: &Settings<'a>) -> (Pairs<'a>, Pairs<'a>) {
    const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";
    let (mut vm, mut rest) = (Vec::new(), Vec::new());
    for (path, value) in &settings.files {
        match path.strip_prefix(FOLDER) {
            Some("/enabled") => vm.push(("transparent_hugepages", value.clone())),
            Some("/defrag") => vm.push(("transparent_hugepage.defrag", value.clone())),
            _ => rest.push((*path, value.clone())),
        }
    }
    (vm, rest)
}

/// Files that other plugins set.
fn is_elsewhere(path: &str) -> bool {
    path.starts_with("/proc/irq/")
        || ["scaling_governor", "energy_performance_preference", "energy_perf_bias"]
            .iter()
            .any(|name| path.ends_with(name))
}

fn cpu(text: &mut String, settings: &Settings<'_>, plan: &Plan) {
    let has = |name: &str| settings.files.iter().any(|(path, _)| path.ends_with(name));
    let mut values: Pairs<'_> = Vec::new();
    let per_cpu = [
        ("scaling_governor", "governor"),
        ("energy_performance_preference", "energy_performance_preference"),
        ("energy_perf_bias", "energy_perf_bias"),
    ];
    for (file, key) in per_cpu.iter().filter(|(file, _)| has(file)) {
        let value = if *file == "energy_perf_bias" { "0" } else { "performance" };
        values.push((key, value.to_owned()));
    }
    if !values.is_empty() && !plan.division.isolated.is_empty() {
        let cpus: Vec<String> =
            plan.division.isolated.iter().map(|cpu| format!("cpu{cpu}")).collect();
        values.insert(0, ("devices", cpus.join(",")));
    }
    if let Some(latency) = &settings.latency {
        values.push(("force_latency", latency.clone()));
    }
    section(text, "cpu", values.into_iter());
}

fn interfaces(text: &mut String, settings: &Settings<'_>) {
    let mut names: Vec<&str> = settings.nics.keys().map(|(name, _)| *name).collect();
    names.dedup();
    for name in names {
        let mut values: Pairs<'_> = vec![("type", "net".to_owned()), ("devices", name.to_owned())];
        let groups = [
            (NicGroup::Feature, "features"),
            (NicGroup::Coalesce, "coalesce"),
            (NicGroup::Pause, "pause"),
            (NicGroup::Ring, "ring"),
            (NicGroup::Channels, "channels"),
        ];
        for (group, key) in groups {
            if let Some(pairs) = settings.nics.get(&(name, group)) {
                let words: Vec<String> =
                    pairs.iter().map(|(key, value)| format!("{key} {value}")).collect();
                values.push((key, words.join(" ")));
            }
        }
        section(text, &format!("net_{name}"), values.into_iter());
    }
}
