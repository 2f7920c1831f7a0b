//! MEM, first part: what the kernel does to memory by itself.

use super::*;

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("memory.json"),
    evaluators: &[
        ("MEM-001", |f| {
            file(f, "/sys/kernel/mm/transparent_hugepage/enabled", Warn, |text| {
                matches!(chosen(text), "never" | "madvise")
            })
        }),
        ("MEM-002", khugepaged),
        ("MEM-003", |f| file(f, "/sys/kernel/mm/ksm/run", Fail, |text| matches!(text, "0" | "2"))),
        ("MEM-004", |f| sysctl(f, "vm.compaction_proactiveness", Warn, |text| text == "0")),
        ("MEM-005", |f| sysctl(f, "kernel.numa_balancing", Fail, |text| text == "0")),
        ("MEM-006", |f| sysctl(f, "vm.stat_interval", Warn, at_least(10))),
        ("MEM-007", swap),
        ("MEM-009", huge_pages),
        ("MEM-010", hugetlbfs),
        ("MEM-011", write_back),
        ("MEM-017", |f| sysctl(f, "vm.zone_reclaim_mode", Warn, |text| text == "0")),
    ],
};

fn khugepaged(f: &Facts<'_>) -> Answer {
    let Some(enabled) = f.optional(&format!("{THP}/enabled"))? else {
        return not_applicable("this kernel has no transparent huge pages");
    };
    if chosen(&enabled) == "never" {
        return ok(Set, "transparent huge pages are off");
    }
    let defrag = f.text(&format!("{THP}/khugepaged/defrag"))?;
    if defrag == "0" {
        return ok(Set, "khugepaged/defrag is 0");
    }
    let joined = f.number_growth(&format!("{THP}/khugepaged/pages_collapsed"))?;
    let said = format!("khugepaged/defrag is {defrag}, {joined} pages joined while watched");
    judge(Seen, joined == 0, Warn, said)
}

fn swap(f: &Facts<'_>) -> Answer {
    let Some(text) = f.optional("/proc/swaps")? else {
        return not_applicable("this kernel cannot swap");
    };
    let areas: Vec<&str> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    if areas.is_empty() {
        return ok(Set, "no swap");
    }
    let swappiness = f.text("/proc/sys/vm/swappiness")?;
    let good = at_most(10)(&swappiness);
    judge(Set, good, Warn, format!("swap on {}, swappiness {swappiness}", few(&areas)))
}

fn huge_pages(f: &Facts<'_>) -> Answer {
    let all = f.glob("/sys/devices/system/node/node#/hugepages/*/nr_hugepages")?;
    if all.is_empty() {
        return not_applicable("this kernel shows no huge pages by node");
    }
    let mut wanted = Vec::new();
    for nic in &f.intent().nics {
        let node = f.optional(&format!("/sys/class/net/{nic}/device/numa_node"))?;
        wanted.extend(node.filter(|node| !node.starts_with('-')));
    }
    let there = |node: Option<&String>| {
        all.iter()
            .filter(|(path, _)| node.is_none_or(|node| path.contains(&format!("/node{node}/"))))
            .any(|(_, count)| at_least(1)(count))
    };
    let without: Vec<&String> = wanted.iter().filter(|node| !there(Some(node))).collect();
    let good = without.is_empty() && there(None);
    let pools: Vec<String> =
        all.iter().filter(|(_, count)| at_least(1)(count)).filter_map(pool).collect();
    let said = match (good, without.first()) {
        (true, _) => format!("reserved: {}", pools.join(", ")),
        (false, Some(node)) => format!("node {node}, where the interface is, has none"),
        (false, None) => "none are reserved".to_owned(),
    };
    judge(Set, good, Warn, said)
}

/// Pages of a node, from the path of the file and its content.
fn pool((path, count): &(String, String)) -> Option<String> {
    let node = path.split('/').find(|name| name.starts_with("node") && name.len() > 4)?;
    let kib = path.split('/').nth(7)?.strip_prefix("hugepages-")?.strip_suffix("kB")?;
    let mib = kib.parse::<u64>().ok()? >> 10;
    Some(format!("{count} of {mib} MiB on node {}", &node[4..]))
}

fn hugetlbfs(f: &Facts<'_>) -> Answer {
    let mounts = f.text("/proc/mounts")?;
    let place = mounts.lines().find(|line| line.split_whitespace().nth(2) == Some("hugetlbfs"));
    let said = place.map_or("hugetlbfs is not mounted".to_owned(), |line| {
        format!("mounted on {}", line.split_whitespace().nth(1).unwrap_or_default())
    });
    judge(Set, place.is_some(), Warn, said)
}

fn write_back(f: &Facts<'_>) -> Answer {
    let interval = f.text("/proc/sys/vm/dirty_writeback_centisecs")?;
    let laptop = f.optional("/proc/sys/vm/laptop_mode")?.unwrap_or_else(|| "0".to_owned());
    let good = (interval == "0" || at_least(500)(&interval)) && laptop == "0";
    judge(Set, good, Warn, format!("every {interval} hundredths of a second, laptop_mode {laptop}"))
}
