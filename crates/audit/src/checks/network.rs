//! NET, first part: how the interface is set.

use super::*;

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("network.json"),
    evaluators: &[
        ("NET-001", |f| per_nic(f, coalescing)),
        ("NET-002", |f| per_nic(f, rings)),
        ("NET-003", |f| per_nic(f, gathering)),
        ("NET-004", |f| per_nic(f, queues)),
        ("NET-005", |f| per_nic(f, indirection)),
        ("NET-006", |f| per_nic(f, steering)),
        ("NET-015", |f| per_nic(f, pause)),
        ("NET-016", |f| per_nic(f, energy)),
        ("NET-019", |f| per_nic(f, stamping)),
        ("NET-021", |f| per_nic(f, driver)),
    ],
};

/// A number that `ethtool` tells; `None` where the driver has no such setting.
fn setting(f: &Facts<'_>, nic: &str, what: &str, key: &str) -> Result<Option<u64>, Unread> {
    Ok(ethtool(f, nic, what, key)?.and_then(|text| text.parse().ok()))
}

fn coalescing(f: &Facts<'_>, nic: &str) -> Answer {
    let adaptive = ethtool(f, nic, "coalesce", "adaptive-rx")?;
    let wait = setting(f, nic, "coalesce", "rx-usecs")?;
    if f.intent().workload == Workload::Poll
        && f.link_name(&format!("/sys/class/net/{nic}/device/driver"))?.is_none()
    {
        return not_applicable("polled by a program, no interrupts");
    }
    let Some(wait) = wait else { return not_applicable("the driver cannot coalesce") };
    let adapts = adaptive.as_deref() == Some("on");
    let said = format!("adaptive-rx {}, rx-usecs {wait}", adaptive.as_deref().unwrap_or("unknown"));
    judge(Set, !adapts && wait <= 3, if adapts || wait > 10 { Fail } else { Warn }, said)
}

fn rings(f: &Facts<'_>, nic: &str) -> Answer {
    let Some(length) = setting(f, nic, "rings", "rx")? else {
        return not_applicable("the driver has no rings to set");
    };
    let most = setting(f, nic, "rings", "rx-max")?.unwrap_or(length);
    judge(Set, length <= 1024, Warn, format!("rx ring {length} of at most {most}"))
}

fn gathering(f: &Facts<'_>, nic: &str) -> Answer {
    let mut on = Vec::new();
    let mut known = false;
    for name in ["rx-lro", "rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding", "rx-gro"] {
        let state = ethtool(f, nic, "features", name)?;
        known |= state.is_some();
        if state.is_some_and(|state| state.starts_with("on")) {
            on.push(name);
        }
    }
    if !known {
        return not_applicable("the driver names no such features");
    }
    let said = if on.is_empty() {
        "packets are not merged".to_owned()
    } else {
        format!("on: {}", on.join(", "))
    };
    judge(Set, on.is_empty(), Warn, said)
}

fn queues(f: &Facts<'_>, nic: &str) -> Answer {
    let count = setting(f, nic, "channels", "combined")?.unwrap_or(0)
        + setting(f, nic, "channels", "rx")?.unwrap_or(0);
    if count == 0 {
        return not_applicable("the driver does not tell its queues");
    }
    let intent = f.intent();
    let enough = match intent.workload {
        Workload::Poll => intent.isolate.len().max(intent.housekeeping.len()),
        _ => intent.housekeeping.len(),
    };
    let said = format!("{count} queues, {} housekeeping CPUs", intent.housekeeping.len());
    judge(Set, count as usize <= enough.max(1), Warn, said)
}

fn indirection(f: &Facts<'_>, nic: &str) -> Answer {
    let Some(text) = ethtool(f, nic, "indirection", "queues")? else {
        return not_applicable("the driver has no indirection table");
    };
    let used = text.split_whitespace().count() as u64;
    let count = setting(f, nic, "channels", "combined")?.unwrap_or(0)
        + setting(f, nic, "channels", "rx")?.unwrap_or(0);
    judge(Set, count == 0 || used <= count, Warn, format!("queues {text} of {count}"))
}

fn steering(f: &Facts<'_>, nic: &str) -> Answer {
    match ethtool(f, nic, "features", "rx-ntuple-filter")? {
        None => not_applicable("the driver does not know ntuple filters"),
        Some(state) if state.contains("fixed") && state.starts_with("off") => {
            not_applicable("the interface cannot steer")
        }
        Some(state) => {
            judge(Set, state.starts_with("on"), Warn, format!("rx-ntuple-filter {state}"))
        }
    }
}

fn pause(f: &Facts<'_>, nic: &str) -> Answer {
    let (Some(rx), Some(tx)) = (ethtool(f, nic, "pause", "rx")?, ethtool(f, nic, "pause", "tx")?)
    else {
        return not_applicable("the driver knows no pause frames");
    };
    judge(Set, rx == "off" && tx == "off", Warn, format!("rx {rx}, tx {tx}"))
}

fn energy(f: &Facts<'_>, nic: &str) -> Answer {
    match ethtool(f, nic, "eee", "enabled")? {
        None => not_applicable("the interface does not know it"),
        Some(state) => {
            judge(Set, state == "off", Fail, format!("energy-efficient Ethernet {state}"))
        }
    }
}

fn stamping(f: &Facts<'_>, nic: &str) -> Answer {
    let Some(abilities) = ethtool(f, nic, "timestamping", "capabilities")? else {
        return not_applicable("the driver tells nothing of stamps");
    };
    let filters = ethtool(f, nic, "timestamping", "receive-filters")?.unwrap_or_default();
    let hardware = abilities.split_whitespace().any(|word| word == "hardware-receive");
    let all = filters.split_whitespace().any(|word| word == "all");
    let said = match (hardware, all) {
        (true, true) => "the hardware stamps every packet".to_owned(),
        (true, false) => format!("the hardware stamps only: {filters}"),
        (false, _) => "only the kernel stamps".to_owned(),
    };
    judge(Set, hardware && all, Warn, said)
}

fn driver(f: &Facts<'_>, nic: &str) -> Answer {
    let mut known = Vec::new();
    for key in ["driver", "version", "firmware"] {
        known.extend(
            ethtool(f, nic, "driver", key)?
                .filter(|text| !text.is_empty())
                .map(|text| format!("{key} {text}")),
        );
    }
    if known.is_empty() {
        return not_applicable("the driver tells nothing");
    }
    ok(Set, few(&known))
}
