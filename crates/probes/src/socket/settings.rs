//! Settings of a socket, datagrams to send, and errors.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// Protocol above IP.
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

/// Kinds of stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamping {
    /// The kernel's for received datagrams.
    pub receive: bool,
    /// The kernel's for sent datagrams.
    pub send: bool,
    /// Also those of the NIC, in the directions above; [`NicStamps`](super::NicStamps) turns them on.
    pub hardware: bool,
}

/// Settings of a socket.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Protocol above IP.
    pub transport: Transport,
    /// The address and port to bind to; an unspecified address is any.
    pub local: SocketAddr,
    /// Uses this interface only.
    pub device: Option<String>,
    /// DSCP and ECN of sent datagrams.
    pub traffic_class: Option<u8>,
    /// TTL or hop limit of sent datagrams.
    pub hops: Option<u8>,
    /// Microseconds for which the kernel asks the NIC itself when nothing is there (`SO_BUSY_POLL`).
    pub busy_poll_us: Option<u32>,
    /// Size in bytes of the buffer of received datagrams that were not fetched yet.
    pub receive_buffer: Option<usize>,
    /// Never fragment datagrams.
    pub whole: bool,
    /// Fetch only the bytes of datagrams from the connected peer: neither TTL nor class nor stamps.
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
        /// The operation.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
        /// Advice for the user.
        hint: &'static str,
    },
    /// Waiting for several sockets failed.
    #[error("waiting for replies: {0}")]
    Waiting(#[source] io::Error),
    /// An operation failed on a socket that had worked.
    #[error("{local}: {what}: {source}")]
    Broken {
        /// The local address.
        local: SocketAddr,
        /// The operation.
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
    /// Receiver.
    pub to: SocketAddr,
    /// From which address of this host, instead of the socket's.
    pub from: Option<IpAddr>,
    /// DSCP and ECN instead of the socket's.
    pub traffic_class: Option<u8>,
    /// TTL or hop limit instead of the socket's.
    pub hops: Option<u8>,
}

/// Result of sending a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The number of the first datagram, by which its stamps come back; those of the next ones follow.
    pub first_key: u32,
    /// Number of datagrams that the kernel took, from the first on.
    pub taken: usize,
    /// Right before the system call, `CLOCK_REALTIME`: the time for preparing a datagram is no part of the round trip.
    pub begun_ns: i64,
    /// The error's number for the first datagram that was not taken.
    pub refused: Option<i32>,
}
