//! Firmware and wiring: told, not done.

use super::*;

pub(super) const ITEMS: &[Item] = &[
    Item {
        id: "firmware.power",
        checks: &["FW-004"],
        title: "power profile: maximum performance; C1E off; energy bias left to the system",
        reason: "the firmware may keep control of frequency and idle states, whatever the kernel says",
        cost: "power",
        source: "Intel NFV-I host configuration, §3.2",
        how: How::Told,
        values: &[POLL, KERNEL, HOST, MEASURE],
    },
    Item {
        id: "firmware.smi",
        checks: &["FW-002", "IRQ-011"],
        title: "legacy USB and port 60/64 emulation off; as few system management interrupts as it allows",
        reason: "an SMI stops all CPUs, up to 100 ms, and no kernel sees it",
        cost: "keyboards before the system starts; some health monitoring",
        source: "Intel NFV-I host configuration, §3.2",
        how: How::Told,
        values: &[POLL, KERNEL, HOST],
    },
    Item {
        id: "firmware.scrub",
        checks: &["FW-005"],
        title: "patrol scrubbing off, if the memory's errors are watched otherwise",
        reason: "a packet that arrives while memory is scrubbed waits",
        cost: "single-bit errors are corrected only when they are read",
        source: "Intel NFV-I host configuration, §3.2",
        how: How::Told,
        values: &[POLL, HOST],
    },
    Item {
        id: "link.direct",
        checks: &[],
        title: "a cable instead of a switch, where the test allows it",
        reason: "a switch adds 10 to 100 µs of round trip, and its queues",
        cost: "one cable for each pair",
        source: "reflection servers, test G; Intel NFV-I host configuration, §6",
        how: How::Told,
        values: &[MEASURE],
    },
    Item {
        id: "firewall.position",
        checks: &["NET-018"],
        title: "the measured flow is accepted by the first rule, without connection tracking",
        reason: "each rule costs about 2 µs: 10,000 of them 60 ms",
        cost: "that flow is filtered less",
        source: "reflection servers, test B",
        how: How::Told,
        values: &[KERNEL],
    },
];
