//! Division of CPUs between the host, the virtual machine's system and the application.
//!
//! The division of Figure 1 of "Ducked Tails": the host keeps the first core, the virtual machine's system
//! gets the second, and the rest belongs to the application alone.

use super::request::Request;
use serde::Serialize;
use tailtrim_host::Workload;
use tailtrim_host::{Cpus, Topology};
use thiserror::Error;

/// The CPU that starts the others. Kernels keep their clock there, and `nohz_full` never takes it.
const BOOT_CPU: u32 = 0;

/// CPUs by owner.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Division {
    /// The host's: interrupts, daemons, shells.
    pub housekeeping: Cpus,
    /// CPUs that the host leaves alone: [`Division::vm_os`] and [`Division::application`].
    pub isolated: Cpus,
    /// The virtual machine's own system.
    pub vm_os: Cpus,
    /// The application.
    pub application: Cpus,
    /// Second threads of cores, which are switched off.
    pub offline: Cpus,
    /// The isolated cores with their threads, in order.
    pub cores: Vec<Cpus>,
    /// NUMA node of the interfaces.
    pub node: Option<u32>,
    /// Why it is so.
    pub why: Vec<String>,
}

/// No division is possible as asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DivisionError {
    /// A CPU that is not there.
    #[error("{part}: {} not online here (online: {online})", .cpus.does("is", "are"))]
    NotOnline {
        /// Intended use: isolated or housekeeping.
        part: &'static str,
        /// The CPUs.
        cpus: Cpus,
        /// Online CPUs.
        online: Cpus,
    },
    /// The boot CPU cannot be isolated.
    #[error(
        "CPU {BOOT_CPU} cannot be isolated: it started the others and keeps the clock; leave it to housekeeping"
    )]
    BootCpu,
    /// Both sides want a CPU.
    #[error("{} both isolated and for housekeeping", .0.does("is", "are"))]
    Both(Cpus),
    /// Nothing is left for the host.
    #[error("no CPU is left to housekeeping: keep at least CPU {BOOT_CPU}")]
    NoHousekeeping,
    /// Nothing is left for the workload.
    #[error(
        "this profile needs isolated CPUs, but {0}: isolate at least one (this host has {1} cores)"
    )]
    NoneIsolated(&'static str, usize),
    /// A core would be divided.
    #[error(
        "CPU {sibling} shares a core with the isolated CPU {cpu} but is left to housekeeping: isolate \
         both ({both}), or switch second threads off"
    )]
    Torn {
        /// The isolated CPU.
        cpu: u32,
        /// Its sibling.
        sibling: u32,
        /// The list that would be right.
        both: Cpus,
    },
    /// A virtual machine needs a core for its system.
    #[error(
        "a virtual machine needs one core for its system and one for the application, but {0} is isolated: \
         isolate two or more"
    )]
    OneCore(Cpus),
}

struct Core {
    threads: Cpus,
    node: Option<u32>,
    cache: Option<Cpus>,
}

impl Core {
    fn first(&self) -> u32 {
        self.threads.iter().next().unwrap_or(BOOT_CPU)
    }
}

/// Divide the CPUs of a host. `nodes` are those of the interfaces, as far as they are known.
///
/// # Errors
///
/// [`DivisionError`] says what stands against it.
pub fn divide(
    topology: &Topology,
    request: &Request,
    nodes: &[u32],
) -> Result<Division, DivisionError> {
    let mut division = Division { node: nodes.first().copied(), ..Division::default() };
    let cores = cores(topology, request, &mut division);
    let usable = cores.iter().fold(Cpus::none(), |all, core| all.union(&core.threads));
    check_asked(request, &usable)?;
    match (&request.isolate, &request.housekeeping) {
        (Some(isolate), _) => {
            division.isolated = isolate.minus(&division.offline);
            division.why.push(format!("{} isolated (--isolate)", isolate.does("is", "are")));
        }
        (None, Some(housekeeping)) => {
            division.isolated = usable.minus(housekeeping);
            division.why.push(format!("all but {}, left to the host", housekeeping.named()));
        }
        (None, None) if wants_none(request) => {
            division.why.push(
                "nothing is isolated: the profile does not need it, and --isolate is not given"
                    .into(),
            );
        }
        (None, None) => choose(&cores, request, &mut division)?,
    }
    division.housekeeping = usable.minus(&division.isolated);
    if division.housekeeping.is_empty() {
        return Err(DivisionError::NoHousekeeping);
    }
    whole_cores(&cores, &division)?;
    if division.isolated.is_empty() && request.profile.needs_isolation() {
        return Err(DivisionError::NoneIsolated("none is left", cores.len()));
    }
    give(&cores, request, &mut division)?;
    Ok(division)
}

fn wants_none(request: &Request) -> bool {
    !request.profile.needs_isolation()
        && request.isolate_cores.is_none()
        && request.housekeeping_cores.is_none()
}

fn cores(topology: &Topology, request: &Request, division: &mut Division) -> Vec<Core> {
    let online = topology.online();
    let mut cores: Vec<Core> = Vec::new();
    for cpu in &topology.cpus {
        if cores.iter().any(|core| core.threads.contains(cpu.number)) {
            continue;
        }
        if division.offline.contains(cpu.number) {
            continue;
        }
        let mut threads = cpu.siblings.intersection(&online);
        if request.smt_off() && threads.len() > 1 {
            let rest: Cpus = threads.iter().skip(1).collect();
            division.offline = division.offline.union(&rest);
            threads = threads.minus(&rest);
        }
        cores.push(Core { threads, node: cpu.node, cache: cpu.cache.clone() });
    }
    if !division.offline.is_empty() {
        let text = format!(
            "second threads ({}) are switched off: they would share execution units with the application",
            division.offline
        );
        division.why.push(text);
    }
    cores
}

fn check_asked(request: &Request, usable: &Cpus) -> Result<(), DivisionError> {
    let asked = [("isolated", &request.isolate), ("housekeeping", &request.housekeeping)];
    for (part, cpus) in asked {
        let missing = cpus.as_ref().map_or_else(Cpus::none, |cpus| cpus.minus(usable));
        if !missing.is_empty() {
            return Err(DivisionError::NotOnline { part, cpus: missing, online: usable.clone() });
        }
    }
    let isolate = request.isolate.clone().unwrap_or_default();
    if isolate.contains(BOOT_CPU) {
        return Err(DivisionError::BootCpu);
    }
    let both = isolate.intersection(&request.housekeeping.clone().unwrap_or_default());
    if both.is_empty() { Ok(()) } else { Err(DivisionError::Both(both)) }
}

/// Cores of the interfaces' node first, away from the boot CPU's cache where there are several.
fn choose(cores: &[Core], request: &Request, division: &mut Division) -> Result<(), DivisionError> {
    let Some(boot) = cores.iter().find(|core| core.threads.contains(BOOT_CPU)).or(cores.first())
    else {
        return Err(DivisionError::NoneIsolated("no CPU is known", 0));
    };
    let mut rest: Vec<&Core> = cores.iter().filter(|core| core.first() != boot.first()).collect();
    let node = division.node.or(if several_nodes(cores) { boot.node } else { None });
    let near = |core: &Core| node.is_none() || core.node == node;
    let shares = |core: &Core| core.cache.is_some() && core.cache == boot.cache;
    // Away from the boot CPU's cache in ascending order, within it from the far end: the host keeps a run.
    let order = |core: &Core| {
        let number = i64::from(core.first());
        if shares(core) { (true, -number) } else { (false, number) }
    };
    rest.sort_by_key(|core| (!near(core), order(core)));
    let kept = request.housekeeping_cores.unwrap_or(usual_housekeeping(cores.len())).max(1);
    let wanted = match (request.isolate_cores, node) {
        (Some(wanted), _) => wanted,
        (None, Some(_)) => rest.iter().filter(|core| near(core)).count(),
        (None, None) => rest.len(),
    };
    let taken = wanted.min((rest.len() + 1).saturating_sub(kept));
    if taken == 0 {
        return Err(DivisionError::NoneIsolated("housekeeping takes all", cores.len()));
    }
    if let Some(asked) = request.isolate_cores.filter(|asked| *asked > taken) {
        let text =
            format!("{taken} of the {asked} cores that you asked for: the host keeps {kept}");
        division.why.push(text);
    }
    for core in &rest[..taken] {
        division.isolated = division.isolated.union(&core.threads);
    }
    explain(&rest[..taken], boot, node, division);
    Ok(())
}

fn explain(taken: &[&Core], boot: &Core, node: Option<u32>, division: &mut Division) {
    let why = &mut division.why;
    why.push(format!("the host keeps CPU {BOOT_CPU}: it started the others and keeps the clock"));
    if taken.iter().any(|core| core.threads.len() > 1) {
        why.push("threads of a core stay together".into());
    }
    if let Some(node) = node {
        let away = taken.iter().filter(|core| core.node != Some(node)).count();
        let of = if division.node.is_some() { "the interfaces'" } else { "the boot CPU's" };
        why.push(match away {
            0 => format!("all isolated cores are on NUMA node {node}, {of}"),
            _ => format!("{away} of the isolated cores are not on NUMA node {node}, {of}"),
        });
    }
    if boot.cache.is_some() && taken.iter().all(|core| core.cache != boot.cache) {
        why.push("none of them shares its last-level cache with the host's first core".into());
    }
}

fn several_nodes(cores: &[Core]) -> bool {
    cores.windows(2).any(|pair| pair[0].node != pair[1].node)
}

/// One core for a small machine; more where more devices and threads are to be served.
fn usual_housekeeping(cores: usize) -> usize {
    match cores {
        0..=8 => 1,
        9..=32 => 2,
        _ => 4,
    }
}

fn whole_cores(cores: &[Core], division: &Division) -> Result<(), DivisionError> {
    for core in cores {
        let mine = core.threads.intersection(&division.isolated);
        let left = core.threads.minus(&mine);
        if let (Some(cpu), Some(sibling)) = (mine.iter().next(), left.iter().next()) {
            let both = cores
                .iter()
                .filter(|core| !core.threads.intersection(&division.isolated).is_empty())
                .fold(Cpus::none(), |all, core| all.union(&core.threads));
            return Err(DivisionError::Torn { cpu, sibling, both });
        }
    }
    Ok(())
}

fn give(cores: &[Core], request: &Request, division: &mut Division) -> Result<(), DivisionError> {
    let mine = cores.iter().map(|core| &core.threads);
    division.cores =
        mine.filter(|threads| threads.is_subset(&division.isolated)).cloned().collect();
    division.application = division.isolated.clone();
    if request.workload != Workload::Vm || division.isolated.is_empty() {
        return Ok(());
    }
    let first = division.cores.first().cloned().unwrap_or_default();
    division.application = division.isolated.minus(&first);
    if division.application.is_empty() {
        return Err(DivisionError::OneCore(division.isolated.clone()));
    }
    division.why.push(format!(
        "the virtual machine's system gets {}, so that its interrupts stay there",
        first.named()
    ));
    division.vm_os = first;
    Ok(())
}

#[cfg(test)]
mod tests;
