//! AF_XDP sockets: frames of one queue of an interface, in memory shared with the kernel (the UMEM).
//!
//! The UMEM is cut into chunks. One part of them circulates through the fill ring, the kernel and the
//! receive ring; the other through the send ring, the kernel and the completion ring. A chunk is touched
//! here only while it is in none of them.
//!
//! Formats and options: Documentation/networking/af_xdp.rst of the kernel, <linux/if_xdp.h>.

mod metadata;
mod ring;
mod setup;

use super::mapping::Mapping;
use super::option::SocketOption;
use super::socket::set;
use ring::{Consumer, Producer};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};
use setup::SEND_SLOTS;
pub use setup::{Failed, Shape};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// In front of each received frame the kernel leaves so many bytes to the program.
pub const HEADROOM: usize = 256;

/// Frames that one system call sends in copy mode, where the kernel lets that be set; otherwise 32.
const SEND_BUDGET: libc::c_int = 64;
/// `XDP_MAX_TX_SKB_BUDGET` of <linux/if_xdp.h>, since Linux 6.18.
const MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// Memory for copies of frames that have been sent and not been received yet: the default is a tenth of the send ring's
/// frames.
const SEND_BUFFER: libc::c_int = 32 << 20;

// SAFETY: the type that the kernel has for it, integers alone.
const STATISTICS: SocketOption<libc::xdp_statistics> =
    unsafe { SocketOption::new(libc::SOL_XDP, libc::XDP_STATISTICS) };

/// Calls without progress until frames are left in the send ring for the next time.
const FUTILE: u32 = 3;

/// A socket bound to a queue.
#[derive(Debug)]
pub struct Socket {
    file: OwnedFd,
    receive: Option<Consumer<libc::xdp_desc>>,
    fill: Producer<u64>,
    send: Producer<libc::xdp_desc>,
    complete: Consumer<u64>,
    /// Chunks to send from.
    free: Vec<u64>,
    /// Bytes of a frame that came in several chunks.
    whole: Vec<u8>,
    chunk_bytes: usize,
    zero_copy: bool,
    has_metadata: bool,
    /// Last: the socket is closed before the memory goes.
    memory: Mapping,
}

/// The kernel's counts since the socket was opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Statistics {
    /// Frames for which there was no chunk, or that did not fit into one.
    pub dropped: u64,
    /// Frames for which the receive ring was full.
    pub ring_full: u64,
    /// Number of times at which the fill ring had no chunk.
    pub fill_empty: u64,
    /// Descriptors to send that the kernel refused.
    pub send_invalid: u64,
}

impl Socket {
    /// Opens a socket, shares memory with it, and binds it.
    pub fn open(shape: &Shape) -> Result<Self, Failed> {
        let at = |what| move |source| (what, source);
        let (family, kind) = (AddressFamily::XDP, SocketType::RAW);
        let file = socket_with(family, kind, SocketFlags::CLOEXEC, None)
            .map_err(|error| ("opening an AF_XDP socket", error.into()))?;
        let chunks = (shape.receive_slots + SEND_SLOTS) as usize;
        let memory = Mapping::anonymous(chunks * shape.chunk_bytes)
            .map_err(at("getting memory for frames"))?;
        // SAFETY: a chunk goes into a ring only when nothing here refers to it any more, and is touched again only
        // when it came out of one: `receive`, `queue` and `reclaim` below.
        unsafe { setup::register(file.as_fd(), &memory, shape) }
            .map_err(at("sharing memory for frames"))?;
        let (receive, fill, send, complete) =
            setup::rings(file.as_fd(), shape).map_err(at("setting up the rings"))?;
        let mut socket = Self {
            file,
            receive,
            fill,
            send,
            complete,
            free: Vec::with_capacity(SEND_SLOTS as usize),
            whole: Vec::new(),
            chunk_bytes: shape.chunk_bytes,
            zero_copy: !shape.copy,
            has_metadata: shape.metadata,
            memory,
        };
        let chunk = |number: u32| u64::from(number) * shape.chunk_bytes as u64;
        (0..shape.receive_slots).for_each(|number| socket.fill.push(chunk(number)));
        socket.fill.publish();
        socket.free.extend((0..SEND_SLOTS).map(|number| chunk(shape.receive_slots + number)));
        // Neither option is required; without them a full batch takes more calls.
        let _ = set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER);
        let _ = set(socket.as_fd(), libc::SOL_XDP, MAX_TX_SKB_BUDGET, SEND_BUDGET);
        setup::bind(socket.as_fd(), shape).map_err(at("binding to the queue"))?;
        Ok(socket)
    }

    /// Whether the driver reads and writes the chunks themselves.
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Makes calls for frames run the driver's poll, instead of leaving that to interrupts.
    pub fn busy_poll(&self, time_us: libc::c_int, budget: libc::c_int) -> io::Result<()> {
        set(self.as_fd(), libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 1)?;
        set(self.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, budget)?;
        set(self.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL, time_us)
    }

    /// Undoes that.
    pub fn leave_to_interrupts(&self) -> io::Result<()> {
        set(self.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL, 0)?;
        set(self.as_fd(), libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 0)
    }

    /// Hands the next frame to `take`, with the `META` bytes in front of it, which are then cleared, and
    /// its chunk back to the kernel. Returns whether there was one. Ends with [`received`](Self::received).
    #[inline]
    pub fn receive<const META: usize>(&mut self, take: &mut dyn FnMut(&[u8], [u8; META])) -> bool {
        let Some(receive) = &mut self.receive else { return false };
        let mut front = [0; META];
        while let Some(desc) = receive.pop() {
            let (address, length) = (desc.addr as usize, desc.len as usize);
            let start = self.memory.at(address, length);
            let chunk = address & !(self.chunk_bytes - 1);
            // SAFETY: within the memory; the kernel has handed the chunk over and gets it back below.
            let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), length) };
            if self.whole.is_empty() && address - chunk >= META {
                let place = self.memory.at(address - META, META).cast::<[u8; META]>();
                // SAFETY: within the chunk, in front of the bytes; bytes need no alignment.
                front = unsafe { place.replace([0; META]) };
            }
            let more = desc.options & libc::XDP_PKT_CONTD != 0;
            if more || !self.whole.is_empty() {
                self.whole.extend_from_slice(bytes);
            }
            let is_whole = !more;
            if is_whole {
                take(if self.whole.is_empty() { bytes } else { &self.whole }, front);
                self.whole.clear();
            }
            // There is room: the fill ring has a slot for every chunk of this direction.
            self.fill.push(chunk as u64);
            if is_whole {
                return true;
            }
        }
        false
    }

    /// The `META` bytes in front of the next frame, which stays in the ring.
    #[inline]
    pub fn front<const META: usize>(&mut self) -> Option<[u8; META]> {
        let address = self.receive.as_mut()?.peek()?.addr as usize;
        if address & (self.chunk_bytes - 1) < META {
            return Some([0; META]);
        }
        let place = self.memory.at(address - META, META).cast::<[u8; META]>();
        // SAFETY: within the chunk that the kernel has handed over; bytes need no alignment.
        Some(unsafe { place.read() })
    }

    /// Gives the chunks back that [`receive`](Self::receive) has taken.
    #[inline]
    pub fn received(&self) {
        if let Some(receive) = &self.receive {
            // Chunks first: a kernel that has room in the ring looks for one.
            self.fill.publish();
            receive.release();
        }
    }

    /// Whether the kernel must be called before it puts frames into the chunks it has got.
    #[inline]
    pub fn receiving_sleeps(&self) -> bool {
        self.receive.is_some() && self.fill.wants_wakeup()
    }

    /// Calls the kernel for the receiving direction; with busy polling it runs the driver's poll. Fails
    /// when the interface is down or gone.
    pub fn call(&self) -> io::Result<()> {
        // Nothing is to be received, so no buffer is needed.
        passing(recv(&self.file, &mut [0; 0], RecvFlags::DONTWAIT).map(drop))
    }

    /// Whether more than half of the chunks for it wait to be received.
    pub fn is_half_full(&self) -> bool {
        self.receive.as_ref().is_some_and(Consumer::is_half_full)
    }

    /// Frames that wait to be received.
    pub fn waiting(&self) -> u32 {
        self.receive.as_ref().map_or(0, Consumer::waiting)
    }

    /// Copies a frame into the send ring. Returns whether there was room.
    #[inline]
    pub fn queue(&mut self, frame: &[u8]) -> bool {
        // Mostly one piece, and a division costs as much as all the rest.
        let pieces = match frame.len() <= self.chunk_bytes {
            true => 1,
            false => frame.len().div_ceil(self.chunk_bytes),
        };
        if self.free.len() < pieces || !self.send.has_room(pieces) {
            return false;
        }
        for (number, piece) in frame.chunks(self.chunk_bytes).enumerate() {
            let Some(chunk) = self.free.pop() else { return false };
            let place = self.memory.at(chunk as usize, piece.len());
            // SAFETY: within the memory, and the chunk is in none of the rings, so it is not in use;
            // the frame lies elsewhere, as no slice of the memory outlives a call.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), place.as_ptr(), piece.len());
            }
            let options = if number + 1 < pieces { libc::XDP_PKT_CONTD } else { 0 };
            self.send.push(libc::xdp_desc { addr: chunk, len: piece.len() as u32, options });
        }
        true
    }

    /// Shows the kernel the queued frames.
    #[inline]
    pub fn publish(&self) {
        self.send.publish();
    }

    /// Takes back the chunks of frames that have been sent.
    #[inline]
    pub fn reclaim(&mut self) {
        let before = self.free.len();
        while let Some(chunk) = self.complete.pop() {
            self.free.push(chunk);
        }
        if self.free.len() > before {
            self.complete.release();
        }
    }

    /// Slots of the send ring that the kernel has not taken yet.
    #[inline]
    pub fn unsent(&self) -> u32 {
        self.send.left()
    }

    /// Makes the kernel send the frames in the ring. Returns the number of frames that the driver threw away meanwhile.
    ///
    /// In copy mode nothing leaves but within such a call, and one call takes a limited number of frames (32 by
    /// default) and returns `EAGAIN`: after only one call, the rest of a batch would stay in the ring until the next
    /// one comes.
    pub fn kick(&self) -> io::Result<u64> {
        let (mut discarded, mut futile) = (0, 0);
        let mut left = self.unsent();
        while left > 0 && self.send.wants_wakeup() {
            // Nothing is handed over but the call itself.
            let Err(error) = send(&self.file, &[], SendFlags::DONTWAIT) else { break };
            // __xsk_generic_xmit: this one frame was given to the driver, which dropped it.
            if error == Errno::BUSY && !self.zero_copy {
                discarded += 1;
                futile = 0;
            } else {
                passing(Err(error))?;
                futile += 1;
            }
            let now = self.unsent();
            if now != left {
                futile = 0;
            }
            if futile == FUTILE {
                break;
            }
            left = now;
        }
        Ok(discarded)
    }

    /// Frames that were dropped since the socket was opened.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let counts = STATISTICS.get(self.as_fd())?;
        Ok(Statistics {
            dropped: counts.rx_dropped,
            ring_full: counts.rx_ring_full,
            fill_empty: counts.rx_fill_ring_empty_descs,
            send_invalid: counts.tx_invalid_descs,
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Ignores refusals that the next call may not get.
fn passing(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR | Errno::BUSY) => Ok(()),
        other => Ok(other?),
    }
}
