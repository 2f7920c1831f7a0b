//! The rules: requests are translated back to their senders, and never reach a process.
//!
//! Refused requests are dropped before connection tracking. The others are tracked in a zone of their own, so that no
//! earlier flow is in the way, and none is left translated afterwards.

use std::fmt::Write;
use std::net::IpAddr;
use tailtrim_roundtrip::reflect::{Limit, Policy};

/// Names of the counters.
pub(super) const RECEIVED: &str = "received";
pub(super) const REFLECTED: &str = "reflected";
pub(super) const SOURCE_PORT: &str = "source_port";
pub(super) const ADDRESS: &str = "address";
pub(super) const NOT_ALLOWED: &str = "not_allowed";
pub(super) const RATE: &str = "rate";
pub(super) const COOKIE: &str = "cookie";
pub(super) const LOOP: &str = "loop";
const COUNTERS: [&str; 8] =
    [RECEIVED, REFLECTED, SOURCE_PORT, ADDRESS, NOT_ALLOWED, RATE, COOKIE, LOOP];
/// The set whose elements are the interfaces on which tailtrim turned forwarding on.
pub(super) const FORWARDING: &str = "forwarding";
/// Clients whose rate is kept, each for as long after its last request.
const CLIENTS: u32 = 65_536;
/// Payloads that are remembered for a second, and flows. Once a second the set is emptied of old ones; requests that
/// find no room in between are answered, and cost little. A loop of more than 100 packets a second finds its room soon.
const PAYLOADS: u32 = 4_096;
/// Payloads are compared by so many of their first bytes, where they have as many.
const COMPARED: [usize; 3] = [16, 8, 0];
/// One of so many requests is looked at, since every look at a set costs the kernel time; the budget is as much less.
const SAMPLED: i64 = 8;
const UDP: usize = 8;
/// TTL or hop limit that requests go on with at most: forwarding makes it less by one, so a loop ends.
const HOPS: u8 = 64;

/// Parameters of the rules.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    pub(super) table: &'a str,
    pub(super) interface: &'a str,
    /// Whether forwarding has to be turned on, and off again.
    pub(super) turns_forwarding_on: bool,
    pub(super) addresses: &'a [IpAddr],
    pub(super) ports: &'a [u16],
    pub(super) policy: &'a Policy,
    /// The zone of connections.
    pub(super) zone: u16,
}

/// The rules as `nft -f` reads them, in one transaction.
pub(super) fn text(rules: &Rules<'_>) -> String {
    let Rules { table, interface, .. } = rules;
    let mut body = String::new();
    let forwarding = if rules.turns_forwarding_on {
        format!(" elements = {{ \"{interface}\" }}")
    } else {
        String::new()
    };
    line(&mut body, &format!("set {FORWARDING} {{ type ifname;{forwarding} }}"));
    for (name, kind) in [("clients4", "ipv4_addr"), ("clients6", "ipv6_addr")] {
        line(
            &mut body,
            &format!(
                "set {name} {{ type {kind}; size {CLIENTS}; flags dynamic,timeout; timeout 1m; }}"
            ),
        );
    }
    for counter in COUNTERS {
        line(&mut body, &format!("counter {counter} {{ }}"));
    }
    let ports = list(rules.ports);
    remembering(&mut body);
    repeating(&mut body, rules.policy);
    judging(&mut body, rules, &ports);
    turning(&mut body, rules);
    // A redirect would tell the client to ask itself the next time.
    chain(
        &mut body,
        "quiet",
        "filter hook output priority 0",
        &[
            format!("oifname \"{interface}\" icmp type redirect drop"),
            format!("oifname \"{interface}\" icmpv6 type nd-redirect drop"),
        ],
    );
    format!("table inet {table} {{\n{body}}}\n")
}

fn line(body: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(body, "  {text}");
}

fn chain(body: &mut String, name: &str, hook: &str, rules: &[String]) {
    line(body, &format!("chain {name} {{"));
    if !hook.is_empty() {
        line(body, &format!("  type {hook}; policy accept;"));
    }
    for rule in rules {
        line(body, &format!("  {rule}"));
    }
    line(body, "}");
}

fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn judging(body: &mut String, rules: &Rules<'_>, ports: &str) {
    let Rules { interface, policy, zone, .. } = rules;
    let family = |address: &IpAddr| if address.is_ipv4() { "ip" } else { "ip6" };
    let drop = |counter: &str| format!("counter name {counter} drop");
    let mut steps = vec![
        format!("counter name {RECEIVED}"),
        format!("udp sport < 1024 {}", drop(SOURCE_PORT)),
        format!("udp sport {{ {ports} }} {}", drop(SOURCE_PORT)),
        format!("ip saddr {{ 0.0.0.0, 224.0.0.0/4, 255.255.255.255 }} {}", drop(ADDRESS)),
        format!("ip6 saddr {{ ::, ff00::/8 }} {}", drop(ADDRESS)),
    ];
    if !policy.allowed.is_empty() {
        for (family, v4) in [("ip", true), ("ip6", false)] {
            let allowed: Vec<_> = policy
                .allowed
                .iter()
                .filter(|allowed| allowed.prefix().0.is_ipv4() == v4)
                .collect();
            let protocol = if v4 { "ipv4" } else { "ipv6" };
            steps.push(if allowed.is_empty() {
                format!("meta nfproto {protocol} {}", drop(NOT_ALLOWED))
            } else {
                // Prefixes may cover one another.
                let each = allowed.iter().map(|allowed| format!("{family} saddr != {allowed}"));
                format!("{} {}", each.collect::<Vec<_>>().join(" "), drop(NOT_ALLOWED))
            });
        }
    }
    if let Some(limit) = policy.limit {
        for (family, set, client) in [
            ("ip", "clients4", "ip saddr"),
            ("ip6", "clients6", "ip6 saddr & ffff:ffff:ffff:ffff::"),
        ] {
            let protocol = if family == "ip" { "ipv4" } else { "ipv6" };
            let over = rate(limit);
            let limited = drop(RATE);
            steps.push(format!(
                "meta nfproto {protocol} update @{set} {{ {client} {over} }} {limited}"
            ));
        }
    }
    ending_loops(&mut steps, policy);
    steps.push(format!("ct zone set {zone}"));
    chain(body, "requests", "", &steps);
    let to_us: Vec<String> = rules
        .addresses
        .iter()
        .map(|address| {
            let family = family(address);
            format!(
                "iifname \"{interface}\" {family} daddr {address} udp dport {{ {ports} }} jump requests"
            )
        })
        .collect();
    // In front of raw (-300), and with it of connection tracking (-200).
    chain(body, "judge", "filter hook prerouting priority -310", &to_us);
}

/// The sets behind [`Policy::repeats`]: payloads of the last second, and the flows of those that came again.
fn remembering(body: &mut String) {
    for (suffix, family) in FAMILIES {
        let flow = flow(family);
        for compared in COMPARED {
            if let Some(bytes) = bytes(0, compared) {
                set(body, &format!("payloads{compared}_{suffix}"), &format!("{flow} . {bytes}"));
            }
        }
        set(body, &format!("flows{suffix}"), &flow);
    }
}

const FAMILIES: [(u8, &str); 2] = [(4, "ip"), (6, "ip6")];

fn set(body: &mut String, name: &str, key: &str) {
    let flags = format!("size {PAYLOADS}; flags dynamic,timeout; timeout 1s;");
    line(body, &format!("set {name} {{ typeof {key}; {flags} }}"));
}

fn flow(family: &str) -> String {
    format!("{family} saddr . udp sport . udp dport")
}

/// Bytes of the payload, from one of them on; `None` for no bytes.
fn bytes(from: usize, count: usize) -> Option<String> {
    (count > 0).then(|| format!("@th,{},{}", (UDP + from) * 8, count * 8))
}

/// Echoes without the cookie are refused, and those that come again too often. TTLs only become lower here.
fn ending_loops(steps: &mut Vec<String>, policy: &Policy) {
    if let Some(cookie) = policy.cookie {
        let least = UDP + cookie.len();
        let refused = format!("counter name {COOKIE} drop");
        // A rule that finds no such bytes does not match.
        steps.push(format!("udp length < {least} {refused}"));
        let cookie = u64::from_be_bytes(cookie);
        steps.push(format!("@th,{},64 != {cookie:#018x} {refused}", UDP * 8));
    }
    if policy.repeats.is_some() {
        steps.push(format!("numgen inc mod {SAMPLED} 0 jump repeats"));
    }
    steps.push(format!("ip ttl > {HOPS} ip ttl set {HOPS}"));
    steps.push(format!("ip6 hoplimit > {HOPS} ip6 hoplimit set {HOPS}"));
}

/// A payload that came within the last second costs of the budget of its flow.
fn repeating(body: &mut String, policy: &Policy) {
    let Some(repeats) = policy.repeats else { return };
    let (interval_ns, slack_ns) = repeats.interval_and_slack_ns();
    let a_minute = 60_000_000_000 / (interval_ns * SAMPLED).max(1);
    // The first look only remembers, and comes up to eight requests late.
    let at_once = (slack_ns / interval_ns.max(1) + 1) / SAMPLED - 2;
    let limit =
        format!("limit rate over {}/minute burst {} packets", a_minute.max(1), at_once.max(1));
    let skipped = policy.cookie.map_or(0, |cookie| cookie.len());
    let mut steps = Vec::new();
    for (suffix, family) in FAMILIES {
        let flow = flow(family);
        let budget = format!("update @flows{suffix} {{ {flow} {limit} }} counter name {LOOP} drop");
        let mut below = usize::from(u16::MAX);
        for compared in COMPARED {
            let least = UDP + skipped + compared;
            let came_before = bytes(skipped, compared).map_or(String::new(), |bytes| {
                let again = "limit rate over 1/second burst 1 packets";
                format!("update @payloads{compared}_{suffix} {{ {flow} . {bytes} {again} }} ")
            });
            let version = if suffix == 4 { "ipv4" } else { "ipv6" };
            let these = format!("meta nfproto {version} udp length {least}-{below}");
            steps.push(format!("{these} {came_before}{budget}"));
            below = least - 1;
        }
    }
    chain(body, "repeats", "", &steps);
}

fn rate(limit: Limit) -> String {
    let (interval_ns, slack_ns) = limit.interval_and_slack_ns();
    let per_second = 1_000_000_000 / interval_ns.max(1);
    let burst = slack_ns / interval_ns.max(1) + 1;
    format!("limit rate over {per_second}/second burst {burst} packets")
}

/// The first packet of a flow decides; the others follow it.
fn turning(body: &mut String, rules: &Rules<'_>) {
    let Rules { zone, addresses, ports, .. } = rules;
    let ours = format!("meta l4proto udp ct zone {zone}");
    chain(
        body,
        "turn",
        "nat hook prerouting priority -100",
        &[
            format!("meta nfproto ipv4 {ours} dnat ip to ip saddr : udp sport"),
            format!("meta nfproto ipv6 {ours} dnat ip6 to ip6 saddr : udp sport"),
        ],
    );
    let mut back = Vec::new();
    for address in *addresses {
        let family = if address.is_ipv4() { "ip" } else { "ip6" };
        for port in *ports {
            back.push(format!(
                "{ours} ct original {family} daddr {address} ct original proto-dst {port} \
                 snat {family} to {} : {port}",
                if address.is_ipv4() { address.to_string() } else { format!("[{address}]") }
            ));
        }
    }
    chain(body, "back", "nat hook postrouting priority 100", &back);
    chain(
        body,
        "done",
        "filter hook postrouting priority 300",
        &[format!("meta l4proto udp ct zone {zone} counter name {REFLECTED}")],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_what_they_are_for() {
        let policy = Policy {
            allowed: vec!["10.0.0.0/8".parse().unwrap(), "10.1.0.0/16".parse().unwrap()],
            limit: Some(Limit::new(1_000, 10)),
            ..Policy::default()
        };
        let addresses = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let rules = Rules {
            table: "t",
            interface: "eth1",
            turns_forwarding_on: true,
            addresses: &addresses,
            ports: &[7, 7007],
            policy: &policy,
            zone: 5,
        };
        let text = text(&rules);
        for expected in [
            "set forwarding { type ifname; elements = { \"eth1\" } }",
            "ip daddr 192.0.2.1 udp dport { 7, 7007 } jump requests",
            "ip saddr != 10.0.0.0/8 ip saddr != 10.1.0.0/16 counter name not_allowed drop",
            "meta nfproto ipv6 counter name not_allowed drop",
            "limit rate over 1000/second burst 10 packets",
            "meta nfproto ipv4 udp length 24-65535 update @payloads16_4 { ip saddr . udp sport . udp dport . @th,64,128 \
             limit rate over 1/second burst 1 packets } update @flows4 { ip saddr . udp sport . udp dport \
             limit rate over 750/minute burst 6 packets } counter name loop drop",
            "meta nfproto ipv6 udp length 8-15 update @flows6 {",
            "numgen inc mod 8 0 jump repeats",
            "ip ttl > 64 ip ttl set 64",
            "ct original proto-dst 7007 snat ip to 192.0.2.1 : 7007",
            "ct original proto-dst 7 snat ip6 to [2001:db8::1] : 7",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
        assert!(!text.contains("counter name cookie drop"), "{text}");
        let policy = Policy { cookie: Some(*b"8 bytes!"), repeats: None, ..Policy::default() };
        let text = self::text(&Rules { policy: &policy, ..rules });
        assert!(text.contains("udp length < 16 counter name cookie drop"), "{text}");
        assert!(
            text.contains("@th,64,64 != 0x3820627974657321 counter name cookie drop"),
            "{text}"
        );
        assert!(!text.contains("counter name loop drop"), "{text}");
    }
}
