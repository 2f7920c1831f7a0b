//! Network namespaces for tests: each test runs again as a process in a namespace of its own. When the process ends,
//! for whatever reason, its interfaces are gone, too.

use crate::skip::skipped;
use std::process::Command;
use tailtrim_ports::port::{Port, PortKind, PortName, Receiving, open};

/// Set in a process that is in a namespace of its own.
const INSIDE: &str = "TAILTRIM_TEST_NAMESPACE";

/// Requirement of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// To be root in its own namespace, which a user namespace gives to everybody.
    UserNamespace,
    /// To be root of the machine: the kernel loads no programs for others.
    Root,
}

pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    uid.split_whitespace().nth(1) == Some("0")
}

/// Whether this process is in a namespace of its own. Otherwise runs the calling test in one, and fails if it fails
/// there; where that cannot be done, prints so.
pub(crate) fn is_inside(needs: Needs) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    // The test harness names the thread after the test.
    let thread = std::thread::current();
    let test = thread.name().unwrap();
    let flags: &[&str] = match needs {
        Needs::UserNamespace => &["--user", "--map-root-user", "--net"],
        Needs::Root if is_root() => &["--net"],
        Needs::Root => {
            skipped("needs root");
            return false;
        }
    };
    let works = Command::new("unshare").args(flags).arg("true").output();
    if !works.is_ok_and(|output| output.status.success()) {
        skipped("unshare does not work here (util-linux, user namespaces)");
        return false;
    }
    let output = Command::new("unshare")
        .args(flags)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "in its namespace: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two interfaces, `near` and `far`, joined by a cable without other traffic.
pub(crate) fn cable(mtu: usize) {
    cable_of(mtu, 1);
}

/// The same, each with so many queues.
pub(crate) fn cable_of(mtu: usize, queues: u32) {
    for which in ["all", "default"] {
        // Turns IPv6 off: otherwise the kernel sends packets of its own. It may have no IPv6.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    let of = format!("numrxqueues {queues} numtxqueues {queues}");
    ip(&format!("link add near {of} type veth peer name far {of}"));
    for interface in ["near", "far"] {
        ip(&format!("link set {interface} mtu {mtu} arp off up"));
    }
}

/// Set where `near` and `far` are cards that are there already: to the mode of AF_XDP on them.
const CARDS: &str = "TAILTRIM_TEST_CARDS";

pub(crate) fn are_cards() -> bool {
    std::env::var_os(CARDS).is_some()
}

/// A port at each of two cards, which are up and have a link.
pub(crate) fn cards(kind: PortKind) -> (Box<dyn Port>, Box<dyn Port>) {
    let (near, far) = ends(kind);
    if let Some(mode) = near.capabilities().xdp {
        let told = format!("{:?} {} {}", mode.attached, mode.zero_copy, mode.queues);
        assert_eq!(std::env::var(CARDS).unwrap(), told, "{mode:?}");
    }
    (near, far)
}

pub(crate) fn name(kind: PortKind, interface: &str) -> PortName {
    PortName { kind, interface: interface.to_owned(), queue: None }
}

/// A port at each end of the cable.
pub(crate) fn ends(kind: PortKind) -> (Box<dyn Port>, Box<dyn Port>) {
    let receiving =
        Receiving { snap: 10_000, memory_bytes: 16 << 20, promptly: true, hardware: false };
    let end = |interface| open(&name(kind, interface), Some(receiving)).unwrap();
    (end("near"), end("far"))
}
