//! How a socket is to be, and what goes through it.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// What is above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    Udp,
    /// Echo of ICMP or ICMPv6. Where the host allows it (`net.ipv4.ping_group_range`), the kernel chooses
    /// the identifier; otherwise this one is used, which needs CAP_NET_RAW.
    IcmpEcho {
        /// The identifier of a raw socket.
        identifier: u16,
    },
}

/// Which stamps are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamping {
    /// The kernel's for what is received.
    pub receive: bool,
    /// The kernel's for what is sent.
    pub send: bool,
    /// Also those of the NIC, in the directions above; [`NicStamps`] turns them on.
    pub hardware: bool,
}

/// How a socket is to be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What is above IP.
    pub transport: Transport,
    /// The address and port to bind to; an unspecified address is any.
    pub local: SocketAddr,
    /// Uses this interface only.
    pub device: Option<String>,
    /// DSCP and ECN of what is sent.
    pub traffic_class: Option<u8>,
    /// TTL or hop limit of what is sent.
    pub hops: Option<u8>,
    /// Microseconds for which the kernel asks the NIC itself when nothing is there (`SO_BUSY_POLL`).
    pub busy_poll_us: Option<u32>,
    /// Bytes for what was received and not yet fetched.
    pub receive_buffer: Option<usize>,
    /// Never fragment.
    pub whole: bool,
    /// Of what is received from the peer that it is connected to, nothing but the bytes is wanted: neither
    /// TTL nor class nor stamps.
    pub bare: bool,
    /// The kernel queues ICMP errors (`IP_RECVERR`). If the program does not read this queue, `poll` returns at once, and the
    /// queued errors use up the receive buffer.
    pub errors: bool,
    /// Stamps.
    pub stamping: Stamping,
}

impl Settings {
    /// All defaults of the kernel, no stamps.
    #[must_use]
    pub fn new(transport: Transport, local: SocketAddr) -> Self {
        Self {
            transport,
            local,
            device: None,
            traffic_class: None,
            hops: None,
            busy_poll_us: None,
            receive_buffer: None,
            whole: false,
            bare: false,
            errors: true,
            stamping: Stamping::default(),
        }
    }
}

/// Why a socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The host does not allow it, or lacks it.
    #[error("{local}: {what}: {source}{hint}")]
    Open {
        /// The local address.
        local: SocketAddr,
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// It worked and then no longer.
    #[error("{local}: {what}: {source}")]
    Broken {
        /// The local address.
        local: SocketAddr,
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A datagram to send.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Payload; with ICMP, from the ICMP header on, checksum included.
    pub bytes: &'a [u8],
    /// To whom.
    pub to: SocketAddr,
    /// From which address of this host, instead of the socket's.
    pub from: Option<IpAddr>,
    /// DSCP and ECN instead of the socket's.
    pub traffic_class: Option<u8>,
    /// TTL or hop limit instead of the socket's.
    pub hops: Option<u8>,
}

/// What the kernel did with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The number of the first datagram, by which its stamps come back; those of the next ones follow.
    pub first_key: u32,
    /// How many it took, from the first on.
    pub taken: usize,
    /// Right before the system call, `CLOCK_REALTIME`: what it takes to prepare one is not of the round trip.
    pub begun_ns: i64,
    /// Why not the next one: the error's number.
    pub refused: Option<i32>,
}
