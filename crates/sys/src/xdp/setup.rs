//! Setting an AF_XDP socket up: memory, rings, queue.

use super::metadata;
use super::ring::{Consumer, Producer};
use crate::checked;
use crate::mapping::Mapping;
use crate::option::SocketOption;
use crate::socket::set;
use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Slots of the rings in the sending direction, and chunks for it.
pub(super) const SEND_SLOTS: u32 = 2_048;

/// Wait for a queue that another socket had: the kernel takes it from a closed socket a moment later, in a worker
/// thread.
const QUEUE_FREED: Duration = Duration::from_secs(1);
const QUEUE_LOOK: Duration = Duration::from_millis(2);

/// Settings of a socket.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Index of the interface.
    pub interface: u32,
    /// Queue of the interface.
    pub queue: u32,
    /// Frames that may wait to be received, a power of two; 0 for a socket that only sends.
    pub receive_slots: u32,
    /// Bytes of a chunk: 2,048 or 4,096.
    pub chunk_bytes: usize,
    /// Whether a frame may lie in several chunks.
    pub pieces: bool,
    /// Whether the kernel copies; otherwise the driver has to read and write the chunks themselves.
    pub copy: bool,
    /// Whether each frame that is sent has metadata in front of it.
    pub metadata: bool,
}

/// The operation, and the kernel's error.
pub type Failed = (&'static str, io::Error);

pub(super) type Rings =
    (Option<Consumer<libc::xdp_desc>>, Producer<u64>, Producer<libc::xdp_desc>, Consumer<u64>);

// SAFETY: the type that the kernel has for it, integers alone.
const OFFSETS: SocketOption<libc::xdp_mmap_offsets> =
    unsafe { SocketOption::new(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS) };

/// Makes the kernel receive into, and send from, the memory.
///
/// # Safety
/// A chunk that the kernel has, by a ring of this socket, is not touched by this process.
pub(super) unsafe fn register(
    file: BorrowedFd<'_>,
    memory: &Mapping,
    shape: &Shape,
) -> io::Result<()> {
    let request = libc::xdp_umem_reg {
        addr: memory.at(0, memory.len()).as_ptr() as u64,
        len: memory.len() as u64,
        chunk_size: shape.chunk_bytes as u32,
        headroom: 0,
        flags: if shape.metadata { libc::XDP_UMEM_TX_METADATA_LEN } else { 0 },
        tx_metadata_len: if shape.metadata { metadata::LEN as u32 } else { 0 },
    };
    // SAFETY: the request is valid for reading and of the length given. The address in it is that of a mapping of the
    // length in it, whose pages the kernel keeps until the socket is closed; the rest is the caller's.
    checked(unsafe {
        libc::setsockopt(
            file.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_UMEM_REG,
            (&raw const request).cast(),
            size_of_val(&request) as libc::socklen_t,
        )
    })
}

pub(super) fn rings(file: BorrowedFd<'_>, shape: &Shape) -> io::Result<Rings> {
    // The kernel requires a fill ring also for a socket that only sends.
    let fill_slots = shape.receive_slots.max(1);
    for (name, slots) in [
        (libc::XDP_UMEM_FILL_RING, fill_slots),
        (libc::XDP_UMEM_COMPLETION_RING, SEND_SLOTS),
        (libc::XDP_RX_RING, shape.receive_slots),
        (libc::XDP_TX_RING, SEND_SLOTS),
    ] {
        if slots > 0 {
            set(file, libc::SOL_XDP, name, slots.cast_signed())?;
        }
    }
    let offsets = OFFSETS.get(file)?;
    let page = |page: libc::off_t| page as u64;
    let receive = (shape.receive_slots > 0)
        .then(|| {
            Consumer::new(file, page(libc::XDP_PGOFF_RX_RING), shape.receive_slots, &offsets.rx)
        })
        .transpose()?;
    Ok((
        receive,
        Producer::new(file, libc::XDP_UMEM_PGOFF_FILL_RING, fill_slots, &offsets.fr)?,
        Producer::new(file, page(libc::XDP_PGOFF_TX_RING), SEND_SLOTS, &offsets.tx)?,
        Consumer::new(file, libc::XDP_UMEM_PGOFF_COMPLETION_RING, SEND_SLOTS, &offsets.cr)?,
    ))
}

/// Binds a socket to its queue.
pub(super) fn bind(file: BorrowedFd<'_>, shape: &Shape) -> io::Result<()> {
    let mut flags = match shape.copy {
        true => SocketAddrXdpFlags::XDP_COPY,
        false => SocketAddrXdpFlags::XDP_ZEROCOPY,
    };
    flags |= SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    flags.set(SocketAddrXdpFlags::XDP_USE_SG, shape.pieces);
    let address = SocketAddrXdp::new(flags, shape.interface, shape.queue);
    let mut waited = Duration::ZERO;
    loop {
        match rustix::net::bind(file, &address) {
            Err(Errno::BUSY) if waited < QUEUE_FREED => {
                std::thread::sleep(QUEUE_LOOK);
                waited += QUEUE_LOOK;
            }
            result => return Ok(result?),
        }
    }
}
