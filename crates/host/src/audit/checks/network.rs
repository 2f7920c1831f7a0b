//! NET, first part: how the interface is set.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{ethtool, few, per_nic};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use crate::Workload;

const NIC: &[Need] = &[Need::Nic];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "NET-001",
        title: "No or short interrupt coalescing",
        importance: Importance::High,
        why: "Coalescing delays the first packet to save interrupts: 3 to 50 µs and more, adaptive modes change it with the load.",
        read_from: &["/tailtrim/ethtool/*/coalesce"],
        wanted: "adaptive-rx off, rx-usecs at most 3",
        cost: "more interrupts; bursts may be faster with 3 than with 0: measure",
        set_now: "ethtool -C {nic} adaptive-rx off adaptive-tx off rx-usecs 0 tx-usecs 0",
        undo: "ethtool -C with the old values",
        source: "reflector study, section 4; NFV host guide",
        needs: NIC,
        evaluate: |f| per_nic(f, coalescing),
        ..Check::BLANK
    },
    Check {
        id: "NET-002",
        title: "Receive rings are short",
        importance: Importance::Medium,
        why: "Under overload a packet waits for the whole ring: its length bounds the worst latency (30 ms and 3 \
            ms in one study).",
        read_from: &["/tailtrim/ethtool/*/rings"],
        wanted: "at most 1024 for receiving",
        cost: "loss in bursts: watch NET-014; setting it interrupts the link",
        set_now: "ethtool -G {nic} rx 512",
        undo: "ethtool -G with the old value",
        source: "ducked-tails, section V; against it: AWS trading benchmark (4096)",
        needs: NIC,
        evaluate: |f| per_nic(f, rings),
        ..Check::BLANK
    },
    Check {
        id: "NET-003",
        title: "Packets are not merged (GRO, LRO)",
        importance: Importance::Medium,
        why: "GRO, LRO and their hardware variants delay packets in order to merge them.",
        read_from: &["/tailtrim/ethtool/*/features"],
        wanted: "large-receive-offload, rx-gro-hw and rx-gro-list off; rx-gro off on the latency path",
        cost: "more work for each byte of TCP",
        set_now: "ethtool -K {nic} gro off lro off",
        undo: "ethtool -K {nic} gro on",
        source: "tuned's net plugin; AWS trading benchmark",
        needs: NIC,
        evaluate: |f| per_nic(f, gathering),
        ..Check::BLANK
    },
    Check {
        id: "NET-004",
        title: "As many queues as CPUs that serve them",
        importance: Importance::Medium,
        why: "Each queue has its own interrupt: with a queue for each CPU there is one for each isolated CPU, too.",
        read_from: &["/tailtrim/ethtool/*/channels"],
        wanted: "at most as many as housekeeping CPUs, or as the workload's threads",
        cost: "setting it resets the queues and renumbers interrupts",
        set_now: "ethtool -L {nic} combined N",
        undo: "ethtool -L with the old value",
        source: "tuned realtime (netdev_queue_count); NFV host guide",
        needs: &[Need::Nic, Need::Isolated],
        evaluate: |f| per_nic(f, queues),
        ..Check::BLANK
    },
    Check {
        id: "NET-005",
        title: "Packets go to the wanted queues only",
        importance: Importance::Medium,
        why: "The indirection table spreads flows over queues; a flow on a queue that no CPU serves waits.",
        read_from: &["/tailtrim/ethtool/*/indirection"],
        wanted: "queues of the table have CPUs that serve them",
        set_now: "ethtool -X {nic} equal N",
        undo: "ethtool -X {nic} default",
        source: "Documentation/networking/scaling.rst; AWS trading benchmark",
        needs: NIC,
        evaluate: |f| per_nic(f, indirection),
        ..Check::BLANK
    },
    Check {
        id: "NET-006",
        title: "The measured flow can be steered",
        importance: Importance::Low,
        why: "A rule in the interface gives one flow a separate queue, away from everything else.",
        read_from: &["/tailtrim/ethtool/*/features"],
        wanted: "rx-ntuple-filter on where the interface has it",
        set_now: "ethtool -K {nic} ntuple on; ethtool -N {nic} flow-type udp4 dst-port P action Q",
        undo: "ethtool -N {nic} delete ID",
        source: "Documentation/networking/scaling.rst; NFV host guide",
        needs: NIC,
        evaluate: |f| per_nic(f, steering),
        ..Check::BLANK
    },
    Check {
        id: "NET-015",
        title: "Flow control is off",
        importance: Importance::Medium,
        why: "A pause frame of the other end stops sending; a full receiver here stops the other end, and every flow with it.",
        read_from: &["/tailtrim/ethtool/*/pause"],
        wanted: "rx and tx off",
        cost: "loss instead of waiting",
        set_now: "ethtool -A {nic} rx off tx off",
        undo: "ethtool -A {nic} rx on tx on",
        source: "tuned's net plugin; IEEE 802.3, annex 31B",
        needs: NIC,
        evaluate: |f| per_nic(f, pause),
        ..Check::BLANK
    },
    Check {
        id: "NET-016",
        title: "Energy-efficient Ethernet is off",
        importance: Importance::Medium,
        why: "Energy-efficient Ethernet wakes the link in 16 µs at 1 Gbit/s, for the first packet after each pause.",
        read_from: &["/tailtrim/ethtool/*/eee"],
        wanted: "off",
        set_now: "ethtool --set-eee {nic} eee off",
        undo: "ethtool --set-eee {nic} eee on",
        source: "IEEE 802.3az",
        needs: NIC,
        evaluate: |f| per_nic(f, energy),
        ..Check::BLANK
    },
    Check {
        id: "NET-019",
        title: "The interface can time-stamp every packet",
        importance: Importance::Low,
        why: "Stamps of the hardware leave out the way into the kernel. Many interfaces stamp only PTP.",
        read_from: &["/tailtrim/ethtool/*/timestamping"],
        wanted: "hardware-receive with the filter all",
        set_now: "hwstamp_ctl -i {nic} -r 1 -t 1",
        undo: "hwstamp_ctl -i {nic} -r 0 -t 0",
        source: "ducked-tails, section IV; Documentation/networking/timestamping.rst",
        needs: NIC,
        evaluate: |f| per_nic(f, stamping),
        ..Check::BLANK
    },
    Check {
        id: "NET-021",
        title: "Driver and firmware of the interface are known",
        importance: Importance::Low,
        why: "Generations differ more than settings: in one study the X500 series was steadiest, the X700 least steady.",
        read_from: &["/tailtrim/ethtool/*/driver"],
        wanted: "recorded",
        set_boot: "update the interface's firmware",
        undo: "",
        source: "study of kernels and NICs for 5G packet processing",
        needs: NIC,
        evaluate: |f| per_nic(f, driver),
        ..Check::BLANK
    },
];

/// A number that `ethtool` tells; `None` where the driver has no such setting.
fn setting(f: &Facts<'_>, nic: &str, what: &str, key: &str) -> Result<Option<u64>, crate::Unread> {
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
    judge(
        EvidenceLevel::Set,
        !adapts && wait <= 3,
        if adapts || wait > 10 { CheckStatus::Fail } else { CheckStatus::Warn },
        said,
    )
}

fn rings(f: &Facts<'_>, nic: &str) -> Answer {
    let Some(length) = setting(f, nic, "rings", "rx")? else {
        return not_applicable("the driver has no rings to set");
    };
    let most = setting(f, nic, "rings", "rx-max")?.unwrap_or(length);
    judge(
        EvidenceLevel::Set,
        length <= 1024,
        CheckStatus::Warn,
        format!("rx ring {length} of at most {most}"),
    )
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
    judge(EvidenceLevel::Set, on.is_empty(), CheckStatus::Warn, said)
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
    judge(EvidenceLevel::Set, count as usize <= enough.max(1), CheckStatus::Warn, said)
}

fn indirection(f: &Facts<'_>, nic: &str) -> Answer {
    let Some(text) = ethtool(f, nic, "indirection", "queues")? else {
        return not_applicable("the driver has no indirection table");
    };
    let used = text.split_whitespace().count() as u64;
    let count = setting(f, nic, "channels", "combined")?.unwrap_or(0)
        + setting(f, nic, "channels", "rx")?.unwrap_or(0);
    judge(
        EvidenceLevel::Set,
        count == 0 || used <= count,
        CheckStatus::Warn,
        format!("queues {text} of {count}"),
    )
}

fn steering(f: &Facts<'_>, nic: &str) -> Answer {
    match ethtool(f, nic, "features", "rx-ntuple-filter")? {
        None => not_applicable("the driver does not know ntuple filters"),
        Some(state) if state.contains("fixed") && state.starts_with("off") => {
            not_applicable("the interface cannot steer")
        }
        Some(state) => judge(
            EvidenceLevel::Set,
            state.starts_with("on"),
            CheckStatus::Warn,
            format!("rx-ntuple-filter {state}"),
        ),
    }
}

fn pause(f: &Facts<'_>, nic: &str) -> Answer {
    let (Some(rx), Some(tx)) = (ethtool(f, nic, "pause", "rx")?, ethtool(f, nic, "pause", "tx")?)
    else {
        return not_applicable("the driver knows no pause frames");
    };
    judge(
        EvidenceLevel::Set,
        rx == "off" && tx == "off",
        CheckStatus::Warn,
        format!("rx {rx}, tx {tx}"),
    )
}

fn energy(f: &Facts<'_>, nic: &str) -> Answer {
    match ethtool(f, nic, "eee", "enabled")? {
        None => not_applicable("the interface does not know it"),
        Some(state) => judge(
            EvidenceLevel::Set,
            state == "off",
            CheckStatus::Fail,
            format!("energy-efficient Ethernet {state}"),
        ),
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
    judge(EvidenceLevel::Set, hardware && all, CheckStatus::Warn, said)
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
    judge(EvidenceLevel::Set, true, CheckStatus::Warn, few(&known))
}
