//! AF_PACKET sockets: raw frames of one interface.
//!
//! Formats and options: packet(7) and Documentation/networking/packet_mmap.rst of the kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `<linux/if_packet.h>`; not in libc.
const PACKET_VNET_HDR: libc::c_int = 15;

/// A raw socket bound to one interface.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(super) file: OwnedFd,
}

/// What the kernel counted since the last question.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Statistics {
    /// Frames that found no room.
    pub(crate) dropped: u32,
}

impl Socket {
    /// A socket that sends, and receives nothing until [`listen`](Self::listen).
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes numbers only; its result is checked before it is owned.
        let file = unsafe {
            libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                0,
            )
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        Ok(Self { file: unsafe { OwnedFd::from_raw_fd(file) } })
    }

    /// Binds to an interface; with `receive`, every frame that comes in is received from now on.
    pub(crate) fn bind(&self, index: u32, receive: bool) -> io::Result<()> {
        // SAFETY: all-zero bits are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = if receive { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
        address.sll_ifindex = index as i32;
        // SAFETY: the address is valid for reading and of the length given.
        let result = unsafe {
            libc::bind(
                self.file.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        checked(result)
    }

    /// Receives frames to any address, not only to that of the interface.
    pub(crate) fn promiscuous(&self, index: u32) -> io::Result<()> {
        // SAFETY: all-zero bits are a valid request.
        let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
        request.mr_ifindex = index as i32;
        request.mr_type = libc::PACKET_MR_PROMISC as u16;
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Leaves out what this host sends through the interface.
    pub(crate) fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
    }

    /// Sends past the queueing discipline, straight to the driver.
    pub(crate) fn bypass_qdisc(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32)
    }

    /// Has frames stamped as early as the kernel sees them, not when they reach the socket.
    pub(crate) fn stamp_early(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)
    }

    /// Prefers the stamps of the NIC where it makes some.
    pub(crate) fn prefer_hardware_stamps(&self) -> io::Result<()> {
        let flags = libc::SOF_TIMESTAMPING_RAW_HARDWARE as i32;
        self.set(libc::SOL_PACKET, libc::PACKET_TIMESTAMP, &flags)
    }

    pub(super) fn set<T>(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: &T,
    ) -> io::Result<()> {
        // SAFETY: the value is valid for reading and of the length given; every caller passes the type
        // that the option takes.
        let result = unsafe {
            libc::setsockopt(
                self.file.as_raw_fd(),
                level,
                name,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        checked(result)
    }

    /// Keeps only the first bytes of received frames.
    pub(super) fn cut(&self, snap: usize) -> io::Result<()> {
        // The whole program: accept so many bytes.
        let mut code = [libc::sock_filter {
            code: (libc::BPF_RET | libc::BPF_K) as u16,
            jt: 0,
            jf: 0,
            k: snap as u32,
        }];
        let program = libc::sock_fprog { len: 1, filter: code.as_mut_ptr() };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Has a header for the kernel before each frame that is sent: `struct virtio_net_hdr`.
    pub(super) fn expect_headers(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, PACKET_VNET_HDR, &1_i32)
    }

    /// Sends what lies in the send ring.
    pub(super) fn send_ring(&self) -> io::Result<()> {
        // SAFETY: nothing is passed but numbers: the frames are in the ring.
        let sent =
            unsafe { libc::send(self.file.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// What was dropped since the last call.
    pub(crate) fn statistics(&self) -> io::Result<Statistics> {
        // struct tpacket_stats: frames that came, frames dropped.
        let mut counts = [0_u32; 2];
        let mut length = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the buffer is valid for writing and of the length given.
        let result = unsafe {
            libc::getsockopt(
                self.file.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        checked(result)?;
        Ok(Statistics { dropped: counts[1] })
    }

    /// The error that the socket holds, for example that its interface went down.
    pub(crate) fn error(&self) -> io::Result<()> {
        let mut code: libc::c_int = 0;
        let mut length = size_of_val(&code) as libc::socklen_t;
        // SAFETY: the buffer is valid for writing and of the length given.
        let result = unsafe {
            libc::getsockopt(
                self.file.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut code).cast(),
                &raw mut length,
            )
        };
        checked(result)?;
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    /// Sends a frame. Returns whether the kernel took it: not when it has no room.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<bool> {
        // SAFETY: the frame is valid for reading and of the length given.
        let sent = unsafe {
            libc::send(
                self.file.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
        if sent >= 0 { Ok(true) } else { no_room(io::Error::last_os_error()).map(|()| false) }
    }

    /// Waits until a frame can be received. Returns whether one can.
    pub(crate) fn wait(&self, timeout_ms: i32) -> io::Result<bool> {
        let mut poll = libc::pollfd { fd: self.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the one entry is valid for reading and writing.
        match unsafe { libc::poll(&raw mut poll, 1, timeout_ms) } {
            0 => Ok(false),
            1.. => {
                if poll.revents & libc::POLLERR != 0 {
                    self.error()?;
                }
                Ok(poll.revents & libc::POLLIN != 0)
            }
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

pub(super) fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets errors pass that only say that there is no room now.
pub(super) fn no_room(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}
