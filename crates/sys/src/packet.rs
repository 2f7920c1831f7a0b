//! AF_PACKET sockets: raw frames of one interface.
//!
//! Formats and options: packet(7) and Documentation/networking/packet_mmap.rst of the kernel.

use super::control::Builder;
use super::message::{self, Parcel, Slots};
use super::option::{SocketOption, attach_filter};
use super::{checked, poll, socket};
use rustix::net::sockopt::socket_error;
use rustix::net::{SendFlags, send};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// `<linux/if_packet.h>`; not in libc.
const PACKET_VNET_HDR: libc::c_int = 15;

// SAFETY: the types of packet(7), all of them integers alone.
const ADD_MEMBERSHIP: SocketOption<libc::packet_mreq> =
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP) };
/// `struct tpacket_stats`: frames that came, frames dropped.
// SAFETY: as above.
const STATISTICS: SocketOption<[u32; 2]> =
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_STATISTICS) };
// SAFETY: a clock and flags, two integers.
const TXTIME: SocketOption<libc::sock_txtime> =
    unsafe { SocketOption::new(libc::SOL_SOCKET, libc::SO_TXTIME) };
/// Memory for stamps that wait, and for frames that wait for their time: of 32,000 frames or so, each with the kernel's
/// structures.
const BUFFER: libc::c_int = 32 << 20;
/// Stamps of sent frames by driver and NIC, with the number of the frame. With the frame itself, a time at which it is to
/// depart would be taken for a stamp of the kernel.
const SENT: libc::c_uint = libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY
    | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;

/// A raw socket bound to one interface.
#[derive(Debug)]
pub struct Socket {
    pub(super) file: OwnedFd,
}

/// The kernel's counts since the last question.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    /// Frames for which there was no room.
    pub dropped: u32,
}

impl Socket {
    /// A socket that sends, and receives nothing until [`listen`](Self::listen).
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)? })
    }

    /// Binds to an interface; with `receive`, every frame that comes in is received from now on.
    pub fn bind(&self, index: u32, receive: bool) -> io::Result<()> {
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
    pub fn promiscuous(&self, index: u32) -> io::Result<()> {
        // SAFETY: all-zero bits are a valid request.
        let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
        request.mr_ifindex = index as i32;
        request.mr_type = libc::PACKET_MR_PROMISC as u16;
        ADD_MEMBERSHIP.set(self.as_fd(), &request)
    }

    /// Leaves out frames that this host sends through the interface.
    pub fn ignore_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
    }

    /// Sends past the queueing discipline, straight to the driver.
    pub fn bypass_qdisc(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)
    }

    /// Sends through the queueing discipline, as usual.
    pub fn use_qdisc(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 0)
    }

    /// Has stamps of sent frames come back ([`notices`](Self::notices)): by the kernel when its driver has them, by the NIC
    /// where that stamps. The kernel numbers the frames from 0 on.
    pub fn stamp_sent(&self, by_kernel: bool, by_nic: bool) -> io::Result<()> {
        self.enlarge(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
        let mut flags = SENT;
        flags |= if by_kernel { libc::SOF_TIMESTAMPING_TX_SOFTWARE } else { 0 };
        flags |= if by_nic { libc::SOF_TIMESTAMPING_TX_HARDWARE } else { 0 };
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags.cast_signed())
    }

    /// Lets frames be sent at times of `CLOCK_TAI`; frames whose time has passed come back as missed.
    pub fn depart_by_tai(&self) -> io::Result<()> {
        self.enlarge(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
        let flags = libc::SOF_TXTIME_REPORT_ERRORS;
        TXTIME.set(self.as_fd(), &libc::sock_txtime { clockid: libc::CLOCK_TAI, flags })
    }

    /// Gives sent frames this priority, by which a queueing discipline may choose.
    pub fn prioritize(&self, priority: u32) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_PRIORITY, priority.cast_signed())
    }

    /// Makes a buffer large; without CAP_NET_ADMIN as large as this host allows.
    fn enlarge(&self, forced: libc::c_int, usual: libc::c_int) -> io::Result<()> {
        let set = |name| self.set(libc::SOL_SOCKET, name, BUFFER);
        set(forced).or_else(|_| set(usual))
    }

    /// Has frames stamped as early as the kernel sees them, not when they reach the socket.
    pub fn stamp_early(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
    }

    /// Prefers the stamps of the NIC where it makes some.
    pub fn prefer_hardware_stamps(&self) -> io::Result<()> {
        let flags = libc::SOF_TIMESTAMPING_RAW_HARDWARE as i32;
        self.set(libc::SOL_PACKET, libc::PACKET_TIMESTAMP, flags)
    }

    /// Sets an option that takes an integer.
    pub(super) fn set(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: libc::c_int,
    ) -> io::Result<()> {
        socket::set(self.as_fd(), level, name, value)
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
        attach_filter(self.as_fd(), &mut code)
    }

    /// Has a header for the kernel before each frame that is sent: `struct virtio_net_hdr`.
    pub(super) fn expect_headers(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, PACKET_VNET_HDR, 1)
    }

    /// Sends the frames in the send ring.
    pub(super) fn send_ring(&self) -> io::Result<()> {
        // Nothing is passed: the frames are in the ring.
        send(&self.file, &[], SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Frames that were dropped since the last call.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let [_, dropped] = STATISTICS.get(self.as_fd())?;
        Ok(Statistics { dropped })
    }

    /// The error that the socket holds, for example that its interface went down.
    pub fn error(&self) -> io::Result<()> {
        Ok(socket_error(&self.file)??)
    }

    /// Sends a frame. The kernel takes none when it has no room.
    pub fn send(&self, frame: &[u8]) -> io::Result<Taken> {
        match send(&self.file, frame, SendFlags::DONTWAIT) {
            Ok(_) => Ok(Taken { frames: 1, dropped: false }),
            Err(error) => Taken::of(0, error.into()),
        }
    }

    /// Sends a frame at a time of `CLOCK_TAI` in ns.
    pub fn send_at(&self, frame: &[u8], at_ns: i64) -> io::Result<Taken> {
        let mut control = Builder::default();
        control.departure(at_ns.cast_unsigned());
        let parcel = Parcel { bytes: frame, address: &[], control: control.bytes() };
        match message::send(self.as_fd(), &[parcel]) {
            Ok(frames) => Ok(Taken { frames, dropped: false }),
            Err(error) => Taken::of(0, error),
        }
    }

    /// Fetches stamps of sent frames, and frames that missed their time. Returns their number.
    pub fn notices(&self, slots: &mut Slots) -> io::Result<usize> {
        message::receive(self.as_fd(), slots, libc::MSG_ERRQUEUE)
    }

    /// Waits until a frame can be received. Returns whether one can.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let [ready] = poll::readable([self.as_fd()], timeout)?;
        if ready.failed {
            self.error()?;
        }
        Ok(ready.readable)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Frames that the kernel took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// From the front of those that were to be sent.
    pub frames: usize,
    /// Whether it dropped the next one when that had its number already.
    pub dropped: bool,
}

impl Taken {
    /// So many, since there was no room for more.
    pub(super) fn of(frames: usize, error: io::Error) -> io::Result<Self> {
        let dropped = error.raw_os_error() == Some(libc::ENOBUFS);
        no_room(error).map(|()| Self { frames, dropped })
    }
}

/// Ignores errors that only mean that there is no room now.
pub(super) fn no_room(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}
