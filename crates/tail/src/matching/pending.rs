//! Packets that wait longer than the ring remembers, by signature, with an end to their waiting.

use super::window::State;
use crate::signature::Signature;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Signatures are hashes already: their lower half serves as it is.
#[derive(Debug, Default)]
pub(super) struct LowerHalf(u64);

impl Hasher for LowerHalf {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // Called for `high`, then `low`, which stays.
        self.0 = value;
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value.cast_unsigned());
    }
}

/// An ingress packet that fell out of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Late {
    pub(super) ambiguous: bool,
    pub(super) tag: u16,
}

impl Late {
    pub(super) fn state(self) -> State {
        if self.ambiguous { State::Ambiguous } else { State::Open }
    }
}

#[derive(Debug, Clone)]
struct Waiting<T> {
    serial: u64,
    stamp_ns: i64,
    value: T,
}

/// A map from signature to a stamped value that forgets from the front.
#[derive(Debug)]
pub(super) struct Pending<T> {
    entries: HashMap<Signature, Waiting<T>, BuildHasherDefault<LowerHalf>>,
    /// Insertions in order; those removed meanwhile are passed over.
    order: VecDeque<(Signature, u64)>,
    serial: u64,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { entries: HashMap::default(), order: VecDeque::new(), serial: 0 }
    }
}

/// The order may hold this many removed entries before it is compacted.
const SLACK: usize = 1024;

impl<T> Pending<T> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(super) fn holds(&self, signature: Signature) -> bool {
        !self.entries.is_empty() && self.entries.contains_key(&signature)
    }

    /// Inserts, in place of what stood there before.
    pub(super) fn insert(&mut self, signature: Signature, stamp_ns: i64, value: T) {
        self.serial += 1;
        let serial = self.serial;
        self.entries.insert(signature, Waiting { serial, stamp_ns, value });
        self.order.push_back((signature, serial));
        // Memory stays proportional to what waits, however many came and went.
        if self.order.len() > 2 * self.entries.len() + SLACK {
            let entries = &self.entries;
            self.order.retain(|(signature, serial)| {
                entries.get(signature).is_some_and(|w| w.serial == *serial)
            });
        }
    }

    /// Inserts, in their order, what came before all that waits; none of their signatures waits.
    pub(super) fn precede(&mut self, older: impl Iterator<Item = (Signature, i64, T)>) {
        let mut all = Self::default();
        for (signature, stamp_ns, value) in older {
            all.insert(signature, stamp_ns, value);
        }
        for (signature, serial) in std::mem::take(&mut self.order) {
            if self.entries.get(&signature).is_some_and(|waiting| waiting.serial == serial)
                && let Some(waiting) = self.entries.remove(&signature)
            {
                all.insert(signature, waiting.stamp_ns, waiting.value);
            }
        }
        *self = all;
    }

    pub(super) fn get_mut(&mut self, signature: Signature) -> Option<(i64, &mut T)> {
        self.entries.get_mut(&signature).map(|waiting| (waiting.stamp_ns, &mut waiting.value))
    }

    pub(super) fn remove(&mut self, signature: Signature) {
        self.entries.remove(&signature);
    }

    /// Everything, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Signature, i64, &T)> {
        self.order.iter().filter_map(|(signature, serial)| {
            let waiting = self.entries.get(signature).filter(|w| w.serial == *serial)?;
            Some((*signature, waiting.stamp_ns, &waiting.value))
        })
    }

    /// Removes everything, in no particular order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Signature, i64, T)> + '_ {
        self.order.clear();
        let entries = self.entries.drain();
        entries.map(|(signature, waiting)| (signature, waiting.stamp_ns, waiting.value))
    }

    /// Removes, oldest first, what was stamped before `horizon_ns`. Stops at the first that was not: what
    /// a disordered capture hides behind it goes with a later call.
    pub(super) fn expire(&mut self, horizon_ns: i64, mut gone: impl FnMut(Signature, i64, T)) {
        while let Some((signature, serial)) = self.order.front() {
            match self.entries.get(signature) {
                Some(waiting) if waiting.serial == *serial => {
                    if waiting.stamp_ns >= horizon_ns {
                        return;
                    }
                    if let Some(waiting) = self.entries.remove(signature) {
                        gone(*signature, waiting.stamp_ns, waiting.value);
                    }
                }
                _ => {}
            }
            self.order.pop_front();
        }
    }
}
