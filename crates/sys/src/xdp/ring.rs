//! The rings that an AF_XDP socket shares with the kernel.
//!
//! Layout and rules: Documentation/networking/af_xdp.rst of the kernel. A ring has one producer and one consumer: one
//! is this process, the other the kernel. Each publishes its position after it has written, or read, the slots.

use crate::mapping::Mapping;
use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Content of a slot of a ring.
///
/// # Safety
/// Integers alone, without padding: any bits are a value.
pub(super) unsafe trait Slot: Copy {}

// SAFETY: an integer.
unsafe impl Slot for u64 {}
// SAFETY: three integers of 8, 4 and 4 bytes.
unsafe impl Slot for libc::xdp_desc {}

/// Parts that producers and consumers have in common.
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

impl<T: Slot> Shared<T> {
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
        self.map.word(place)
    }

    /// Place of the slot of a position.
    #[inline]
    fn place(&self, position: u32) -> usize {
        // The kernel takes powers of two only.
        let slot = (position & (self.slots - 1)) as usize;
        self.slots_at + slot * size_of::<T>()
    }

    /// Whether the kernel sleeps until it is called. Read after everything that was published.
    #[inline]
    fn wants_wakeup(&self) -> bool {
        // Otherwise the flag may be read before the kernel can see what was published, just when it goes to sleep: the
        // frame would stay there.
        fence(Ordering::SeqCst);
        self.word(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that this process fills.
#[derive(Debug)]
pub(super) struct Producer<T> {
    shared: Shared<T>,
    next: u32,
    /// The kernel's position when it was last read.
    taken: u32,
}

impl<T: Slot> Producer<T> {
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
        // SAFETY: the slot is this process's until it is published, and no slice of it lives.
        unsafe { self.shared.map.write(self.shared.place(self.next), value) };
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
    /// The kernel's position when it was last read.
    filled: u32,
}

impl<T: Slot> Consumer<T> {
    pub(super) fn new(
        file: BorrowedFd<'_>,
        page: u64,
        slots: u32,
        offsets: &libc::xdp_ring_offset,
    ) -> io::Result<Self> {
        Ok(Self { shared: Shared::new(file, page, slots, offsets)?, next: 0, filled: 0 })
    }

    /// The next slot, which stays.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<T> {
        if self.filled == self.next {
            self.filled = self.shared.word(self.shared.producer).load(Ordering::Acquire);
        }
        if self.filled == self.next {
            return None;
        }
        // SAFETY: the kernel wrote the slot before it published its position, and leaves it alone until it is
        // released. Any bits are a value.
        Some(unsafe { self.shared.map.read(self.shared.place(self.next)) })
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let value = self.peek()?;
        self.next = self.next.wrapping_add(1);
        Some(value)
    }

    /// Gives the slots popped so far back.
    #[inline]
    pub(super) fn release(&self) {
        self.shared.word(self.shared.consumer).store(self.next, Ordering::Release);
    }

    pub(super) fn is_half_full(&self) -> bool {
        self.waiting() > self.shared.slots / 2
    }

    /// Slots that wait to be popped.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.shared.word(self.shared.producer).load(Ordering::Acquire).wrapping_sub(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: u32 = 4;

    /// A ring in memory of our own, with the kernel's words and slots at these places.
    fn shared(word: usize, slots_at: usize) -> Shared<u64> {
        let map = Mapping::anonymous(4_096).unwrap();
        let (producer, consumer, flags) = (word, word + 64, word + 128);
        Shared { map, producer, consumer, flags, slots_at, slots: SLOTS, slot: PhantomData }
    }

    #[test]
    fn slots_are_handed_over_round_and_round() {
        let mut producer = Producer { shared: shared(0, 192), next: 0, taken: 0 };
        for round in 0..3 {
            for value in 0..u64::from(SLOTS) {
                assert!(producer.has_room(1));
                producer.push(round * 10 + value);
            }
            assert!(!producer.has_room(1));
            producer.publish();
            // The other side of the same memory.
            let mut consumer = Consumer {
                shared: Shared { map: producer.shared.map, ..shared(0, 192) },
                next: round as u32 * SLOTS,
                filled: round as u32 * SLOTS,
            };
            let values: Vec<u64> = std::iter::from_fn(|| consumer.pop()).collect();
            assert_eq!(values, [0, 1, 2, 3].map(|value| round * 10 + value));
            consumer.release();
            producer.shared.map = consumer.shared.map;
        }
    }

    #[test]
    #[should_panic(expected = "not aligned")]
    fn slots_that_are_not_aligned_are_refused() {
        Producer { shared: shared(0, 196), next: 0, taken: 0 }.push(1);
    }

    #[test]
    #[should_panic(expected = "not aligned")]
    fn words_that_are_not_aligned_are_refused() {
        Producer { shared: shared(2, 192), next: 0, taken: 0 }.publish();
    }

    #[test]
    #[should_panic(expected = "beyond the memory shared with the kernel")]
    fn slots_beyond_the_memory_are_refused() {
        Consumer { shared: shared(0, 4_096), next: 0, filled: 1 }.pop();
    }
}
