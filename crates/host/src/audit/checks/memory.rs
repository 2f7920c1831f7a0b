//! MEM, first part: what the kernel does to memory by itself.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{at_least, at_most, chosen, few, file, sysctl};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use crate::{KernelVersion, Workload};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const POLLED: &[Need] = &[Need::Work(&[Workload::Poll, Workload::Vm])];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "MEM-001",
        title: "No unrequested transparent huge pages",
        importance: Importance::Medium,
        why: "Zeroing 2 MB on a page fault takes 100 µs and more, and joining pages interrupts every CPU that uses the memory.",
        read_from: &["/sys/kernel/mm/transparent_hugepage/enabled"],
        wanted: "never or madvise",
        cost: "programs that neither ask nor use huge pages have more TLB misses",
        set_now: "echo never > /sys/kernel/mm/transparent_hugepage/enabled",
        set_boot: "transparent_hugepage=never",
        undo: "echo always > the same file",
        source: "ducked-tails, Table I; tuned network-latency",
        evaluate: |f| {
            file(f, "/sys/kernel/mm/transparent_hugepage/enabled", CheckStatus::Warn, |text| {
                matches!(chosen(text), "never" | "madvise")
            })
        },
        ..Check::BLANK
    },
    Check {
        id: "MEM-002",
        title: "khugepaged does not join pages",
        importance: Importance::Medium,
        why: "Each join flushes address translations on all CPUs that use the memory.",
        read_from: &[
            "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
            "/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed",
        ],
        wanted: "khugepaged/defrag 0, or no page joined while watched",
        set_now: "echo 0 > /sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
        undo: "echo 1 > the same file",
        source: "AWS trading benchmark; Documentation/admin-guide/mm/transhuge.rst",
        evaluate: khugepaged,
        ..Check::BLANK
    },
    Check {
        id: "MEM-003",
        title: "Equal pages are not merged (KSM)",
        importance: Importance::Medium,
        why: "The search runs all the time; a write to a merged page causes a fault and a copy.",
        read_from: &["/sys/kernel/mm/ksm/run"],
        wanted: "0, or 2 (merged before, now split)",
        cost: "virtual machines use more memory",
        set_now: "echo 2 > /sys/kernel/mm/ksm/run, later 0; systemctl disable --now ksm ksmtuned",
        undo: "echo 1 > the same file",
        source: "ducked-tails; tuned cpu-partitioning",
        evaluate: |f| {
            file(f, "/sys/kernel/mm/ksm/run", CheckStatus::Fail, |text| matches!(text, "0" | "2"))
        },
        ..Check::BLANK
    },
    Check {
        id: "MEM-004",
        title: "Memory is not compacted ahead of need",
        importance: Importance::Medium,
        why: "kcompactd moves pages in the background: each move flushes address translations everywhere.",
        read_from: &["/proc/sys/vm/compaction_proactiveness"],
        wanted: "0",
        cost: "huge pages are harder to get later",
        set_now: "sysctl -w vm.compaction_proactiveness=0",
        undo: "sysctl -w vm.compaction_proactiveness=20",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        since: Some(KernelVersion::new(5, 9)),
        evaluate: |f| {
            sysctl(f, "vm.compaction_proactiveness", CheckStatus::Warn, |text| text == "0")
        },
        ..Check::BLANK
    },
    Check {
        id: "MEM-005",
        title: "No automatic NUMA balancing",
        importance: Importance::High,
        why: "To find the node that uses a page, the kernel unmaps it and waits for a page fault, millions of \
            times, also on isolated CPUs.",
        read_from: &["/proc/sys/kernel/numa_balancing"],
        wanted: "0",
        cost: "place memory by hand (numactl, hugepages of the right node)",
        set_now: "sysctl -w kernel.numa_balancing=0",
        set_boot: "numa_balancing=disable",
        undo: "sysctl -w kernel.numa_balancing=1",
        source: "ducked-tails, Table I; tuned network-latency",
        evaluate: |f| sysctl(f, "kernel.numa_balancing", CheckStatus::Fail, |text| text == "0"),
        ..Check::BLANK
    },
    Check {
        id: "MEM-006",
        title: "Memory statistics are gathered rarely",
        importance: Importance::Medium,
        why: "Work on each CPU once a second folds counters together. Newer kernels leave isolated CPUs out.",
        read_from: &["/proc/sys/vm/stat_interval"],
        wanted: "at least 10 (s)",
        cost: "/proc/vmstat lags behind",
        set_now: "sysctl -w vm.stat_interval=10",
        undo: "sysctl -w vm.stat_interval=1",
        source: "tuned network-latency (10); ducked-tails (3600)",
        evaluate: |f| sysctl(f, "vm.stat_interval", CheckStatus::Warn, at_least(10)),
        ..Check::BLANK
    },
    Check {
        id: "MEM-007",
        title: "No swapping",
        importance: Importance::High,
        why: "A page that comes back from a disk takes milliseconds.",
        read_from: &["/proc/swaps", "/proc/sys/vm/swappiness"],
        wanted: "no swap, or swappiness at most 10",
        cost: "when memory runs out a program is ended instead",
        set_now: "swapoff -a; sysctl -w vm.swappiness=10",
        undo: "swapon -a; sysctl -w vm.swappiness=60",
        source: "tuned latency-performance; AWS trading benchmark",
        evaluate: swap,
        ..Check::BLANK
    },
    Check {
        id: "MEM-009",
        title: "Huge pages on the node of the interface",
        importance: Importance::Medium,
        why: "Packet buffers in small pages miss the TLB; from another node's memory each access takes twice as long.",
        read_from: &[
            "/sys/devices/system/node/node#/hugepages/*/nr_hugepages",
            "/sys/class/net/*/device/numa_node",
        ],
        wanted: "some on the node of {nic}",
        cost: "memory that nothing else can use",
        set_now: "echo 1024 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
        set_boot: "default_hugepagesz=1G hugepagesz=1G hugepages=8",
        undo: "echo 0 > the same file",
        source: "DPDK's Linux guide; NFV host guide",
        needs: POLLED,
        evaluate: huge_pages,
        ..Check::BLANK
    },
    Check {
        id: "MEM-010",
        title: "A file system for huge pages",
        importance: Importance::Low,
        why: "DPDK maps huge pages through it, unless started with --in-memory.",
        read_from: &["/proc/mounts"],
        wanted: "hugetlbfs is mounted",
        set_now: "mount -t hugetlbfs nodev /dev/hugepages",
        undo: "umount /dev/hugepages",
        source: "DPDK's Linux guide",
        needs: POLLED,
        evaluate: hugetlbfs,
        ..Check::BLANK
    },
    Check {
        id: "MEM-011",
        title: "Write-back is rare and bounded",
        importance: Importance::Low,
        why: "Write-back wakes each five seconds; a large backlog makes writers wait.",
        read_from: &["/proc/sys/vm/dirty_writeback_centisecs", "/proc/sys/vm/laptop_mode"],
        wanted: "dirty_writeback_centisecs at least 500 (or 0), laptop_mode 0 (7.2 ignores it)",
        set_now: "sysctl -w vm.dirty_writeback_centisecs=1500 vm.laptop_mode=0",
        undo: "set the old values",
        source: "tuned latency-performance; vm.rst",
        evaluate: write_back,
        ..Check::BLANK
    },
    Check {
        id: "MEM-017",
        title: "No early reclaim of a node's memory",
        importance: Importance::Medium,
        why: "With zone_reclaim_mode a thread that allocates memory on a full node reclaims pages first, although \
            other nodes have free memory.",
        read_from: &["/proc/sys/vm/zone_reclaim_mode"],
        wanted: "0",
        set_now: "sysctl -w vm.zone_reclaim_mode=0",
        undo: "sysctl -w vm.zone_reclaim_mode with the old value",
        source: "Documentation/admin-guide/sysctl/vm.rst",
        evaluate: |f| sysctl(f, "vm.zone_reclaim_mode", CheckStatus::Warn, |text| text == "0"),
        ..Check::BLANK
    },
];

fn khugepaged(f: &Facts<'_>) -> Answer {
    let Some(enabled) = f.optional(&format!("{THP}/enabled"))? else {
        return not_applicable("this kernel has no transparent huge pages");
    };
    if chosen(&enabled) == "never" {
        return judge(
            EvidenceLevel::Set,
            true,
            CheckStatus::Warn,
            "transparent huge pages are off",
        );
    }
    let defrag = f.text(&format!("{THP}/khugepaged/defrag"))?;
    if defrag == "0" {
        return judge(EvidenceLevel::Set, true, CheckStatus::Warn, "khugepaged/defrag is 0");
    }
    let joined = f.growth(&format!("{THP}/khugepaged/pages_collapsed"))?;
    let said = format!("khugepaged/defrag is {defrag}, {joined} pages joined while watched");
    judge(EvidenceLevel::Seen, joined == 0, CheckStatus::Warn, said)
}

fn swap(f: &Facts<'_>) -> Answer {
    let Some(text) = f.optional("/proc/swaps")? else {
        return not_applicable("this kernel cannot swap");
    };
    let areas: Vec<&str> =
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    if areas.is_empty() {
        return judge(EvidenceLevel::Set, true, CheckStatus::Warn, "no swap");
    }
    let swappiness = f.text("/proc/sys/vm/swappiness")?;
    let good = at_most(10)(&swappiness);
    judge(
        EvidenceLevel::Set,
        good,
        CheckStatus::Warn,
        format!("swap on {}, swappiness {swappiness}", few(&areas)),
    )
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
    let said = match (good, without.first()) {
        (true, _) => "huge pages are reserved where they are needed".to_owned(),
        (false, Some(node)) => format!("node {node}, where the interface is, has none"),
        (false, None) => "none are reserved".to_owned(),
    };
    judge(EvidenceLevel::Set, good, CheckStatus::Warn, said)
}

fn hugetlbfs(f: &Facts<'_>) -> Answer {
    let mounts = f.text("/proc/mounts")?;
    let place = mounts.lines().find(|line| line.split_whitespace().nth(2) == Some("hugetlbfs"));
    let said = place.map_or("hugetlbfs is not mounted".to_owned(), |line| {
        format!("mounted on {}", line.split_whitespace().nth(1).unwrap_or_default())
    });
    judge(EvidenceLevel::Set, place.is_some(), CheckStatus::Warn, said)
}

fn write_back(f: &Facts<'_>) -> Answer {
    let interval = f.text("/proc/sys/vm/dirty_writeback_centisecs")?;
    let laptop = f.optional("/proc/sys/vm/laptop_mode")?.unwrap_or_else(|| "0".to_owned());
    let good = (interval == "0" || at_least(500)(&interval)) && laptop == "0";
    judge(
        EvidenceLevel::Set,
        good,
        CheckStatus::Warn,
        format!("every {interval} hundredths of a second, laptop_mode {laptop}"),
    )
}
