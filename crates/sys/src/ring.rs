//! Rings of frames that AF_PACKET shares with this process (TPACKET_V2).
//!
//! Layout and ownership of slots: Documentation/networking/packet_mmap.rst of the kernel.

use super::mapping::Mapping;
use super::option::SocketOption;
use super::packet::{Socket, Taken};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// The stamp comes from the NIC.
pub const STAMPED_BY_HARDWARE: u32 = libc::TP_STATUS_TS_RAW_HARDWARE;

const BLOCK: usize = 1 << 20;
/// Place of the data in a slot for sending: behind its `tpacket2_hdr`, aligned.
const DATA_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
/// Most bytes before a received frame: `TPACKET2_HDRLEN` and room for an L2 header of 16 bytes, aligned so
/// that the IP header starts at a multiple of 16.
const BEFORE_FRAME: usize =
    (size_of::<libc::tpacket2_hdr>() + size_of::<libc::sockaddr_ll>() + 16).next_multiple_of(16);
/// Place of a frame's length in its slot: `tp_len`.
const LENGTH_AT: usize = std::mem::offset_of!(libc::tpacket2_hdr, tp_len);
/// `struct virtio_net_hdr`: flags, kind of segmentation, then four lengths and places.
const KERNEL_HEADER: usize = 10;

// SAFETY: the type that the kernel has for rings of version 2, integers alone.
const RECEIVE_RING: SocketOption<libc::tpacket_req> =
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_RX_RING) };
// SAFETY: as above.
const SEND_RING: SocketOption<libc::tpacket_req> =
    unsafe { SocketOption::new(libc::SOL_PACKET, libc::PACKET_TX_RING) };

/// A received frame in its slot.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    /// The part that was kept.
    pub bytes: &'a [u8],
    /// Bytes that the frame had on the wire.
    pub length: u32,
    /// Stamp: seconds.
    pub seconds: u32,
    /// Stamp: ns in the second.
    pub nanoseconds: u32,
    /// `tp_status`, which names the clock of the stamp.
    pub status: u32,
    /// The 802.1Q tag that the kernel took out: protocol and control information.
    pub tag: Option<(u16, u16)>,
}

/// A ring of received frames.
///
/// Version 2 has a slot for each frame and shows it as soon as it is there. Version 3 packs frames into
/// blocks and shows a block when it is full or after at least a millisecond, which a forwarder cannot use.
#[derive(Debug)]
pub struct ReceiveRing(Slots);

impl ReceiveRing {
    /// Gives a socket that is not bound yet a ring of so much memory, rounded up, for frames of up to
    /// `snap` bytes each.
    pub fn new(socket: &Socket, memory_bytes: usize, snap: usize) -> io::Result<Self> {
        // Room for a tag that the kernel took out, in front of the frame.
        socket.set(libc::SOL_PACKET, libc::PACKET_RESERVE, 0)?;
        Slots::new(socket, &RECEIVE_RING, memory_bytes, snap + BEFORE_FRAME).map(Self)
    }

    /// Whether frames wait in half of the slots or more.
    pub fn is_half_full(&self) -> bool {
        let middle = (self.0.next + self.0.slots / 2) % self.0.slots;
        self.0.status(middle).load(Ordering::Relaxed) & libc::TP_STATUS_USER != 0
    }

    /// Hands the next frame to `take` and its slot back to the kernel. Returns whether there was one.
    #[inline]
    pub fn receive(&mut self, take: &mut dyn FnMut(Slot<'_>)) -> bool {
        let ring = &mut self.0;
        let flags = ring.status(ring.next).load(Ordering::Acquire);
        if flags & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let slot = ring.slot(ring.next);
        // SAFETY: the slot belongs to this process until the status is written; the kernel has filled in
        // the header before it set the status.
        let header: libc::tpacket2_hdr = unsafe { ring.memory.read(slot) };
        let at = usize::from(header.tp_mac).min(ring.slot_bytes);
        let length = (header.tp_snaplen as usize).min(ring.slot_bytes - at);
        // SAFETY: both lie within the slot, by the lines above; nothing writes to it until it is handed
        // back below, and `take` cannot keep the slice.
        let bytes = unsafe { ring.memory.slice(slot + at, length) };
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
        ring.status(ring.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        ring.next = ring.after(ring.next);
        true
    }
}

/// A ring of frames to send.
///
/// The kernel is told by a header before each frame to copy all of it. It would otherwise copy the addresses and refer
/// to the slot for the rest, but a veth gives the slot back before the frame has arrived: the next frame in the slot
/// would change it on its way. Copying 60 bytes is also faster.
#[derive(Debug)]
pub struct SendRing(Slots);

impl SendRing {
    /// Gives a socket that is not bound yet a ring for `slots` frames of up to `bytes` each; both are
    /// rounded up.
    pub fn new(socket: &Socket, slots: usize, bytes: usize) -> io::Result<Self> {
        socket.expect_headers()?;
        let slot = bytes + DATA_AT + KERNEL_HEADER;
        Slots::new(socket, &SEND_RING, slots * slot, slot).map(Self)
    }

    /// Sends frames through the socket that the ring belongs to. The kernel takes fewer when it has no room.
    pub fn send(&mut self, socket: &Socket, frames: &[&[u8]]) -> io::Result<Taken> {
        let ring = &mut self.0;
        let first = ring.next;
        let mut filled = 0;
        for frame in frames {
            let free = ring.status(ring.next).load(Ordering::Acquire) == libc::TP_STATUS_AVAILABLE;
            if !free || DATA_AT + KERNEL_HEADER + frame.len() > ring.slot_bytes {
                break;
            }
            ring.fill(frame);
            ring.next = ring.after(ring.next);
            filled += 1;
        }
        if filled == 0 {
            return Ok(Taken::default());
        }
        let result = socket.send_ring();
        // Frames that the kernel did not take are still marked as to be sent, from the first refused one on; the kernel
        // will look for its next frame there.
        let mut taken = 0;
        let mut at = first;
        while taken < filled
            && ring.status(at).load(Ordering::Acquire) & libc::TP_STATUS_SEND_REQUEST == 0
        {
            at = ring.after(at);
            taken += 1;
        }
        ring.next = at;
        for _ in taken..filled {
            ring.status(at).store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
            at = ring.after(at);
        }
        match result {
            Ok(()) => Ok(Taken { frames: taken, dropped: false }),
            Err(error) => Taken::of(taken, error),
        }
    }
}

/// The slots of a ring, and which of them comes next.
#[derive(Debug)]
struct Slots {
    memory: Mapping,
    slot_bytes: usize,
    /// Slots of a block; the remaining bytes at its end are not used.
    block_slots: usize,
    slots: usize,
    next: usize,
}

impl Slots {
    fn new(
        socket: &Socket,
        kind: &SocketOption<libc::tpacket_req>,
        memory_bytes: usize,
        slot: usize,
    ) -> io::Result<Self> {
        const VERSION: libc::c_int = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, VERSION)?;
        // No larger than it must be: memory that has to be fetched costs the CPU that receives.
        let slot_bytes = slot.next_multiple_of(libc::TPACKET_ALIGNMENT).min(BLOCK);
        let block_slots = BLOCK / slot_bytes;
        let bytes = memory_bytes.next_multiple_of(BLOCK).max(BLOCK);
        let slots = bytes / BLOCK * block_slots;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (bytes / BLOCK) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        kind.set(socket.as_fd(), &request)?;
        let memory = Mapping::of_file(socket.as_fd(), bytes, 0)?;
        Ok(Self { memory, slot_bytes, block_slots, slots, next: 0 })
    }

    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots { 0 } else { slot + 1 }
    }

    /// Start of a slot.
    #[inline]
    fn slot(&self, slot: usize) -> usize {
        slot / self.block_slots * BLOCK + slot % self.block_slots * self.slot_bytes
    }

    /// The word by which a slot changes hands: the first of its `tpacket2_hdr`.
    #[inline]
    fn status(&self, slot: usize) -> &AtomicU32 {
        self.memory.word(self.slot(slot))
    }

    /// Writes a frame into the next slot, which is free and large enough, and hands it to the kernel.
    #[inline]
    fn fill(&mut self, frame: &[u8]) {
        let slot = self.slot(self.next);
        let length = KERNEL_HEADER + frame.len();
        assert!(DATA_AT + length <= self.slot_bytes);
        let mut header = [0_u8; KERNEL_HEADER];
        header[2..4].copy_from_slice(&(frame.len() as u16).to_ne_bytes());
        // SAFETY: by the assertion, all that is written lies within the slot, which the kernel does not
        // touch until its status says so below; a slice of it never exists.
        unsafe {
            self.memory.fill(slot + DATA_AT, &header);
            self.memory.fill(slot + DATA_AT + KERNEL_HEADER, frame);
            self.memory.write(slot + LENGTH_AT, length as u32);
        }
        self.status(self.next).store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
    }
}
