//! The last ingress packets, found by signature without ever deleting anything.
//!
//! A ring of entries in arrival order and a table of chain heads, as in LZ77 compressors: an entry links
//! to the previous one of its slot, and a chain ends where it reaches an entry that the ring has
//! overwritten. Beside each head stands a filter of the signatures in its chain, so that the usual case,
//! a signature that is new, costs one load and no branch that cannot be predicted. The whole (768 KB)
//! stays in the second-level cache, which a hash map that grows and deletes does not.

use super::window::State;
use super::{Pair, Window};
use crate::signature::Signature;

/// Slots of the table for each entry of the ring: a chain then rarely holds another signature.
const SLOTS_PER_ENTRY: usize = 2;

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

impl Entry {
    /// The packet left: its pair if it was in flight for no longer than the window.
    #[inline]
    pub(super) fn leave(&mut self, egress_ns: i64, window: Window) -> Option<Pair> {
        let &mut Self { signature, stamp_ns: ingress_ns, tag, state, .. } = self;
        let latency_ns = egress_ns.saturating_sub(ingress_ns);
        if state != State::Open || !window.matches(latency_ns) {
            return None;
        }
        self.state = State::Matched;
        Some(Pair { ingress_ns, egress_ns, signature, tag })
    }
}

/// The start of a chain: the position of its first entry and, in the upper half, one bit for each
/// signature of the chain, out of 32. One word, because of two the compiler would load the second only
/// after a branch that cannot be predicted.
#[derive(Debug, Clone, Copy)]
struct Head(u64);

impl Head {
    #[inline]
    fn new(position: u32, filter: u32) -> Self {
        Self(u64::from(filter) << 32 | u64::from(position))
    }

    #[inline]
    fn position(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn filter(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The last `N` ingress packets, `N` a power of two: in the type, so that masking an index is all the
/// bounds check there is.
#[derive(Debug)]
pub(super) struct Ring<const N: usize> {
    entries: Box<[Entry; N]>,
    heads: Box<[[Head; SLOTS_PER_ENTRY]; N]>,
    /// Position of the next entry; positions wrap at 2^32.
    head: u32,
    /// Behind the packet found last: most devices keep the order, so this one is asked for next.
    expected: u32,
}

impl<const N: usize> Ring<N> {
    pub(super) fn new() -> Self {
        const { assert!(N.is_power_of_two()) };
        let empty = Entry {
            signature: Signature::default(),
            stamp_ns: 0,
            next: 0,
            tag: 0,
            state: State::Matched,
        };
        let head = [Head::new(0, 0); SLOTS_PER_ENTRY];
        Self {
            entries: boxed(empty),
            heads: boxed(head),
            // Starting one turn in makes position 0, which the empty heads name, an overwritten one.
            head: N as u32 + 1,
            expected: 0,
        }
    }

    #[inline]
    fn slot(signature: Signature) -> (usize, usize) {
        let bits = signature.low.cast_unsigned() as usize;
        ((bits / SLOTS_PER_ENTRY) & (N - 1), bits % SLOTS_PER_ENTRY)
    }

    #[inline]
    fn head(&self, signature: Signature) -> Head {
        let (row, column) = Self::slot(signature);
        self.heads[row][column]
    }

    /// The bit of a signature in the filter of its chain.
    #[inline]
    fn filter(signature: Signature) -> u32 {
        1 << (signature.low.cast_unsigned() >> 59)
    }

    /// Whether an entry of this age is there.
    #[inline]
    fn is_live(&self, age: u32) -> bool {
        age.wrapping_sub(1) < N as u32
    }

    /// The filter of a chain, empty where the chain is. Computed, not chosen: whether a slot is in use
    /// cannot be predicted.
    #[inline]
    fn live_filter(&self, head: Head) -> u32 {
        head.filter() & u32::from(self.is_live(self.age(head.position()))).wrapping_neg()
    }

    /// The how manieth last packet the one at `position` was at `until_ns`: 1 for the last one. Packets
    /// stamped later may have been entered ahead of time.
    pub(super) fn age_at(&self, position: u32, until_ns: i64) -> usize {
        let age = self.age(position);
        let stamp_ns = |age| self.entries[Self::index(self.head.wrapping_sub(age))].stamp_ns;
        (age as usize) - (1..age).take_while(|&age| stamp_ns(age) > until_ns).count()
    }

    #[inline]
    fn index(position: u32) -> usize {
        position as usize & (N - 1)
    }

    /// Number of packets entered since `position`, itself included: 1 for the last one.
    #[inline]
    fn age(&self, position: u32) -> u32 {
        self.head.wrapping_sub(position)
    }

    /// The latest packet of this signature, which left: tries the one behind the last that left before
    /// it asks the table. That one is the latest of its signature when it is in flight, since a second
    /// one of the same signature makes both ambiguous.
    #[inline]
    pub(super) fn find_next(&mut self, signature: Signature) -> Option<u32> {
        let entry = &self.entries[Self::index(self.expected)];
        let position = if entry.signature == signature && entry.state == State::Open {
            self.expected
        } else {
            self.find(signature)?
        };
        self.expected = position.wrapping_add(1);
        Some(position)
    }

    /// The entry at a position that was found.
    #[inline]
    pub(super) fn entry(&mut self, position: u32) -> &mut Entry {
        let index = Self::index(position);
        &mut self.entries[index]
    }

    /// Where the latest packet of this signature is.
    #[inline]
    pub(super) fn find(&self, signature: Signature) -> Option<u32> {
        let head = self.head(signature);
        if self.live_filter(head) & Self::filter(signature) == 0 {
            return None;
        }
        self.follow(head.position(), signature)
    }

    /// Looks for the signature along a chain.
    #[cold]
    fn follow(&self, mut position: u32, signature: Signature) -> Option<u32> {
        let mut age = self.age(position);
        // An age beyond the ring is an overwritten entry. The ages along a chain grow, or the link is a
        // left-over from before the positions wrapped.
        while self.is_live(age) {
            let entry = &self.entries[Self::index(position)];
            if entry.signature == signature {
                return Some(position);
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
        let entry = &mut self.entries[Self::index(self.head)];
        if !entry.state.is_undecided() {
            return None;
        }
        let evicted = *entry;
        // The entry stays findable until overwritten, and must not be matched here and there.
        entry.signature = Signature { high: !entry.signature.high, low: entry.signature.low };
        entry.state = State::Beyond;
        Some(evicted)
    }

    /// Enters packets up to the first whose signature is there or that would push out one whose fate is
    /// open. Returns how many were entered and the packet that was not.
    #[inline]
    pub(super) fn push_new(
        &mut self,
        packets: &mut (impl Iterator<Item = (Signature, i64)> + Clone),
        tag: &mut impl FnMut(i64) -> u16,
    ) -> (usize, Option<(Signature, i64)>) {
        // The chain heads lie all over the table: asked for all at once, they come sooner.
        let heads = packets.clone().map(|(signature, _)| self.head(signature).0);
        std::hint::black_box(heads.fold(0, |all, filter| all | filter));
        let mut entered = 0;
        let stopped = packets.find(|&(signature, stamp_ns)| {
            let head = self.head(signature);
            let filter = self.live_filter(head);
            if self.entries[Self::index(self.head)].state.is_undecided()
                || filter & Self::filter(signature) != 0
                    && self.follow(head.position(), signature).is_some()
            {
                return true;
            }
            let (next, tag) = (head.position(), tag(stamp_ns));
            self.push_behind(next, filter, signature, stamp_ns, tag, State::Open);
            entered += 1;
            false
        });
        (entered, stopped)
    }

    /// Matches packets that leave in the order in which they entered, up to the first that does not, and
    /// returns that one.
    #[inline]
    pub(super) fn leave_in_order(
        &mut self,
        packets: &mut impl Iterator<Item = (Signature, i64)>,
        window: Window,
        pairs: &mut Vec<Pair>,
    ) -> Option<(Signature, i64)> {
        let mut expected = self.expected;
        let stopped = packets.find(|&(signature, stamp_ns)| {
            let entry = &mut self.entries[Self::index(expected)];
            if entry.signature != signature {
                return true;
            }
            let Some(pair) = entry.leave(stamp_ns, window) else { return true };
            pairs.push(pair);
            expected = expected.wrapping_add(1);
            false
        });
        self.expected = expected;
        stopped
    }

    /// Enters a packet.
    pub(super) fn push(&mut self, signature: Signature, stamp_ns: i64, tag: u16, state: State) {
        let head = self.head(signature);
        let filter = self.live_filter(head);
        self.push_behind(head.position(), filter, signature, stamp_ns, tag, state);
    }

    #[inline]
    fn push_behind(
        &mut self,
        next: u32,
        filter: u32,
        signature: Signature,
        stamp_ns: i64,
        tag: u16,
        state: State,
    ) {
        let entry = &mut self.entries[Self::index(self.head)];
        entry.signature = signature;
        entry.stamp_ns = stamp_ns;
        entry.next = next;
        entry.tag = tag;
        entry.state = state;
        let (row, column) = Self::slot(signature);
        let filter = filter | Self::filter(signature);
        self.heads[row][column] = Head::new(self.head, filter);
        self.head = self.head.wrapping_add(1);
    }

    /// All packets that are held, the earliest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let (later, earlier) = self.entries.split_at(Self::index(self.head));
        earlier.iter().chain(later)
    }

    /// Gives up the packets in flight that entered at this time or before.
    pub(super) fn give_up(&mut self, until_ns: i64, mut lost: impl FnMut(Signature, i64)) {
        for entry in self.entries.iter_mut() {
            if entry.state == State::Open && entry.stamp_ns <= until_ns {
                entry.state = State::Beyond;
                lost(entry.signature, entry.stamp_ns);
            }
        }
    }

    /// The packets in flight.
    pub(super) fn open(&self) -> impl Iterator<Item = (Signature, i64)> + '_ {
        let open = self.entries.iter().filter(|entry| entry.state == State::Open);
        open.map(|entry| (entry.signature, entry.stamp_ns))
    }
}

/// An array on the heap that never was on the stack.
fn boxed<T: Clone, const N: usize>(value: T) -> Box<[T; N]> {
    match vec![value; N].into_boxed_slice().try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector has N elements"),
    }
}
