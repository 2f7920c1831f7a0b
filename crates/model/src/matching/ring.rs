//! The last ingress packets, found by signature without ever deleting anything.
//!
//! A ring of entries in arrival order and a table of chain heads, as in LZ77 compressors: an entry links
//! to the previous one of its slot, and a chain ends where it reaches an entry that the ring has
//! overwritten. Entering a packet is two stores, finding one is usually two loads, and the whole (768 KB)
//! stays in the second-level cache, which a hash map that grows and deletes does not.

use crate::signature::Signature;

/// Ingress packets that are remembered whatever became of them, by default.
pub const MEMORY: usize = 1 << 14;

/// Four slots an entry: a chain then rarely holds a packet of another signature.
const SLOTS_PER_ENTRY: usize = 4;

/// What became of a remembered ingress packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// In flight.
    Open,
    /// Left within the window.
    Matched,
    /// Not to be told from another one of its signature.
    Ambiguous,
    /// Left after the window.
    Beyond,
}

/// A remembered ingress packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) signature: Signature,
    pub(super) stamp_ns: i64,
    /// Position of the previous entry of the slot, set by [`Ring::push`].
    pub(super) next: u32,
    pub(super) tag: u16,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) struct Ring {
    entries: Box<[Entry]>,
    heads: Box<[u32]>,
    /// Position of the next entry; positions wrap at 2^32.
    head: u32,
    filled: usize,
}

impl Ring {
    /// Remembers `memory` packets, rounded up to a power of two.
    pub(super) fn new(memory: usize) -> Self {
        let memory = memory.next_power_of_two();
        let empty = Entry {
            signature: Signature::default(),
            stamp_ns: 0,
            next: 0,
            tag: 0,
            state: State::Matched,
        };
        Self {
            entries: vec![empty; memory].into(),
            heads: vec![0; memory * SLOTS_PER_ENTRY].into(),
            // Starting one turn in makes position 0, which the empty heads name, an overwritten one.
            head: memory as u32 + 1,
            filled: 0,
        }
    }

    #[inline]
    fn slot(&self, signature: Signature) -> usize {
        signature.low as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn index(&self, position: u32) -> usize {
        position as usize & (self.entries.len() - 1)
    }

    /// How many packets ago `position` was entered, 1 for the last one.
    #[inline]
    fn age(&self, position: u32) -> u32 {
        self.head.wrapping_sub(position)
    }

    /// The latest packet of this signature.
    #[inline]
    pub(super) fn find(&mut self, signature: Signature) -> Option<&mut Entry> {
        let mut position = self.heads[self.slot(signature)];
        let mut age = self.age(position);
        // An age beyond the ring is an overwritten entry. The ages along a chain grow, or the link is a
        // left-over from before the positions wrapped.
        while age.wrapping_sub(1) < self.entries.len() as u32 {
            let index = self.index(position);
            let entry = &self.entries[index];
            if entry.signature == signature {
                return Some(&mut self.entries[index]);
            }
            position = entry.next;
            let next_age = self.age(position);
            if next_age <= age {
                return None;
            }
            age = next_age;
        }
        None
    }

    /// Takes out the packet that the next [`push`](Self::push) overwrites, when it was not matched.
    #[inline]
    pub(super) fn evict(&mut self) -> Option<Entry> {
        if self.filled < self.entries.len() {
            return None;
        }
        let index = self.index(self.head);
        let entry = &mut self.entries[index];
        if matches!(entry.state, State::Matched | State::Beyond) {
            return None;
        }
        let evicted = *entry;
        // The entry stays findable until overwritten, and must not be matched here and there.
        entry.signature = Signature { high: !entry.signature.high, low: entry.signature.low };
        entry.state = State::Beyond;
        Some(evicted)
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        let slot = self.slot(entry.signature);
        let next = self.heads[slot];
        let index = self.index(self.head);
        self.entries[index] = Entry { next, ..entry };
        self.heads[slot] = self.head;
        self.head = self.head.wrapping_add(1);
        self.filled = (self.filled + 1).min(self.entries.len());
    }

    /// Stamps of the packets in flight.
    pub(super) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        self.entries
            .iter()
            .filter(|entry| entry.state == State::Open)
            .map(|entry| entry.stamp_ns)
    }
}
