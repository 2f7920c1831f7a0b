//! Other managers of these values: daemons that run, files that are applied when the host starts.

use super::place::Places;
use serde::Serialize;
use std::collections::BTreeMap;

/// A daemon that would set back what is changed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manager {
    /// Its service.
    pub service: String,
    /// Its process.
    pub pid: u32,
    /// Settings that it controls.
    pub owns: String,
    /// Advice to the operator.
    pub way_out: String,
}

/// Process name, service, what it sets.
const DAEMONS: [(&str, &str, &str); 7] = [
    ("tuned", "tuned", "sysctls, governor, C-states, huge pages, interrupt masks"),
    ("irqbalance", "irqbalance", "interrupt masks"),
    ("bpftune", "bpftune", "network sysctls, while it watches the traffic"),
    ("power-profiles-", "power-profiles-daemon", "governor and energy preference"),
    ("thermald", "thermald", "frequency limits"),
    ("tlp", "tlp", "governor, ASPM, runtime power management"),
    ("ksmtuned", "ksmtuned", "KSM"),
];

/// The services of all daemons that are known.
pub(crate) fn services() -> impl Iterator<Item = &'static str> {
    DAEMONS.iter().map(|(_, service, _)| *service)
}

/// Daemons that run on a host.
pub(crate) fn running(host: &dyn Places) -> Vec<Manager> {
    let processes = host.list("/proc").unwrap_or_default();
    let mut found = Vec::new();
    for pid in processes.iter().filter_map(|name| name.parse::<u32>().ok()) {
        let Ok(name) = host.text(&format!("/proc/{pid}/comm")) else { continue };
        let Some((_, service, owns)) = DAEMONS.iter().find(|(comm, ..)| *comm == name) else {
            continue;
        };
        if found.iter().any(|manager: &Manager| manager.service == *service) {
            continue;
        }
        found.push(Manager {
            service: (*service).to_owned(),
            pid,
            owns: (*owns).to_owned(),
            way_out: format!(
                "take {service} over: it is stopped first and started again on revert; or take the change out"
            ),
        });
    }
    found
}

/// Which of the changes a daemon would undo.
pub(crate) fn owns(service: &str, change: &str) -> bool {
    match service {
        "irqbalance" => change.starts_with("irq."),
        "bpftune" => change.starts_with("net."),
        "power-profiles-daemon" => matches!(change, "cpu.governor" | "cpu.epp" | "cpu.epb"),
        "thermald" => change.starts_with("cpu.") && change.contains("freq"),
        "tlp" => matches!(change, "cpu.governor" | "cpu.epp" | "pcie.aspm" | "nic.runtime-pm"),
        "ksmtuned" => change == "mm.ksm",
        // A value that tuned leaves alone today, another of its profiles sets tomorrow.
        _ => true,
    }
}

/// Values that files set when the host starts, by sysctl: the file and the value.
pub(crate) fn sysctl_files(host: &dyn Places) -> BTreeMap<String, (String, String)> {
    // In the order in which systemd-sysctl applies them: a name in /etc hides the same one elsewhere, and
    // the last assignment counts.
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for folder in ["/usr/lib/sysctl.d", "/run/sysctl.d", "/etc/sysctl.d"] {
        for name in host.list(folder).unwrap_or_default() {
            if name.ends_with(".conf") {
                files.insert(name.clone(), format!("{folder}/{name}"));
            }
        }
    }
    let mut paths: Vec<String> = files.into_values().collect();
    paths.push("/etc/sysctl.conf".to_owned());
    let mut found = BTreeMap::new();
    for path in paths {
        let Ok(text) = host.text(&path) else { continue };
        for line in text.lines().map(str::trim) {
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some((name, value)) = line.split_once('=') {
                let name = name.trim().trim_start_matches('-').replace('/', ".");
                found.insert(name, (path.clone(), value.trim().to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailtrim_host::Memory;

    #[test]
    fn daemons_are_known_by_their_process() {
        let host = Memory::new(true)
            .with("/proc/1/comm", "systemd\n")
            .with("/proc/70/comm", "tuned\n")
            .with("/proc/71/comm", "tuned\n")
            .with("/proc/80/comm", "irqbalance\n");
        let found: Vec<(String, u32)> =
            running(&host).into_iter().map(|manager| (manager.service, manager.pid)).collect();
        assert_eq!(found, [("tuned".to_owned(), 70), ("irqbalance".to_owned(), 80)]);
        assert!(owns("irqbalance", "irq.affinity") && !owns("irqbalance", "mm.thp"));
        assert!(owns("tuned", "mm.thp"));
    }

    #[test]
    fn the_last_file_counts() {
        let host = Memory::new(true)
            .with("/usr/lib/sysctl.d/50-a.conf", "vm.swappiness=1\n")
            .with("/etc/sysctl.d/50-a.conf", "# mine\n-vm/swappiness = 20\n")
            .with("/etc/sysctl.d/99-z.conf", "kernel.printk = 3 4 1 3\n");
        let found = sysctl_files(&host);
        assert_eq!(found["vm.swappiness"], ("/etc/sysctl.d/50-a.conf".into(), "20".into()));
        assert_eq!(found["kernel.printk"].1, "3 4 1 3");
    }
}
