//! Intent: the purpose of a host, on which the verdicts depend.

use serde::Serialize;
use tailtrim_host::{BootLine, Cpus, Topology, Tree, Unread, Workload};

/// The part of the intent that was given; the rest is inferred.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wish {
    /// CPUs for the packets alone.
    pub isolate: Option<Cpus>,
    /// CPUs for everything else.
    pub housekeeping: Option<Cpus>,
    /// Interfaces that the packets use.
    pub nics: Option<Vec<String>>,
    /// Way in which packets are processed.
    pub workload: Option<Workload>,
}

impl Wish {
    /// This, and where it says nothing, what another says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            isolate: self.isolate.or(other.isolate),
            housekeeping: self.housekeeping.or(other.housekeeping),
            nics: self.nics.or(other.nics),
            workload: self.workload.or(other.workload),
        }
    }
}

/// Purpose of a host: a wish, completed by inference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Intent {
    /// CPUs for the packets alone.
    pub isolate: Cpus,
    /// Whether nothing on the host says so: neither a wish, nor the kernel, nor the boot line.
    pub isolate_assumed: bool,
    /// CPUs for everything else.
    pub housekeeping: Cpus,
    /// Interfaces that the packets use.
    pub nics: Vec<String>,
    /// Way in which packets are processed.
    pub workload: Workload,
    /// Inferred parts, each with its basis.
    pub inferred: Vec<String>,
}

/// A wish that this host cannot fulfil.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// A CPU is named that does not exist.
    #[error("{} not on this host, which has {}", .0.does("is", "are"), .1)]
    NoSuchCpus(Cpus, Cpus),
    /// A CPU is to be both.
    #[error("{} both isolated and for housekeeping", .0.does("is", "are"))]
    Both(Cpus),
    /// Nothing is left for the host itself.
    #[error(
        "isolating {} leaves no CPU for the host itself: leave out at least one, best CPU 0",
        .0.named()
    )]
    NothingLeft(Cpus),
    /// An interface is named that does not exist.
    #[error("no interface {0} on this host, which has {1}")]
    NoSuchInterface(String, String),
}

impl Intent {
    /// Complete a wish by the state of the host.
    ///
    /// # Errors
    ///
    /// The wish contradicts itself or the host.
    pub fn complete(wish: Wish, tree: &dyn Tree) -> Result<Self, IntentError> {
        let mut inferred = Vec::from_iter(container(tree));
        let mut isolate_assumed = false;
        let topology = Topology::read(tree).ok();
        let online = topology.as_ref().map(Topology::online);
        let isolate = match (wish.isolate, &wish.housekeeping, &online) {
            (Some(cpus), ..) => cpus,
            (None, Some(kept), Some(online)) => online.minus(kept),
            _ => {
                let (cpus, from) = isolated(tree, topology.as_ref());
                isolate_assumed = from == ASSUMED;
                inferred.push(format!("isolate {} ({from})", shown(&cpus)));
                cpus
            }
        };
        let housekeeping = wish.housekeeping.unwrap_or_else(|| {
            online.as_ref().map_or_else(Cpus::none, |online| online.minus(&isolate))
        });
        let both = isolate.intersection(&housekeeping);
        if !both.is_empty() {
            return Err(IntentError::Both(both));
        }
        if let Some(online) = online {
            let all = topology.as_ref().map_or(&online, |topology| &topology.possible);
            let absent = isolate.union(&housekeeping).minus(all);
            if !absent.is_empty() {
                return Err(IntentError::NoSuchCpus(absent, online));
            }
            if housekeeping.is_empty() {
                return Err(IntentError::NothingLeft(isolate));
            }
        }
        let there = tree.list("/sys/class/net").unwrap_or_default();
        let absent = |name: &&String| !there.is_empty() && !there.contains(name);
        if let Some(name) = wish.nics.iter().flatten().find(absent) {
            return Err(IntentError::NoSuchInterface(name.clone(), there.join(", ")));
        }
        let nics = wish.nics.unwrap_or_else(|| {
            let nics = interfaces(tree);
            let names = if nics.is_empty() { "none".to_owned() } else { nics.join(", ") };
            inferred.push(format!("nics {names} (devices in /sys/class/net that are up)"));
            nics
        });
        let workload = wish.workload.unwrap_or_else(|| {
            let (kind, from) = workload(tree);
            inferred.push(format!("workload {kind} ({from})"));
            kind
        });
        Ok(Self { isolate, isolate_assumed, housekeeping, nics, workload, inferred })
    }

    /// A text in which `{iso}`, `{hk}`, `{isomask}`, `{hkmask}` and `{nic}` are what is intended.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        let fill = |text: &str, cpus: &Cpus, placeholder: &str, name: &str| match cpus.is_empty() {
            true => text.replace(placeholder, name),
            false => cpus.fill(text, placeholder),
        };
        let text = fill(text, &self.isolate, "{iso}", "ISOLATED");
        fill(&text, &self.housekeeping, "{hk}", "HOUSEKEEPING")
            .replace("{isomask}", &self.isolate.to_mask())
            .replace("{hkmask}", &self.housekeeping.to_mask())
            .replace("{nic}", self.nics.first().map_or("INTERFACE", String::as_str))
    }
}

/// A note on facts that are a container's own; `None` on a host, or where its first process is closed.
fn container(tree: &dyn Tree) -> Option<String> {
    // The first namespaces of a kernel have fixed numbers (include/linux/proc_ns.h).
    let own: Vec<&str> = [
        ("processes", "/proc/1/ns/pid", "pid:[4026531836]"),
        ("control groups", "/proc/1/ns/cgroup", "cgroup:[4026531835]"),
    ]
    .into_iter()
    .filter(|(_, path, first)| tree.link(path).is_ok_and(|link| link != *first))
    .map(|(what, ..)| what)
    .collect();
    (!own.is_empty()).then(|| {
        format!(
            "seen from a container: {} are its own, interfaces and services may be; CPUs, boot line, interrupts and \
             settings of the kernel are the host's",
            own.join(" and ")
        )
    })
}

fn shown(cpus: &Cpus) -> String {
    if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() }
}

const ASSUMED: &str = "no CPU is isolated: all but the first core are assumed";

/// CPUs that are isolated, or were meant to be; else all but the first core.
fn isolated(tree: &dyn Tree, topology: Option<&Topology>) -> (Cpus, &'static str) {
    let cpus = |path| tree.text(path).ok().and_then(|text| text.parse::<Cpus>().ok());
    let set = ["/sys/devices/system/cpu/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated"]
        .into_iter()
        .chain(["/sys/devices/system/cpu/nohz_full"])
        .filter_map(cpus)
        .fold(Cpus::none(), |all, cpus| all.union(&cpus));
    let online = topology.map(Topology::online).unwrap_or_default();
    let asked = tree.text("/proc/cmdline").map(|line| wanted(&BootLine::parse(&line)));
    let all = set.union(&asked.unwrap_or_default().intersection(&online));
    if !all.is_empty() && all != online {
        return (all, "what the kernel isolates or the boot line asks for");
    }
    let exclusive = given_by_kubelet(tree);
    if !exclusive.is_empty() && exclusive != online {
        return (exclusive, "what kubelet's static CPU manager gives to single containers");
    }
    let Some(topology) = topology else { return (Cpus::none(), "the CPUs are not known") };
    let first = topology.with_siblings(&online.iter().take(1).collect());
    (online.minus(&first), ASSUMED)
}

/// CPUs that Kubernetes' static CPU manager gave to single containers.
fn given_by_kubelet(tree: &dyn Tree) -> Cpus {
    let state = tree.text("/var/lib/kubelet/cpu_manager_state").unwrap_or_default();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap_or_default();
    let pods = state["entries"].as_object().into_iter().flat_map(|pods| pods.values());
    pods.filter_map(|pod| pod.as_object())
        .flat_map(|containers| containers.values())
        .filter_map(|cpus| cpus.as_str()?.parse().ok())
        .fold(Cpus::none(), |all, cpus| all.union(&cpus))
}

/// The CPUs that a boot line means to isolate, mistyped names included.
fn wanted(line: &BootLine) -> Cpus {
    let lists = ["isolcpus", "isolcpu", "nohz_full"].map(|name| line.last(name));
    lists.into_iter().flatten().fold(Cpus::none(), |all, list| all.union(&listed_cpus(list)))
}

/// The numbers and ranges in the value of a boot parameter, without its flags.
pub(crate) fn listed_cpus(value: &str) -> Cpus {
    let parts = value.split(',').filter(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    parts
        .filter_map(|part| part.parse::<Cpus>().ok())
        .fold(Cpus::none(), |all, one| all.union(&one))
}

/// The CPUs that the value of a boot parameter means: flags aside, with the words that only boot
/// parameters know (`all`, `N` for the last CPU, `0-10:1/2`; lib/bitmap-str.c). `None` for what is not a list.
pub(crate) fn boot_list(value: &str, possible: &Cpus) -> Option<Cpus> {
    let last = possible.iter().next_back()?;
    let mut all = Cpus::none();
    for part in value.split(',').filter(|part| !matches!(*part, "domain" | "nohz" | "managed_irq"))
    {
        if part.eq_ignore_ascii_case("all") {
            all = all.union(possible);
            continue;
        }
        let (range, groups) =
            part.split_once(':').map_or((part, None), |(range, groups)| (range, Some(groups)));
        let range: Cpus = range.replace('N', &last.to_string()).parse().ok()?;
        let (used, group) = match groups {
            None => (1, 1),
            Some(groups) => {
                let (used, group) = groups.split_once('/')?;
                (used.parse::<u32>().ok()?, group.parse::<u32>().ok().filter(|group| *group > 0)?)
            }
        };
        let first = range.iter().next()?;
        all = all.union(&range.iter().filter(|cpu| (cpu - first) % group < used).collect());
    }
    Some(all)
}

fn interfaces(tree: &dyn Tree) -> Vec<String> {
    let names = tree.list("/sys/class/net").unwrap_or_default();
    let is_device = |name: &&String| {
        let folder = format!("/sys/class/net/{name}");
        tree.link(&format!("{folder}/device/driver")).is_ok()
            && tree.text(&format!("{folder}/operstate")).is_ok_and(|state| state == "up")
    };
    names.iter().filter(is_device).cloned().collect()
}

fn workload(tree: &dyn Tree) -> (Workload, &'static str) {
    let runs = |start: &str| {
        let numbers = tree.list("/proc").unwrap_or_default();
        let pids = numbers.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        pids.filter_map(|pid| tree.text(&format!("/proc/{pid}/stat")).ok())
            .any(|stat| stat.split_once('(').is_some_and(|(_, rest)| rest.starts_with(start)))
    };
    let line = tree.text("/proc/cmdline").map(|line| BootLine::parse(&line)).unwrap_or_default();
    if runs("qemu") || runs("cloud-hyperviso") {
        return (Workload::Vm, "a virtual machine runs here");
    }
    if is_guest(tree).unwrap_or(false) {
        return (Workload::Guest, "/proc/cpuinfo has the flag hypervisor");
    }
    if !wanted(&line).is_empty() || line.last("idle") == Some("poll") {
        return (Workload::Poll, "the boot line isolates CPUs");
    }
    (Workload::Interrupt, "the boot line isolates nothing")
}

/// Whether the CPU says that a hypervisor is below.
pub(crate) fn is_guest(tree: &dyn Tree) -> Result<bool, Unread> {
    let text = tree.text("/proc/cpuinfo")?;
    let flags = text.lines().find(|line| line.starts_with("flags"));
    Ok(flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_boot_parameters() {
        let possible: Cpus = "0-7".parse().unwrap();
        let list = |value: &str| boot_list(value, &possible).map(|cpus| cpus.to_string());
        assert_eq!(list("domain,managed_irq,2-3").as_deref(), Some("2-3"));
        assert_eq!(list("1-N").as_deref(), Some("1-7"));
        assert_eq!(list("all").as_deref(), Some("0-7"));
        assert_eq!(list("0-7:1/2").as_deref(), Some("0,2,4,6"));
        assert_eq!(list("manged_irq,2"), None);
    }
}
