//! Which CPUs share a core, a last-level cache, a NUMA node.

use super::cpus::Cpus;
use super::tree::{Tree, Unread};

const CPUS: &str = "/sys/devices/system/cpu";

/// One CPU (a hardware thread) and what it shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: u32,
    /// CPUs of the same core, itself included.
    pub siblings: Cpus,
    /// CPUs of the same last-level cache, itself included; `None` where it is not told.
    pub cache: Option<Cpus>,
    /// NUMA node; `None` where there are none.
    pub node: Option<u32>,
}

/// The CPUs of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Those that are online, in order.
    pub cpus: Vec<Cpu>,
    /// Those that could be online.
    pub possible: Cpus,
}

impl Topology {
    /// Read it from `/sys/devices/system`.
    ///
    /// # Errors
    ///
    /// The list of CPUs is not there; everything else may be missing.
    pub fn read<T: Tree + ?Sized>(tree: &T) -> Result<Self, Unread> {
        let online = cpus(tree, &format!("{CPUS}/online"))?;
        let possible = cpus(tree, &format!("{CPUS}/possible")).unwrap_or_else(|_| online.clone());
        let nodes = nodes(tree);
        let cpus = online.iter().map(|number| cpu(tree, number, &nodes)).collect();
        Ok(Self { cpus, possible })
    }

    /// The CPUs that are online.
    #[must_use]
    pub fn online(&self) -> Cpus {
        self.cpus.iter().map(|cpu| cpu.number).collect()
    }

    /// All CPUs that share a core with one of these, these included.
    #[must_use]
    pub fn with_siblings(&self, cpus: &Cpus) -> Cpus {
        let known = self.cpus.iter().filter(|cpu| cpus.contains(cpu.number));
        known.fold(cpus.clone(), |all, cpu| all.union(&cpu.siblings))
    }
}

fn cpu<T: Tree + ?Sized>(tree: &T, number: u32, nodes: &[(u32, Cpus)]) -> Cpu {
    let place = format!("{CPUS}/cpu{number}");
    let siblings = cpus(tree, &format!("{place}/topology/thread_siblings_list"));
    Cpu {
        number,
        siblings: siblings.unwrap_or_else(|_| [number].into_iter().collect()),
        cache: last_level_cache(tree, &place),
        node: nodes.iter().find(|(_, cpus)| cpus.contains(number)).map(|(node, _)| *node),
    }
}

fn last_level_cache<T: Tree + ?Sized>(tree: &T, place: &str) -> Option<Cpus> {
    let folder = format!("{place}/cache");
    let caches = tree.list(&folder).ok()?;
    let of = |cache: &String| {
        let level: u32 = tree.text(&format!("{folder}/{cache}/level")).ok()?.parse().ok()?;
        Some((level, cpus(tree, &format!("{folder}/{cache}/shared_cpu_list")).ok()?))
    };
    let last = caches.iter().filter_map(of).max_by_key(|(level, _)| *level)?;
    Some(last.1)
}

fn nodes<T: Tree + ?Sized>(tree: &T) -> Vec<(u32, Cpus)> {
    let folder = "/sys/devices/system/node";
    let names = tree.list(folder).unwrap_or_default();
    let of = |name: &String| {
        let number = name.strip_prefix("node")?.parse().ok()?;
        Some((number, cpus(tree, &format!("{folder}/{name}/cpulist")).ok()?))
    };
    names.iter().filter_map(of).collect()
}

fn cpus<T: Tree + ?Sized>(tree: &T, path: &str) -> Result<Cpus, Unread> {
    let text = tree.text(path)?;
    text.parse()
        .map_err(|problem| Unread::Broken { path: path.to_owned(), problem: format!("{problem}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn two_nodes_of_two_threads() {
        let mut tree = Memory::new(true)
            .with("/sys/devices/system/cpu/online", "0-3\n")
            .with("/sys/devices/system/cpu/possible", "0-7\n")
            .with("/sys/devices/system/node/node0/cpulist", "0,2\n")
            .with("/sys/devices/system/node/node1/cpulist", "1,3\n")
            .with("/sys/devices/system/node/possible", "0-1\n");
        for (cpu, siblings) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
            let place = format!("/sys/devices/system/cpu/cpu{cpu}");
            tree.insert(&format!("{place}/topology/thread_siblings_list"), siblings);
            tree.insert(&format!("{place}/cache/index0/level"), "1");
            tree.insert(&format!("{place}/cache/index0/shared_cpu_list"), siblings);
            tree.insert(&format!("{place}/cache/index3/level"), "3");
            tree.insert(&format!("{place}/cache/index3/shared_cpu_list"), "0-3");
        }
        let topology = Topology::read(&tree).unwrap();
        assert_eq!(topology.online().to_string(), "0-3");
        assert_eq!(topology.possible.to_string(), "0-7");
        let cpu = &topology.cpus[1];
        assert_eq!((cpu.number, cpu.node), (1, Some(1)));
        assert_eq!(cpu.cache.as_ref().unwrap().to_string(), "0-3");
        let one: Cpus = "3".parse().unwrap();
        assert_eq!(topology.with_siblings(&one).to_string(), "1,3");
    }

    #[test]
    fn without_a_list_of_cpus_nothing_is_known() {
        assert!(matches!(Topology::read(&Memory::new(true)), Err(Unread::Missing { .. })));
    }
}
