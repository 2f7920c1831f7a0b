//! The rings that an AF_XDP socket shares with the kernel.
//!
//! Layout and rules: Documentation/networking/af_xdp.rst of the kernel. A ring has one producer and one
//! consumer, of which this process is the one and the kernel the other; either publishes its position
//! after it has written, or read, the slots.

use crate::sys::mapping::Mapping;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// What both sides of a ring have.
#[derive(Debug)]
struct Shared<T> {
    map: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    slots_at: usize,
    slots: u32,
    slot: PhantomData<T>,
}

impl<T: Copy> Shared<T> {
    fn new(
        file: BorrowedFd<'_>,
        page: u64,
        slots: u32,
        offsets: &libc::xdp_ring_offset,
    ) -> io::Result<Self> {
        let slots_at = offsets.desc as usize;
        Ok(Self {
            map: Mapping::of_file(file, slots_at + slots as usize * size_of::<T>(), page)?,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            flags: offsets.flags as usize,
            slots_at,
            slots,
            slot: PhantomData,
        })
    }

    #[inline]
    fn word(&self, place: usize) -> &AtomicU32 {
        let word = self.map.at(place, 4).cast();
        // SAFETY: within the mapping, which lives as long as `self`; the kernel aligns these words and
        // changes them only atomically.
        unsafe { AtomicU32::from_ptr(word.as_ptr()) }
    }

    #[inline]
    fn slot(&self, position: u32) -> NonNull<T> {
        // The kernel takes powers of two only.
        let slot = (position & (self.slots - 1)) as usize;
        self.map.at(self.slots_at + slot * size_of::<T>(), size_of::<T>()).cast()
    }

    /// Whether the kernel sleeps until it is called. Read after everything that was published.
    #[inline]
    fn wants_wakeup(&self) -> bool {
        // Otherwise the flag may be read before the kernel can see what was published, just when it goes
        // to sleep: the frame would sit there.
        fence(Ordering::SeqCst);
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that this process fills.
#[derive(Debug)]
pub(super) struct Producer<T> {
    shared: Shared<T>,
    next: u32,
    /// Where the kernel was when it was looked at last.
    taken: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn new(
        file: BorrowedFd<'_>,
        page: u64,
        slots: u32,
        offsets: &libc::xdp_ring_offset,
    ) -> io::Result<Self> {
        Ok(Self { shared: Shared::new(file, page, slots, offsets)?, next: 0, taken: 0 })
    }

    /// Whether so many slots are free.
    #[inline]
    pub(super) fn has_room(&mut self, slots: usize) -> bool {
        let free = |this: &Self| (this.shared.slots - this.next.wrapping_sub(this.taken)) as usize;
        if free(self) < slots {
            self.taken = self.shared.word(self.shared.consumer).load(Ordering::Acquire);
        }
        free(self) >= slots
    }

    /// Fills the next slot; there must be room. The kernel sees it once it is published.
    #[inline]
    pub(super) fn push(&mut self, value: T) {
        // SAFETY: the slot lies within the mapping, aligned by the kernel, and is this process's until it
        // is published.
        unsafe { self.shared.slot(self.next).write(value) };
        self.next = self.next.wrapping_add(1);
    }

    #[inline]
    pub(super) fn publish(&self) {
        self.shared.word(self.shared.producer).store(self.next, Ordering::Release);
    }

    /// Published slots that the kernel has not taken yet.
    #[inline]
    pub(super) fn left(&self) -> u32 {
        self.next.wrapping_sub(self.shared.word(self.shared.consumer).load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn wants_wakeup(&self) -> bool {
        self.shared.wants_wakeup()
    }
}

/// A ring that the kernel fills.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    shared: Shared<T>,
    next: u32,
    /// Where the kernel was when it was looked at last.
    filled: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn new(
        file: BorrowedFd<'_>,
        page: u64,
        slots: u32,
        offsets: &libc::xdp_ring_offset,
    ) -> io::Result<Self> {
        Ok(Self { shared: Shared::new(file, page, slots, offsets)?, next: 0, filled: 0 })
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.filled == self.next {
            self.filled = self.shared.word(self.shared.producer).load(Ordering::Acquire);
        }
        if self.filled == self.next {
            return None;
        }
        // SAFETY: the slot lies within the mapping, aligned by the kernel, which wrote it before it
        // published its position, and leaves it alone until it is released. Any bits are a value.
        let value = unsafe { self.shared.slot(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(value)
    }

    /// Gives the slots popped so far back.
    #[inline]
    pub(super) fn release(&self) {
        self.shared.word(self.shared.consumer).store(self.next, Ordering::Release);
    }

    /// Slots that wait to be popped.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.shared.word(self.shared.producer).load(Ordering::Acquire).wrapping_sub(self.next)
    }
}
