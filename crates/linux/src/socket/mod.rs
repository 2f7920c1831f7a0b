//! Datagram sockets, UDP and ICMP echo, that tell when each datagram passed which point.
//!
//! * Receive stamps come beside the datagram: when the kernel took it from the driver, and when the NIC
//!   received it.
//! * Send stamps come back through the error queue: when it was handed to the queueing discipline, when the
//!   driver gave it to the NIC, and when the NIC sent it. Each names the datagram by a number.
//! * ICMP messages about a datagram come back the same way, with the datagram's own bytes.

mod address;
mod control;
mod inbox;
mod nic;

pub use inbox::{Cause, Inbox, Notice, Point, Received};
pub use nic::NicStamps;

use crate::sys::socket::{self as sys, MOST, Parcel};
use crate::sys::{clock, poll};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Most datagrams that one call sends.
pub const BATCH: usize = MOST;

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
    /// Share the port with other sockets of this user; the kernel spreads flows over them.
    pub share_port: bool,
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
            share_port: false,
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
    /// Why not the next one: the error's number.
    pub refused: Option<i32>,
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
    local: SocketAddr,
    transport: Transport,
    /// A raw socket, which has an IPv4 header before what it receives.
    is_raw: bool,
    stamping: Stamping,
    next_key: u32,
    /// Whether the kernel takes the numbers of datagrams from us (Linux 6.13); else it counts itself.
    gives_keys: bool,
}

impl Socket {
    /// Opens and binds a socket.
    ///
    /// # Errors
    /// [`SocketError::Open`].
    pub fn open(settings: &Settings) -> Result<Self, SocketError> {
        let local = settings.local;
        let (file, is_raw) = match settings.transport {
            Transport::Udp => (open_udp(local)?, false),
            Transport::IcmpEcho { identifier } => open_echo(local, identifier)?,
        };
        let mut socket = Self {
            file,
            local,
            transport: settings.transport,
            is_raw,
            stamping: settings.stamping,
            next_key: 0,
            gives_keys: true,
        };
        socket.configure(settings)?;
        let bound = if is_raw { SocketAddr::new(local.ip(), 0) } else { local };
        sys::bind(socket.as_fd(), address::encode(bound).bytes())
            .map_err(|source| open_failed(local, "binding", source))?;
        if !is_raw {
            let (name, length) = sys::name(socket.as_fd())
                .map_err(|source| open_failed(local, "asking for its address", source))?;
            socket.local = address::decode(&name[..length]).unwrap_or(local);
        }
        Ok(socket)
    }

    fn configure(&self, settings: &Settings) -> Result<(), SocketError> {
        let is_v6 = self.local.is_ipv6();
        let ip = if is_v6 { libc::SOL_IPV6 } else { libc::SOL_IP };
        let choose = |v6: libc::c_int, v4: libc::c_int| if is_v6 { v6 } else { v4 };
        let set = |what, level, name, value| {
            sys::set(self.as_fd(), level, name, value)
                .map_err(|source| open_failed(self.local, what, source))
        };
        set("asking for TTLs", ip, choose(libc::IPV6_RECVHOPLIMIT, libc::IP_RECVTTL), 1)?;
        set("asking for classes", ip, choose(libc::IPV6_RECVTCLASS, libc::IP_RECVTOS), 1)?;
        set("asking for addresses", ip, choose(libc::IPV6_RECVPKTINFO, libc::IP_PKTINFO), 1)?;
        set("asking for errors", ip, choose(libc::IPV6_RECVERR, libc::IP_RECVERR), 1)?;
        set("asking for overflows", libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        if is_v6 && !self.is_raw && self.transport == Transport::Udp {
            set("keeping to IPv6", ip, libc::IPV6_V6ONLY, 1)?;
        }
        if let Some(device) = &settings.device {
            sys::set_bytes(
                self.as_fd(),
                libc::SOL_SOCKET,
                libc::SO_BINDTODEVICE,
                device.as_bytes(),
            )
            .map_err(|source| open_failed(self.local, "binding to the interface", source))?;
        }
        if let Some(class) = settings.traffic_class {
            set("traffic class", ip, choose(libc::IPV6_TCLASS, libc::IP_TOS), class.into())?;
        }
        if let Some(hops) = settings.hops {
            set("TTL", ip, choose(libc::IPV6_UNICAST_HOPS, libc::IP_TTL), hops.into())?;
        }
        if let Some(us) = settings.busy_poll_us {
            set("busy poll", libc::SOL_SOCKET, libc::SO_BUSY_POLL, us.cast_signed())?;
        }
        if let Some(bytes) = settings.receive_buffer {
            self.size_receive_buffer(bytes)?;
        }
        if settings.whole {
            let option = choose(libc::IPV6_MTU_DISCOVER, libc::IP_MTU_DISCOVER);
            set("never fragmenting", ip, option, libc::IP_PMTUDISC_DO)?;
        }
        if settings.share_port {
            set("sharing the port", libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        self.ask_for_stamps()
    }

    /// As much as the host allows: beyond its limit only with CAP_NET_ADMIN.
    fn size_receive_buffer(&self, bytes: usize) -> Result<(), SocketError> {
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        sys::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
            .or_else(|_| sys::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
            .map_err(|source| open_failed(self.local, "receive buffer", source))
    }

    fn ask_for_stamps(&self) -> Result<(), SocketError> {
        let Stamping { receive, send, hardware } = self.stamping;
        if !receive && !send {
            return Ok(());
        }
        let mut flags = libc::SOF_TIMESTAMPING_SOFTWARE;
        if receive {
            flags |= libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        }
        if send {
            // Only the stamp comes back, not the datagram with it; its number says which.
            flags |= libc::SOF_TIMESTAMPING_TX_SCHED
                | libc::SOF_TIMESTAMPING_TX_SOFTWARE
                | libc::SOF_TIMESTAMPING_OPT_CMSG
                | libc::SOF_TIMESTAMPING_OPT_ID
                | libc::SOF_TIMESTAMPING_OPT_TSONLY;
        }
        if hardware {
            flags |= libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            if receive {
                flags |= libc::SOF_TIMESTAMPING_RX_HARDWARE;
            }
            if send {
                flags |= libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
            }
        }
        sys::set(
            self.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (flags as libc::c_uint).cast_signed(),
        )
        .map_err(|source| open_failed(self.local, "asking for stamps", source))
    }

    /// The address and port that it is bound to.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The identifier of ICMP echoes: the kernel's choice where it makes one.
    #[must_use]
    pub fn identifier(&self) -> Option<u16> {
        match self.transport {
            Transport::Udp => None,
            Transport::IcmpEcho { identifier } if self.is_raw => Some(identifier),
            Transport::IcmpEcho { .. } => Some(self.local.port()),
        }
    }

    /// Receives from, and sends to, this address only. The kernel then knows the route, so that
    /// [`local`](Self::local) is the address from which datagrams leave.
    ///
    /// # Errors
    /// [`SocketError::Open`]: no route, mostly.
    pub fn connect(&mut self, peer: SocketAddr) -> Result<(), SocketError> {
        sys::connect(self.as_fd(), address::encode(peer).bytes())
            .map_err(|source| open_failed(self.local, "finding the route", source))?;
        let (name, length) = sys::name(self.as_fd())
            .map_err(|source| open_failed(self.local, "asking for its address", source))?;
        if let Some(name) = address::decode(&name[..length]) {
            let port = if self.is_raw { self.local.port() } else { name.port() };
            self.local = SocketAddr::new(name.ip(), port);
        }
        Ok(())
    }

    /// Sends datagrams, at most [`BATCH`]. The kernel may take fewer: [`Sent::refused`] says why.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn send(&mut self, batch: &[Outgoing<'_>]) -> Result<Sent, SocketError> {
        let first_key = self.next_key;
        let batch = &batch[..batch.len().min(BATCH)];
        let addresses: Vec<_> = batch.iter().map(|one| address::encode(one.to)).collect();
        let controls: Vec<_> =
            (first_key..).zip(batch).map(|(k, one)| self.beside(one, k)).collect();
        let parcels: Vec<Parcel<'_>> = batch
            .iter()
            .zip(addresses.iter().zip(&controls))
            .map(|(one, (address, control))| Parcel {
                bytes: one.bytes,
                address: address.bytes(),
                control: control.bytes(),
            })
            .collect();
        let mut result = sys::send(self.as_fd(), &parcels);
        if result.as_ref().is_err_and(is_about_a_datagram) {
            // It may be an ICMP message about an earlier one, which is told only once.
            result = sys::send(self.as_fd(), &parcels);
        }
        match result {
            Ok(taken) => {
                self.next_key = self.next_key.wrapping_add(taken as u32);
                Ok(Sent { first_key, taken, refused: None })
            }
            Err(error) => self.not_sent(error, batch, first_key),
        }
    }

    fn beside(&self, one: &Outgoing<'_>, key: u32) -> control::Builder {
        let is_v6 = self.local.is_ipv6();
        let mut control = control::Builder::new();
        if let Some(source) = one.from {
            control.source(source);
        }
        if let Some(class) = one.traffic_class {
            control.traffic_class(is_v6, class);
        }
        if let Some(hops) = one.hops {
            control.hops(is_v6, hops);
        }
        if self.stamping.send && self.gives_keys {
            control.key(key);
        }
        control
    }

    fn not_sent(
        &mut self,
        error: io::Error,
        batch: &[Outgoing<'_>],
        first_key: u32,
    ) -> Result<Sent, SocketError> {
        let errno = error.raw_os_error().unwrap_or(0);
        match errno {
            // A kernel that does not know the control message with the number.
            libc::EINVAL if self.stamping.send && self.gives_keys && first_key == 0 => {
                self.gives_keys = false;
                self.send(batch)
            }
            libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::ENOMEM => {
                Err(SocketError::Broken { local: self.local, what: "sending", source: error })
            }
            _ => {
                if self.stamping.send && !self.gives_keys {
                    self.count_anew()?;
                }
                Ok(Sent { first_key, taken: 0, refused: Some(errno) })
            }
        }
    }

    /// A kernel that counts itself may or may not have counted what it refused, by its version. Asked anew
    /// for stamps, it starts from 0.
    fn count_anew(&mut self) -> Result<(), SocketError> {
        sys::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, 0)
            .map_err(|source| open_failed(self.local, "asking for stamps", source))?;
        self.ask_for_stamps()?;
        self.next_key = 0;
        Ok(())
    }

    /// Fetches datagrams that are there. Returns how many.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn receive(&self, inbox: &mut Inbox) -> Result<usize, SocketError> {
        inbox.has_ip_header = self.is_raw && self.local.is_ipv4();
        match sys::receive(self.as_fd(), &mut inbox.slots, 0) {
            // An ICMP message about an earlier datagram: the error queue has it in full.
            Err(error) if is_about_a_datagram(&error) => Ok(0),
            other => other.map_err(|source| self.broken("receiving", source)),
        }
    }

    /// Fetches stamps and errors of what was sent. Returns how many.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn notices(&self, inbox: &mut Inbox) -> Result<usize, SocketError> {
        match sys::receive(self.as_fd(), &mut inbox.slots, libc::MSG_ERRQUEUE) {
            Err(error) if is_about_a_datagram(&error) => Ok(0),
            other => other.map_err(|source| self.broken("reading the error queue", source)),
        }
    }

    /// Waits until something can be fetched, at most so long. Returns whether datagrams, and whether
    /// notices are there.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn wait(&self, timeout: Duration) -> Result<(bool, bool), SocketError> {
        let [ready] = poll::readable([self.as_fd()], timeout)
            .map_err(|source| self.broken("waiting", source))?;
        Ok((ready.readable, ready.failed))
    }

    fn broken(&self, what: &'static str, source: io::Error) -> SocketError {
        SocketError::Broken { local: self.local, what, source }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Waits until one of several sockets has something, at most so long. Returns whether one has.
///
/// # Errors
/// [`SocketError::Broken`].
pub fn wait_any<'a>(
    sockets: impl IntoIterator<Item = &'a Socket>,
    timeout: Duration,
) -> Result<bool, SocketError> {
    let mut local = SocketAddr::from(([0, 0, 0, 0], 0));
    let files: Vec<BorrowedFd<'_>> = sockets
        .into_iter()
        .map(|socket| {
            local = socket.local();
            socket.as_fd()
        })
        .collect();
    poll::any(&files, timeout).map_err(|source| SocketError::Broken {
        local,
        what: "waiting",
        source,
    })
}

/// How far that clock may be from UTC; `None` where nobody keeps it synchronised.
#[must_use]
pub fn clock_bound_ns() -> Option<u64> {
    clock::synchronized_within_ns()
}

/// Now, by the clock of the kernel's stamps.
#[must_use]
pub fn now_ns() -> i64 {
    clock::realtime_ns()
}

fn is_about_a_datagram(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::EHOSTDOWN
                | libc::ENOPROTOOPT
                | libc::EACCES
                | libc::EMSGSIZE
                | libc::EPROTO
                | libc::EOPNOTSUPP
        )
    )
}

fn open_failed(local: SocketAddr, what: &'static str, source: io::Error) -> SocketError {
    let hint = match source.raw_os_error() {
        Some(libc::EADDRINUSE) => " (another process has this port: `ss -ulpn` shows which)",
        Some(libc::EADDRNOTAVAIL) => " (expected an address of this host: `ip address` lists them)",
        Some(libc::EACCES | libc::EPERM) => " (run as root or with CAP_NET_RAW and CAP_NET_ADMIN)",
        Some(libc::ENODEV) => " (no such interface: `ip link` lists them)",
        _ => "",
    };
    SocketError::Open { local, what, source, hint }
}

fn open_udp(local: SocketAddr) -> Result<OwnedFd, SocketError> {
    let family = if local.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    sys::open(family, libc::SOCK_DGRAM, libc::IPPROTO_UDP)
        .map_err(|source| open_failed(local, "opening a UDP socket", source))
}

/// A ping socket where the host allows one, else a raw socket that receives the replies to its identifier.
fn open_echo(local: SocketAddr, identifier: u16) -> Result<(OwnedFd, bool), SocketError> {
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
        hint: " (run as root, or let users ping: sysctl net.ipv4.ping_group_range=\"0 2147483647\")",
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
