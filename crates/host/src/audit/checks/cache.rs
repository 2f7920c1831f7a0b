//! CAT: the last-level cache and memory bandwidth, and who shares them.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{few, or_none};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use crate::{Cpus, Unread};

const ROOT: &str = "/sys/fs/resctrl";
const METAL: &[Need] = &[Need::Metal, Need::Isolated];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "CAT-001",
        title: "The last-level cache is partitioned",
        importance: Importance::Medium,
        why: "Other programs evict the packets' data from the shared cache. No event shows this; every access \
            takes longer.",
        read_from: &["/proc/cpuinfo", "/proc/filesystems", "/proc/mounts"],
        wanted: "resctrl is mounted where the CPU has cat_l3",
        set_now: "mount -t resctrl resctrl /sys/fs/resctrl",
        undo: "umount /sys/fs/resctrl",
        source: "ducked-tails, section III; Documentation/filesystems/resctrl.rst",
        needs: METAL,
        evaluate: mounted,
        ..Check::BLANK
    },
    Check {
        id: "CAT-002",
        title: "Isolated CPUs have ways of the cache for themselves",
        importance: Importance::Medium,
        why: "A separate group with ways that no other group has keeps the packets' data in the cache. A group becomes exclusive only when no other group, the default one among them, has any of its ways in any cache.",
        read_from: &["/sys/fs/resctrl/*/cpus_list", "/sys/fs/resctrl/*/mode"],
        wanted: "all of {iso} in groups of the mode exclusive",
        cost: "less cache for everything else",
        set_now: "cd /sys/fs/resctrl; echo 'L3:0=7f0;1=7f0' > schemata; mkdir packets; echo 'L3:0=00f;1=00f' > packets/schemata; echo {iso} > packets/cpus_list; echo exclusive > packets/mode (for two caches of 11 ways: schemata names the caches, info/L3/cbm_mask is 7ff; the default group gives up first what the new one gets, in each cache and in each line of schemata but MB)",
        undo: "rmdir /sys/fs/resctrl/packets; echo 'L3:0=7ff;1=7ff' > /sys/fs/resctrl/schemata",
        source: "ducked-tails, section III; resctrl.rst",
        needs: METAL,
        evaluate: exclusive,
        ..Check::BLANK
    },
    Check {
        id: "CAT-003",
        title: "One program partitions the cache",
        importance: Importance::Low,
        why: "pqos writes registers directly: the files of resctrl then do not show the actual setting.",
        read_from: &["/proc/#/task/#/stat", "/proc/mounts"],
        wanted: "no pqos or rdtset runs while resctrl is mounted",
        set_now: "pqos -I uses resctrl instead of registers",
        undo: "",
        source: "intel-cmt-cat, issues 282, 288, 290",
        needs: METAL,
        evaluate: one_owner,
        ..Check::BLANK
    },
    Check {
        id: "CAT-004",
        title: "Memory bandwidth of isolated CPUs is not limited",
        importance: Importance::Low,
        why: "A limit inserts pauses between memory accesses of each core in the group.",
        read_from: &["/sys/fs/resctrl/schemata", "/sys/fs/resctrl/*/schemata"],
        wanted: "MB: 100 for the group of {iso}",
        set_now: "echo MB:0=100 > /sys/fs/resctrl/GROUP/schemata",
        undo: "write the old value",
        source: "resctrl.rst",
        needs: METAL,
        evaluate: bandwidth,
        ..Check::BLANK
    },
];

fn is_mounted(f: &Facts<'_>) -> Result<bool, Unread> {
    Ok(f.text("/proc/mounts")?
        .lines()
        .any(|line| line.split_whitespace().nth(2) == Some("resctrl")))
}

fn mounted(f: &Facts<'_>) -> Answer {
    if !f.has_flag("cat_l3")? {
        return not_applicable("the CPU cannot divide its last-level cache (cat_l3)");
    }
    let known = f.text("/proc/filesystems")?.lines().any(|line| line.trim().ends_with("resctrl"));
    if !known {
        return judge(
            EvidenceLevel::Set,
            false,
            CheckStatus::Warn,
            "this kernel is built without CONFIG_X86_CPU_RESCTRL",
        );
    }
    let there = is_mounted(f)?;
    judge(
        EvidenceLevel::Set,
        there,
        CheckStatus::Warn,
        if there { "resctrl is mounted" } else { "resctrl is not mounted" },
    )
}

/// Groups with the CPUs that are in them.
fn groups(f: &Facts<'_>) -> Result<Vec<(String, Cpus)>, Unread> {
    let mut groups = Vec::new();
    for (path, _) in f.glob(&format!("{ROOT}/*/cpus_list"))? {
        let folder = path.trim_end_matches("/cpus_list").to_owned();
        groups.push((folder, f.cpus(&path)?));
    }
    Ok(groups)
}

fn exclusive(f: &Facts<'_>) -> Answer {
    if !is_mounted(f)? {
        return not_applicable("resctrl is not mounted (CAT-001)");
    }
    let mut own = Cpus::none();
    for (folder, cpus) in groups(f)? {
        if f.text(&format!("{folder}/mode"))? == "exclusive" {
            own = own.union(&cpus);
        }
    }
    let left = f.iso().minus(&own);
    let said = match left.is_empty() {
        true => format!("CPUs {own} have exclusive ways"),
        false => format!("CPUs {left} share the cache (in exclusive groups: {})", or_none(&own)),
    };
    judge(EvidenceLevel::Set, left.is_empty(), CheckStatus::Warn, said)
}

fn one_owner(f: &Facts<'_>) -> Answer {
    if !is_mounted(f)? {
        return not_applicable("resctrl is not mounted (CAT-001)");
    }
    let mut running = Vec::new();
    for name in ["pqos", "rdtset", "intel_rdt", "membw"] {
        if f.runs(name)? {
            running.push(name);
        }
    }
    let said = if running.is_empty() { "no other program".to_owned() } else { few(&running) };
    judge(EvidenceLevel::Seen, running.is_empty(), CheckStatus::Warn, said)
}

fn bandwidth(f: &Facts<'_>) -> Answer {
    if !is_mounted(f)? {
        return not_applicable("resctrl is not mounted (CAT-001)");
    }
    let mut ours = groups(f)?;
    ours.push((ROOT.to_owned(), f.cpus(&format!("{ROOT}/cpus_list"))?));
    let mut limited = Vec::new();
    for (folder, cpus) in ours.iter().filter(|(_, cpus)| !cpus.intersection(f.iso()).is_empty()) {
        let text = f.text(&format!("{folder}/schemata"))?;
        let Some(line) = text.lines().find_map(|line| line.trim().strip_prefix("MB:")) else {
            continue;
        };
        if line.split(';').any(|part| {
            part.split_once('=').is_some_and(|(_, share)| {
                share.trim().parse::<u32>().is_ok_and(|share| share < 100)
            })
        }) {
            limited.push(format!("CPUs {cpus}: MB {line}"));
        }
    }
    let said = if limited.is_empty() { "not limited".to_owned() } else { few(&limited) };
    judge(EvidenceLevel::Set, limited.is_empty(), CheckStatus::Warn, said)
}
