//! AF_PACKET sockets: raw frames of one interface.
//!
//! Formats and options: packet(7) and Documentation/networking/packet_mmap.rst of the kernel.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A raw socket bound to one interface.
#[derive(Debug)]
pub(crate) struct Socket {
    file: OwnedFd,
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

    fn set<T>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
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

    /// Sends frames in one system call. Returns how many the kernel took: fewer when it has no room.
    pub(crate) fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        const MOST: usize = 64;
        let sent = if let [frame] = frames {
            // SAFETY: the frame is valid for reading and of the length given.
            let sent = unsafe {
                libc::send(
                    self.file.as_raw_fd(),
                    frame.as_ptr().cast(),
                    frame.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            if sent < 0 { -1 } else { 1 }
        } else {
            let count = frames.len().min(MOST);
            // Only what is used is written: clearing all of it costs more than sending a frame.
            let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; MOST];
            let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MOST];
            for ((message, vector), frame) in messages.iter_mut().zip(&mut vectors).zip(frames) {
                // The kernel only reads from what it sends.
                let base = frame.as_ptr().cast_mut().cast();
                let vector = vector.write(libc::iovec { iov_base: base, iov_len: frame.len() });
                // SAFETY: all-zero bits are a valid message without data.
                let message = message.write(unsafe { std::mem::zeroed() });
                message.msg_hdr.msg_iov = std::ptr::from_mut(vector);
                message.msg_hdr.msg_iovlen = 1;
            }
            // SAFETY: every message up to the count was written and points to a vector that points to a
            // frame, all of which live until the call returns.
            unsafe {
                libc::sendmmsg(
                    self.file.as_raw_fd(),
                    messages.as_mut_ptr().cast(),
                    count as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            }
        };
        if sent >= 0 {
            return Ok(sent as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR) => Ok(0),
            _ => Err(error),
        }
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

/// The index of an interface.
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name ends with a zero byte.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The MAC address of an interface.
pub(crate) fn interface_mac(name: &str) -> io::Result<[u8; 6]> {
    let request = interface_request(name, libc::SIOCGIFHWADDR as _)?;
    // SAFETY: the request was answered, so this member of the union is the one that was written.
    let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok([0, 1, 2, 3, 4, 5].map(|at| data[at] as u8))
}

/// Most bytes that an interface carries behind the L2 header.
pub(crate) fn interface_mtu(name: &str) -> io::Result<usize> {
    let request = interface_request(name, libc::SIOCGIFMTU as _)?;
    // SAFETY: as above.
    Ok(unsafe { request.ifr_ifru.ifru_mtu }.max(0) as usize)
}

fn interface_request(name: &str, what: libc::c_ulong) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bits are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = name.as_bytes();
    // The last byte of the name stays zero.
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(name) {
        *slot = *byte as libc::c_char;
    }
    let socket = Socket::new()?;
    // SAFETY: the request is valid for reading and writing, which is what both numbers ask for.
    checked(unsafe { libc::ioctl(socket.file.as_raw_fd(), what as _, &raw mut request) })?;
    Ok(request)
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A frame in the ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) bytes: &'a [u8],
    /// Bytes that the frame had on the wire.
    pub(crate) length: u32,
    pub(crate) seconds: u32,
    pub(crate) nanoseconds: u32,
    pub(crate) status: u32,
    /// The 802.1Q tag that the kernel took out: protocol and control information.
    pub(crate) tag: Option<(u16, u16)>,
}

/// The stamp comes from the NIC.
pub(crate) const STAMPED_BY_HARDWARE: u32 = libc::TP_STATUS_TS_RAW_HARDWARE;

/// A receive ring shared with the kernel (TPACKET_V2).
///
/// Version 2 has a slot for each frame and shows it as soon as it is there. Version 3 packs frames into
/// blocks and shows a block when it is full or after at least a millisecond, which a forwarder cannot use.
#[derive(Debug)]
pub(crate) struct Ring {
    start: NonNull<u8>,
    bytes: usize,
    slot_bytes: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone, and is not tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Gives a socket that is not bound yet a ring for `slots` frames of up to `snap` bytes each; both
    /// are rounded up.
    pub(crate) fn new(socket: &Socket, slots: usize, snap: usize) -> io::Result<Self> {
        const BLOCK: usize = 1 << 20;
        const VERSION: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &VERSION)?;
        // Room for a tag that the kernel took out, in front of the frame.
        socket.set(libc::SOL_PACKET, libc::PACKET_RESERVE, &0_i32)?;
        // Header, address, and the alignment of the IP header come before the frame.
        let slot_bytes = (snap + 96).next_power_of_two().clamp(256, BLOCK);
        let slots = slots.max(1) * slot_bytes / BLOCK * BLOCK / slot_bytes;
        let slots = slots.max(BLOCK / slot_bytes);
        let bytes = slots * slot_bytes;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (bytes / BLOCK) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping of the ring that the socket has just been given; no address is asked for.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                socket.file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Self { start, bytes, slot_bytes, slots, next: 0 })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Whether frames wait in half of the slots or more.
    pub(crate) fn is_half_full(&self) -> bool {
        let middle = (self.next + self.slots / 2) % self.slots;
        self.status(middle).load(Ordering::Relaxed) & libc::TP_STATUS_USER != 0
    }

    /// The word by which a slot changes hands.
    #[inline]
    fn status(&self, slot: usize) -> &AtomicU32 {
        assert!(slot < self.slots);
        // SAFETY: the slot lies within the mapping, which lives as long as `self`. It begins with a
        // tpacket2_hdr, whose first field is the status, aligned as slots are powers of two; the kernel
        // changes it only atomically.
        unsafe { AtomicU32::from_ptr(self.start.add(slot * self.slot_bytes).as_ptr().cast()) }
    }

    /// Hands the next frame to `take` and its slot back to the kernel. Returns whether there was one.
    #[inline]
    pub(crate) fn receive(&mut self, take: &mut dyn FnMut(Slot<'_>)) -> bool {
        let flags = self.status(self.next).load(Ordering::Acquire);
        if flags & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: `next` is below `slots`, so the slot lies within the mapping.
        let slot = unsafe { self.start.add(self.next * self.slot_bytes) };
        // SAFETY: the slot belongs to this process until the status is written; the kernel has filled in
        // the header before it set the status.
        let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
        let at = usize::from(header.tp_mac).min(self.slot_bytes);
        let length = (header.tp_snaplen as usize).min(self.slot_bytes - at);
        // SAFETY: both lie within the slot, by the lines above; nothing writes to it until it is handed
        // back below, and `take` cannot keep the slice.
        let bytes = unsafe { std::slice::from_raw_parts(slot.as_ptr().add(at), length) };
        let protocol =
            if flags & libc::TP_STATUS_VLAN_TPID_VALID != 0 { header.tp_vlan_tpid } else { 0x8100 };
        take(Slot {
            bytes,
            length: header.tp_len,
            seconds: header.tp_sec,
            nanoseconds: header.tp_nsec,
            status: flags,
            tag: (flags & libc::TP_STATUS_VLAN_VALID != 0)
                .then_some((protocol, header.tp_vlan_tci)),
        });
        self.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no slice of it lives.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
