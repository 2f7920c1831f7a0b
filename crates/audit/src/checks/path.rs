//! NET, third part: what stands in the way of packets through the kernel, and outside of it.

use super::*;
use tailtrim_host::paths::{QDISCS, RULES};

pub(super) const CHECKS: Topic = Topic {
    texts: include_str!("path.json"),
    evaluators: &[
        ("NET-017", shaping),
        ("NET-018", firewall),
        ("NET-020", |f| per_nic(f, link)),
        ("NET-022", listeners),
        ("NET-023", |f| sysctl(f, "net.ipv4.tcp_fastopen", Warn, |text| text == "3")),
    ],
};

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
    judge(Set, bad.is_empty(), Warn, said)
}

fn firewall(f: &Facts<'_>) -> Answer {
    let tracked = f.optional("/proc/sys/net/netfilter/nf_conntrack_count")?;
    let rules = f.number(RULES)?;
    let said = match &tracked {
        Some(count) => format!("{rules} rules, {count} connections are tracked"),
        None => format!("{rules} rules, nothing is tracked"),
    };
    let verdict = if rules > 100 { Fail } else { Warn };
    let watched = tracked.is_some_and(|count| count != "0");
    judge(Set, rules <= 100 && !watched, verdict, said)
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
    judge(Set, low.is_empty(), Warn, few(if low.is_empty() { &known } else { &low }))
}

fn listeners(f: &Facts<'_>) -> Answer {
    let Some(text) = f.optional("/proc/net/packet")? else {
        return not_applicable("this kernel has no packet sockets");
    };
    let count = text.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
    judge(Seen, count == 0, Warn, format!("{count} packet sockets are open"))
}
