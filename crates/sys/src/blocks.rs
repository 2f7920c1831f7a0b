//! A ring of blocks of received frames that AF_PACKET shares with this process (TPACKET_V3).
//!
//! Layout and ownership of blocks: Documentation/networking/packet_mmap.rst of the kernel.

use super::mapping::Mapping;
use super::option::SocketOption;
use super::packet::Socket;
use super::ring::Slot;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

const BLOCK: usize = 1 << 20;
/// A block that is not full is shown after this time. Each time costs a timer interrupt.
pub const SHOWN_AFTER_MS: u32 = 100;
/// Where the status of a block is: behind version and offset.
const STATUS_AT: usize = 8;

// SAFETY: the type that the kernel has for rings of version 3, integers alone.
const RING: SocketOption<libc::tpacket_req3> =
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_RX_RING) };

/// A ring of received frames, packed one behind the other.
///
/// The kernel fills a block before it shows it, so that frames cost the least memory and time, and are seen
/// late: for a tap that writes them to a file.
#[derive(Debug)]
pub struct BlockRing {
    memory: Mapping,
    blocks: usize,
    next: usize,
    /// Frames of the next block that were not handed out yet, and where the first of them is.
    left: usize,
    at: usize,
}

impl BlockRing {
    /// Gives a socket that is not bound yet a ring of so much memory, rounded up, for frames of which the
    /// first `snap` bytes are kept.
    pub fn new(socket: &Socket, memory_bytes: usize, snap: usize) -> io::Result<Self> {
        const VERSION: libc::c_int = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, VERSION)?;
        socket.cut(snap)?;
        let blocks = memory_bytes.div_ceil(BLOCK).max(2);
        let frame_bytes = 2_048;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            // Of no meaning here, but it must divide the memory.
            tp_frame_size: frame_bytes as u32,
            tp_frame_nr: (blocks * BLOCK / frame_bytes) as u32,
            tp_retire_blk_tov: SHOWN_AFTER_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        RING.set(socket.as_fd(), &request)?;
        let memory = Mapping::of_file(socket.as_fd(), blocks * BLOCK, 0)?;
        Ok(Self { memory, blocks, next: 0, left: 0, at: 0 })
    }

    /// Whether half of the blocks or more wait.
    pub fn is_half_full(&self) -> bool {
        let middle = (self.next + self.blocks / 2) % self.blocks;
        self.status(middle).load(Ordering::Relaxed) & libc::TP_STATUS_USER != 0
    }

    /// Hands the next frame to `take`, and its block back to the kernel after its last. Returns whether
    /// there was one.
    #[inline]
    pub fn receive(&mut self, take: &mut dyn FnMut(Slot<'_>)) -> bool {
        while self.left == 0 {
            if self.status(self.next).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return false;
            }
            // SAFETY: the block belongs to this process since its status says so, and the kernel has
            // filled in the header before.
            let header: libc::tpacket_hdr_v1 =
                unsafe { self.memory.read(self.next * BLOCK + STATUS_AT) };
            self.left = header.num_pkts as usize;
            self.at = header.offset_to_first_pkt as usize;
            if self.left == 0 {
                self.give_back();
            }
        }
        let start = self.next * BLOCK + self.at.min(BLOCK - size_of::<libc::tpacket3_hdr>());
        // SAFETY: as above; frames lie within the block.
        let header: libc::tpacket3_hdr = unsafe { self.memory.read(start) };
        let end = (self.next + 1) * BLOCK;
        let from = (start + usize::from(header.tp_mac)).min(end);
        let length = (header.tp_snaplen as usize).min(end - from);
        let flags = header.tp_status;
        let tag = header.hv1;
        let protocol =
            if flags & libc::TP_STATUS_VLAN_TPID_VALID != 0 { tag.tp_vlan_tpid } else { 0x8100 };
        take(Slot {
            // SAFETY: as above; nothing writes to the block until it is handed back below, and `take`
            // cannot keep the slice.
            bytes: unsafe { self.memory.slice(from, length) },
            length: header.tp_len,
            seconds: header.tp_sec,
            nanoseconds: header.tp_nsec,
            status: flags,
            tag: (flags & libc::TP_STATUS_VLAN_VALID != 0)
                .then_some((protocol, tag.tp_vlan_tci as u16)),
        });
        self.left -= 1;
        self.at += header.tp_next_offset as usize;
        if self.left == 0 {
            self.give_back();
        }
        true
    }

    fn give_back(&mut self) {
        self.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
    }

    #[inline]
    fn status(&self, block: usize) -> &AtomicU32 {
        self.memory.word(block * BLOCK + STATUS_AT)
    }
}
