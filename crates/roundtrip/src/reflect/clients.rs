//! A table that forgets: its memory is bounded whatever is sent from however many invented addresses.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Entries that share a place.
const WAYS: usize = 4;

/// A table of a limited number of values by key.
#[derive(Debug)]
pub(super) struct Clients<K, V> {
    slots: Vec<Option<Slot<K, V>>>,
    seed: u64,
    uses: u64,
    evicted: u64,
}

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    used: u64,
}

impl<K: Hash + Eq, V> Clients<K, V> {
    /// A table for `count` entries, or a place of it more.
    pub(super) fn new(count: usize, seed: u64) -> Self {
        let slots = (count / WAYS).next_power_of_two() * WAYS;
        Self { slots: (0..slots).map(|_| None).collect(), seed, uses: 0, evicted: 0 }
    }

    /// Entries that made room for others.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    fn place(&self, key: &K) -> usize {
        let mut hasher = DefaultHasher::new();
        self.seed.hash(&mut hasher);
        key.hash(&mut hasher);
        // A power of two of places.
        (hasher.finish() as usize & (self.slots.len() / WAYS - 1)) * WAYS
    }

    /// The value of a key that is there.
    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key);
        let mut slots = self.slots[place..place + WAYS].iter_mut().flatten();
        slots.find(|slot| slot.key == *key).map(|slot| &mut slot.value)
    }

    /// The value of a key, made if it is not there: in place of the one of four that was used least recently.
    pub(super) fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let (used, place) = (self.uses, self.place(&key));
        let ways = &mut self.slots[place..place + WAYS];
        let holds = |slot: &Option<Slot<K, V>>| slot.as_ref().is_some_and(|slot| slot.key == key);
        let way = ways.iter().position(holds).unwrap_or_else(|| {
            let age = |way: &usize| ways[*way].as_ref().map_or(0, |slot| slot.used);
            (0..WAYS).min_by_key(age).unwrap_or(0)
        });
        let slot = &mut ways[way];
        if slot.as_ref().is_some_and(|slot| slot.key != key) {
            self.evicted += 1;
            *slot = None;
        }
        let slot = slot.get_or_insert_with(|| Slot { key, value: make(), used });
        slot.used = used;
        &mut slot.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_table_does_not_grow() {
        let mut clients = Clients::new(16, 7);
        for other in 0..100_000_u32 {
            *clients.entry(u32::MAX, || 0_u32) += 1;
            clients.entry(other, || 0);
        }
        assert_eq!(clients.get(&u32::MAX), Some(&mut 100_000));
        assert_eq!(clients.slots.len(), 16);
        assert!(clients.evicted() >= 100_000 - 16);
        assert_eq!(clients.get(&(u32::MAX - 1)), None);
    }

    #[test]
    fn a_table_of_none_still_has_a_place() {
        let mut clients = Clients::new(0, 7);
        assert_eq!(*clients.entry(1, || 5), 5);
        assert_eq!(clients.slots.len(), WAYS);
    }
}
