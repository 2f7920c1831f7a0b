//! CAT: the last-level cache and memory bandwidth, and who shares them.

use super::*;

const ROOT: &str = "/sys/fs/resctrl";

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("cache.json"),
    evaluators: &[
        ("CAT-001", mounted),
        ("CAT-002", exclusive),
        ("CAT-003", one_owner),
        ("CAT-004", bandwidth),
    ],
};

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
        return judge(Set, false, Warn, "this kernel is built without CONFIG_X86_CPU_RESCTRL");
    }
    let there = is_mounted(f)?;
    judge(Set, there, Warn, if there { "resctrl is mounted" } else { "resctrl is not mounted" })
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
        true => format!("{} exclusive ways", own.does("has", "have")),
        false => format!(
            "{} the cache (in exclusive groups: {})",
            left.does("shares", "share"),
            or_none(&own)
        ),
    };
    judge(Set, left.is_empty(), Warn, said)
}

fn one_owner(f: &Facts<'_>) -> Answer {
    if !is_mounted(f)? {
        return not_applicable("resctrl is not mounted (CAT-001)");
    }
    let running = f.running(&["pqos", "rdtset", "intel_rdt", "membw"])?;
    none_of(Seen, &running, Warn, "no other program")
}

fn bandwidth(f: &Facts<'_>) -> Answer {
    if !is_mounted(f)? {
        return not_applicable("resctrl is not mounted (CAT-001)");
    }
    let mut ours = groups(f)?;
    ours.push((ROOT.to_owned(), f.cpus(&format!("{ROOT}/cpus_list"))?));
    let mut limited = Vec::new();
    for (folder, cpus) in ours.iter().filter(|(_, cpus)| f.touches(cpus)) {
        let text = f.text(&format!("{folder}/schemata"))?;
        let Some(line) = text.lines().find_map(|line| line.trim().strip_prefix("MB:")) else {
            continue;
        };
        if line.split(';').any(|part| {
            part.split_once('=').is_some_and(|(_, share)| {
                share.trim().parse::<u32>().is_ok_and(|share| share < 100)
            })
        }) {
            limited.push(format!("{}: MB {line}", cpus.named()));
        }
    }
    none_of(Set, &limited, Warn, "not limited")
}
