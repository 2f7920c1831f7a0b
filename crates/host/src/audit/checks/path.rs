//! NET, third part: what stands in the way of packets through the kernel, and outside of it.

use super::super::answer::{Answer, CheckStatus, EvidenceLevel, judge, not_applicable};
use super::super::ask::{few, per_nic, sysctl};
use super::super::check::{Check, Importance, Need};
use super::super::facts::Facts;
use super::super::paths::{QDISCS, RULES};
use crate::Workload;

const NIC: &[Need] = &[Need::Nic];
const KERNEL: &[Need] = &[Need::Work(&[Workload::Interrupt, Workload::Guest])];

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "NET-017",
        title: "No traffic shaping on the egress",
        importance: Importance::Medium,
        why: "fq paces, fq_codel and htb hold packets. mq gives each queue of the interface a separate discipline; any other root has one lock for all queues.",
        read_from: &["/tailtrim/qdiscs", "/proc/sys/net/core/default_qdisc"],
        wanted: "noqueue, mq with pfifo_fast below, or pfifo",
        set_now: "sysctl -w net.core.default_qdisc=pfifo_fast; tc qdisc del dev {nic} root; tc qdisc replace dev {nic} root mq (the second may say that there is nothing to remove; with one queue the last is: root pfifo_fast)",
        undo: "sysctl -w net.core.default_qdisc=fq_codel (or the old one); tc qdisc del dev {nic} root",
        source: "tc(8); tc-fq(8)",
        needs: &[Need::Nic, Need::Work(&[Workload::Interrupt, Workload::Guest, Workload::Vm])],
        evaluate: shaping,
        ..Check::BLANK
    },
    Check {
        id: "NET-018",
        title: "Few firewall rules before the measured flow",
        importance: Importance::Medium,
        why: "Rules are tried one after the other: about 2 µs each in one study, 60 ms with 10,001. Tracking connections adds to it.",
        read_from: &["/tailtrim/nftables_rules", "/proc/sys/net/netfilter/nf_conntrack_count"],
        wanted: "at most 100 rules, no connection tracking",
        cost: "accept the flow early, or notrack it",
        set_now: "nft insert rule inet raw prerouting udp dport P notrack accept",
        undo: "nft delete rule",
        source: "reflector study, section 4",
        needs: KERNEL,
        evaluate: firewall,
        ..Check::BLANK
    },
    Check {
        id: "NET-020",
        title: "The interface has its full PCI Express link",
        importance: Importance::Medium,
        why: "In the wrong slot, or trained down after an error, a card has half of its lanes.",
        read_from: &[
            "/sys/class/net/*/device/current_link_speed",
            "/sys/class/net/*/device/max_link_speed",
        ],
        wanted: "current speed and width are the highest",
        set_boot: "another slot, firmware settings, a cleaned connector",
        undo: "",
        source: "DPDK's Linux guide",
        needs: NIC,
        evaluate: |f| per_nic(f, link),
        ..Check::BLANK
    },
    Check {
        id: "NET-022",
        title: "No packet sockets listen to the traffic",
        importance: Importance::Medium,
        why: "Every packet socket (tcpdump, DHCP clients, monitoring) gets each packet and may copy it.",
        read_from: &["/proc/net/packet"],
        wanted: "none but the tester's own",
        set_now: "end the listener: ss -0 -p names it",
        undo: "",
        source: "packet(7)",
        evaluate: listeners,
        ..Check::BLANK
    },
    Check {
        id: "NET-023",
        title: "TCP answers at once",
        importance: Importance::Low,
        why: "Fast open saves a round trip of each connection. Only TCP.",
        read_from: &["/proc/sys/net/ipv4/tcp_fastopen"],
        wanted: "3",
        set_now: "sysctl -w net.ipv4.tcp_fastopen=3",
        undo: "sysctl -w net.ipv4.tcp_fastopen=1",
        source: "tuned network-latency; ip-sysctl.rst",
        needs: KERNEL,
        evaluate: |f| sysctl(f, "net.ipv4.tcp_fastopen", CheckStatus::Warn, |text| text == "3"),
        ..Check::BLANK
    },
];

fn shaping(f: &Facts<'_>) -> Answer {
    let text = f.text(QDISCS)?;
    let mut found = Vec::new();
    let mut bad = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [nic, kind, ..] = words.as_slice() else { continue };
        if !f.intent().nics.iter().any(|name| name == nic) {
            continue;
        }
        found.push(format!("{nic} {kind}"));
        if !matches!(
            *kind,
            "noqueue" | "mq" | "pfifo_fast" | "pfifo" | "bfifo" | "ingress" | "clsact" | "multiq"
        ) {
            bad.push(format!("{nic} {kind}"));
        }
    }
    if found.is_empty() {
        return not_applicable("tc names no discipline of the interface");
    }
    bad.sort();
    bad.dedup();
    let said =
        if bad.is_empty() { few(&found) } else { format!("holds packets back: {}", few(&bad)) };
    judge(EvidenceLevel::Set, bad.is_empty(), CheckStatus::Warn, said)
}

fn firewall(f: &Facts<'_>) -> Answer {
    let tracked = f.optional("/proc/sys/net/netfilter/nf_conntrack_count")?;
    let rules = f.number(RULES)?;
    let said = match &tracked {
        Some(count) => format!("{rules} rules, {count} connections are tracked"),
        None => format!("{rules} rules, nothing is tracked"),
    };
    let verdict = if rules > 100 { CheckStatus::Fail } else { CheckStatus::Warn };
    let watched = tracked.is_some_and(|count| count != "0");
    judge(EvidenceLevel::Set, rules <= 100 && !watched, verdict, said)
}

fn link(f: &Facts<'_>, nic: &str) -> Answer {
    let folder = format!("/sys/class/net/{nic}/device");
    let mut low = Vec::new();
    let mut known = Vec::new();
    for what in ["link_speed", "link_width"] {
        let current = f.optional(&format!("{folder}/current_{what}"))?;
        let most = f.optional(&format!("{folder}/max_{what}"))?;
        if let (Some(current), Some(most)) = (current, most) {
            if current != most {
                low.push(format!("{what} {current} of {most}"));
            }
            known.push(format!("{what} {current}"));
        }
    }
    if known.is_empty() {
        return not_applicable("it is not a PCI Express device");
    }
    judge(
        EvidenceLevel::Set,
        low.is_empty(),
        CheckStatus::Warn,
        few(if low.is_empty() { &known } else { &low }),
    )
}

fn listeners(f: &Facts<'_>) -> Answer {
    let Some(text) = f.optional("/proc/net/packet")? else {
        return not_applicable("this kernel has no packet sockets");
    };
    let count = text.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
    judge(
        EvidenceLevel::Seen,
        count == 0,
        CheckStatus::Warn,
        format!("{count} packet sockets are open"),
    )
}
