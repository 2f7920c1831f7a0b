//! Opening sockets: UDP, and ICMP echo by whichever way the host allows.

use super::SocketError;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use tailtrim_sys::socket as sys;

/// Names of the operations that need a capability.
pub(super) const BINDING: &str = "binding";
pub(super) const BINDING_TO_INTERFACE: &str = "binding to the interface";
pub(super) const BUSY_POLL: &str = "busy poll";
pub(super) const FINDING_ROUTE: &str = "finding the route";

pub(super) fn open_failed(local: SocketAddr, what: &'static str, source: io::Error) -> SocketError {
    let hint = match source.raw_os_error() {
        Some(libc::EADDRINUSE) => " (another process has this port: `ss -ulpn` shows which)",
        Some(libc::EADDRNOTAVAIL) => " (expected an address of this host: `ip address` lists them)",
        Some(libc::EACCES | libc::EPERM) => right(what),
        Some(libc::ENODEV) => " (no such interface: `ip link` lists them)",
        _ => "",
    };
    SocketError::Open { local, what, source, hint }
}

/// Name of the capability that was missing (capabilities(7), ip(7), socket(7)); empty where no capability helps.
fn right(what: &str) -> &'static str {
    match what {
        BINDING => {
            " (run as root or with CAP_NET_BIND_SERVICE, use a port from 1024 on, or lower sysctl \
             net.ipv4.ip_unprivileged_port_start)"
        }
        BINDING_TO_INTERFACE => " (run as root or with CAP_NET_RAW)",
        BUSY_POLL => " (run as root or with CAP_NET_ADMIN)",
        FINDING_ROUTE => {
            " (a broadcast address, or a route that prohibits it: `ip route get` shows it)"
        }
        _ => "",
    }
}

pub(super) fn open_udp(local: SocketAddr) -> Result<OwnedFd, SocketError> {
    let family = if local.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    sys::open(family, libc::SOCK_DGRAM, libc::IPPROTO_UDP)
        .map_err(|source| open_failed(local, "opening a UDP socket", source))
}

/// A ping socket where the host allows one, else a raw socket that receives the replies to its identifier.
pub(super) fn open_echo(
    local: SocketAddr,
    identifier: u16,
) -> Result<(OwnedFd, bool), SocketError> {
    let (family, protocol) = if local.is_ipv6() {
        (libc::AF_INET6, libc::IPPROTO_ICMPV6)
    } else {
        (libc::AF_INET, libc::IPPROTO_ICMP)
    };
    if let Ok(file) = sys::open(family, libc::SOCK_DGRAM, protocol) {
        return Ok((file, false));
    }
    let file = sys::open(family, libc::SOCK_RAW, protocol).map_err(|source| SocketError::Open {
        local,
        what: "opening an ICMP socket",
        source,
        hint: " (run as root or with CAP_NET_RAW, or let users ping: sysctl \
               net.ipv4.ping_group_range=\"0 2147483647\")",
    })?;
    sys::filter(file.as_fd(), &echo_replies(local.is_ipv6(), identifier))
        .map_err(|source| open_failed(local, "choosing the echo replies", source))?;
    Ok((file, true))
}

/// Accepts echo replies of this identifier. A raw IPv4 socket filters from the IP header on, one of IPv6
/// from the ICMPv6 header on.
fn echo_replies(is_v6: bool, identifier: u16) -> Vec<sys::Instruction> {
    const LOAD_HEADER_LEN: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
    const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_IND) as u16;
    const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
    const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const SET_INDEX: u16 = (libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM) as u16;
    let (header, reply) =
        if is_v6 { ((SET_INDEX, 0, 0, 0), 129) } else { ((LOAD_HEADER_LEN, 0, 0, 0), 0) };
    vec![
        header,
        (LOAD_BYTE, 0, 0, 0),
        (JUMP_EQUAL, 0, 3, reply),
        (LOAD_HALF, 0, 0, 4),
        (JUMP_EQUAL, 0, 1, identifier.into()),
        (RETURN, 0, 0, u32::MAX),
        (RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_named_is_the_one_that_is_needed() {
        let local = SocketAddr::from(([127, 0, 0, 1], 862));
        let told = |what, code| {
            let error = open_failed(local, what, io::Error::from_raw_os_error(code)).to_string();
            let words = error.split(|c: char| !c.is_ascii_alphabetic() && c != '_');
            words.filter(|word| word.starts_with("CAP_")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(told(BINDING, libc::EACCES), ["CAP_NET_BIND_SERVICE"]);
        assert_eq!(told(BINDING_TO_INTERFACE, libc::EPERM), ["CAP_NET_RAW"]);
        assert_eq!(told(BUSY_POLL, libc::EPERM), ["CAP_NET_ADMIN"]);
        for what in [FINDING_ROUTE, "asking for stamps", "receive buffer"] {
            assert_eq!(told(what, libc::EACCES), [""; 0], "{what}");
        }
        assert_eq!(told(BINDING, libc::EADDRINUSE), [""; 0]);
    }
}
