//! Datagram sockets, UDP and ICMP echo, that take a stamp of each datagram at several points.
//!
//! * Receive stamps come with the datagram: when the kernel took it from the driver, and when the NIC received it.
//! * Send stamps come back through the error queue: when it was handed to the queueing discipline, when the
//!   driver gave it to the NIC, and when the NIC sent it. Each names the datagram by a number.
//! * ICMP messages about a datagram come back the same way, with the datagram's own bytes.

mod inbox;
mod nic;
mod opening;
mod sending;
mod settings;

pub use inbox::{Inbox, Notice, Received};
pub use nic::NicStamps;
pub use settings::{Outgoing, Sent, Settings, SocketError, Stamping, Transport};
pub use tailtrim_sys::control::{ErrorOrigin, Point};

use opening::{
    BINDING, BINDING_TO_INTERFACE, BUSY_POLL, FINDING_ROUTE, open_echo, open_failed, open_udp,
};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use tailtrim_sys::{address, clock, message, poll, socket as sys};

/// Most datagrams that one call sends.
pub const BATCH: usize = message::MOST;

/// A socket.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
    local: SocketAddr,
    transport: Transport,
    /// A raw socket, on which received datagrams have an IPv4 header.
    is_raw: bool,
    stamping: Stamping,
    /// Whether only bytes are wanted.
    bare: bool,
    next_key: u32,
    /// Address to which it is connected: the kernel then knows the route, unless an address is given with a datagram.
    peer: Option<SocketAddr>,
    /// Traffic class of datagrams that have none of their own.
    class: u8,
    /// Their TTL or hop limit; `None`: the host's default.
    hops: Option<u8>,
    /// Whether the kernel takes the numbers of datagrams from us (Linux 6.13); else it counts itself.
    gives_keys: bool,
}

impl Socket {
    /// Opens and binds a socket.
    ///
    /// # Errors
    /// [`SocketError::Open`].
    pub fn open(settings: &Settings) -> Result<Self, SocketError> {
        Self::open_shared(settings, false)
    }

    fn open_shared(settings: &Settings, shared: bool) -> Result<Self, SocketError> {
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
            bare: settings.bare,
            next_key: 0,
            peer: None,
            class: settings.traffic_class.unwrap_or(0),
            hops: settings.hops,
            gives_keys: true,
        };
        socket.configure(settings)?;
        if shared {
            socket.share(true)?;
        }
        let bound = if is_raw { SocketAddr::new(local.ip(), 0) } else { local };
        sys::bind(socket.as_fd(), address::encode(bound).bytes())
            .map_err(|source| open_failed(local, BINDING, source))?;
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
        if self.bound_to().is_none() {
            set("asking for addresses", ip, choose(libc::IPV6_RECVPKTINFO, libc::IP_PKTINFO), 1)?;
        }
        if settings.errors {
            set("asking for errors", ip, choose(libc::IPV6_RECVERR, libc::IP_RECVERR), 1)?;
        }
        if is_v6 && !self.is_raw && self.transport == Transport::Udp {
            set("keeping to IPv6", ip, libc::IPV6_V6ONLY, 1)?;
        }
        if let Some(device) = &settings.device {
            sys::bind_to_device(self.as_fd(), device)
                .map_err(|source| open_failed(self.local, BINDING_TO_INTERFACE, source))?;
        }
        if let Some(class) = settings.traffic_class {
            set("traffic class", ip, choose(libc::IPV6_TCLASS, libc::IP_TOS), class.into())?;
        }
        if let Some(hops) = settings.hops {
            set("TTL", ip, choose(libc::IPV6_UNICAST_HOPS, libc::IP_TTL), hops.into())?;
        }
        if let Some(us) = settings.busy_poll_us {
            set(BUSY_POLL, libc::SOL_SOCKET, libc::SO_BUSY_POLL, us.cast_signed())?;
        }
        if let Some(bytes) = settings.receive_buffer {
            self.size_receive_buffer(bytes)?;
        }
        if settings.whole {
            let option = choose(libc::IPV6_MTU_DISCOVER, libc::IP_MTU_DISCOVER);
            set("never fragmenting", ip, option, libc::IP_PMTUDISC_DO)?;
        }
        self.ask_for_stamps()
    }

    /// Makes the receive buffer as large as the host allows: beyond its limit only with CAP_NET_ADMIN.
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
        self.prefer(peer)?;
        self.ask_for_less()?;
        let (name, length) = sys::name(self.as_fd())
            .map_err(|source| open_failed(self.local, "asking for its address", source))?;
        if let Some(name) = address::decode(&name[..length]) {
            let port = if self.is_raw { self.local.port() } else { name.port() };
            self.local = SocketAddr::new(name.ip(), port);
        }
        Ok(())
    }

    /// Opens a second socket at the address and port of this one, which must be a certain address. It receives nothing
    /// before [`prefer`](Self::prefer).
    ///
    /// # Errors
    /// [`SocketError::Open`].
    pub fn second(&self, settings: &Settings) -> Result<Self, SocketError> {
        // Shared only for this moment: other processes that want the port must get the error that it is taken.
        self.share(true)?;
        let settings = Settings { local: self.local, ..settings.clone() };
        let second = Self::open_shared(&settings, true);
        self.share(false)?;
        let mut second = second?;
        second.share(false)?;
        // Connected to itself, so that nothing more comes. Datagrams from before that are in its queue, too.
        second.prefer(self.local)?;
        Ok(second)
    }

    fn share(&self, shared: bool) -> Result<(), SocketError> {
        sys::set(self.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, shared.into())
            .map_err(|source| open_failed(self.local, "sharing the port", source))
    }

    /// From now on, datagrams from `peer` to a port with two sockets come here, and none from others.
    ///
    /// # Errors
    /// [`SocketError::Open`]: no route, mostly.
    pub fn prefer(&mut self, peer: SocketAddr) -> Result<(), SocketError> {
        sys::connect(self.as_fd(), address::encode(peer).bytes())
            .map_err(|source| open_failed(self.local, FINDING_ROUTE, source))?;
        self.peer = Some(peer);
        Ok(())
    }

    /// Turns off the receive address and class: with one peer the address is known, and the class is not read. Each
    /// costs time.
    fn ask_for_less(&self) -> Result<(), SocketError> {
        let (level, names) = if self.local.is_ipv6() {
            let names = [libc::IPV6_RECVTCLASS, libc::IPV6_RECVPKTINFO, libc::IPV6_RECVHOPLIMIT];
            (libc::SOL_IPV6, names)
        } else {
            (libc::SOL_IP, [libc::IP_RECVTOS, libc::IP_PKTINFO, libc::IP_RECVTTL])
        };
        for &name in &names[..if self.bare { 3 } else { 2 }] {
            sys::set(self.as_fd(), level, name, 0)
                .map_err(|source| open_failed(self.local, "asking for less", source))?;
        }
        Ok(())
    }

    /// The destination address of all received datagrams, where it is known from the start.
    fn bound_to(&self) -> Option<IpAddr> {
        let ip = self.local.ip();
        (!ip.is_unspecified()).then_some(ip)
    }

    /// Fetches the datagrams that have come. Returns their number; there may be more of a burst, until it returns 0.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn receive(&self, inbox: &mut Inbox) -> Result<usize, SocketError> {
        inbox.has_ip_header = self.is_raw && self.local.is_ipv4();
        inbox.to = self.bound_to();
        inbox.from = self.peer.filter(|_| self.bare);
        let received = if inbox.from.is_some() {
            message::receive_plain(self.as_fd(), &mut inbox.slots)
        } else {
            message::receive(self.as_fd(), &mut inbox.slots, 0)
        };
        match received {
            // An ICMP message about an earlier datagram: the error queue has it in full.
            Err(error) if is_about_a_datagram(&error) => Ok(0),
            other => other.map_err(|source| self.broken("receiving", source)),
        }
    }

    /// Fetches stamps and errors of sent datagrams. Returns their number.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn notices(&self, inbox: &mut Inbox) -> Result<usize, SocketError> {
        match message::receive(self.as_fd(), &mut inbox.slots, libc::MSG_ERRQUEUE) {
            Err(error) if is_about_a_datagram(&error) => Ok(0),
            other => other.map_err(|source| self.broken("reading the error queue", source)),
        }
    }

    /// Datagrams for which there was no room, since it was opened.
    ///
    /// # Errors
    /// [`SocketError::Broken`].
    pub fn overflowed(&self) -> Result<u32, SocketError> {
        sys::dropped(self.as_fd()).map_err(|source| self.broken("asking for overflows", source))
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

/// Error bound of that clock against UTC; `None` if it is not synchronised.
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
