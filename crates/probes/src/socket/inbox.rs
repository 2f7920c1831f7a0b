//! Received datagrams, and the kernel's notices about sent ones.

use std::net::{IpAddr, SocketAddr};
use tailtrim_sys::control::{ErrorOrigin, Point};
use tailtrim_sys::message::Slots;
use tailtrim_sys::{address, control};

/// Room for a batch of datagrams; used again and again.
#[derive(Debug)]
pub struct Inbox {
    pub(super) slots: Slots,
    /// Whether an IPv4 header precedes each of them, as raw sockets have it.
    pub(super) has_ip_header: bool,
    /// To which address all of them were sent, if the socket is bound to one.
    pub(super) to: Option<IpAddr>,
    /// The sender of all of them, if the kernel does not name it with each.
    pub(super) from: Option<SocketAddr>,
}

/// A datagram that was received.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// Its payload; with ICMP, from the ICMP header on.
    pub bytes: &'a [u8],
    /// Bytes of the IP packet.
    pub packet_bytes: usize,
    /// Sender.
    pub from: SocketAddr,
    /// To which address of this host.
    pub to: Option<IpAddr>,
    /// TTL or hop limit that is left.
    pub hops: Option<u8>,
    /// Traffic class: DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// When the kernel took it from the driver, `CLOCK_REALTIME`.
    pub software_ns: Option<i64>,
    /// When the NIC received it, by the clock of the NIC.
    pub hardware_ns: Option<i64>,
    /// Whether it was longer than the room for it.
    pub truncated: bool,
}

/// The kernel's notice about a datagram that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// It passed a point on its way out.
    Stamp {
        /// Its number, see [`Socket::send`](super::Socket::send).
        key: u32,
        /// The point.
        point: Point,
        /// By the kernel, `CLOCK_REALTIME`.
        software_ns: Option<i64>,
        /// By the NIC's own clock.
        hardware_ns: Option<i64>,
    },
    /// A host says that it will not arrive.
    Undelivered {
        /// Why.
        cause: ErrorOrigin,
        /// Sender of the notice; `None`: this host.
        by: Option<IpAddr>,
        /// Receiver of the datagram.
        to: Option<SocketAddr>,
        /// As much of its payload as came back.
        bytes: &'a [u8],
    },
}

impl Inbox {
    /// Room for `count` datagrams (at most 64) of so many bytes each.
    #[must_use]
    pub fn new(count: usize, bytes: usize) -> Self {
        Self { slots: Slots::new(count, bytes.max(1)), has_ip_header: false, to: None, from: None }
    }

    /// Whether there may be more than what was received last.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.slots.is_full()
    }

    /// The datagrams that were received last.
    pub fn datagrams(&self) -> impl Iterator<Item = Received<'_>> {
        (0..self.slots.filled()).filter_map(|at| self.datagram(at))
    }

    fn datagram(&self, at: usize) -> Option<Received<'_>> {
        let arrived = self.slots.get(at)?;
        let from = self.from.or_else(|| address::decode(arrived.address))?;
        let said = control::parse(arrived.control);
        let (bytes, header) = match arrived.bytes.first() {
            Some(first) if self.has_ip_header => {
                let header = usize::from(first & 0x0f) * 4;
                (arrived.bytes.get(header..).unwrap_or_default(), header)
            }
            _ if from.is_ipv6() => (arrived.bytes, 40),
            _ => (arrived.bytes, 20),
        };
        Some(Received {
            bytes,
            packet_bytes: header + bytes.len(),
            from,
            to: said.to.or(self.to),
            hops: said.hops,
            traffic_class: said.traffic_class,
            software_ns: said.software_ns,
            hardware_ns: said.hardware_ns,
            truncated: arrived.flags & libc::MSG_TRUNC as u32 != 0,
        })
    }

    /// The notices that were read last.
    pub fn notices(&self) -> impl Iterator<Item = Notice<'_>> {
        (0..self.slots.filled()).filter_map(|at| self.notice(at))
    }

    fn notice(&self, at: usize) -> Option<Notice<'_>> {
        let arrived = self.slots.get(at)?;
        let said = control::parse(arrived.control);
        let error = said.error?;
        Some(match error.point() {
            Some(point) => Notice::Stamp {
                key: error.data,
                point,
                software_ns: said.software_ns,
                hardware_ns: said.hardware_ns,
            },
            None => Notice::Undelivered {
                cause: error.cause(),
                by: error.offender,
                to: address::decode(arrived.address),
                bytes: arrived.bytes,
            },
        })
    }
}
