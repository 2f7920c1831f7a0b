//! The histogram of latencies: exact, unless more different values come than memory is for.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// So many values are counted in an array: 131 µs covers the body of every published trace, and
/// 1 MB of counters of which a trace touches a few pages stays in the L1 and L2 caches.
const DENSE: usize = 1 << 17;

/// Counters of the array that are looked at together for whether any is not zero.
const AT_ONCE: usize = 512;

/// So many different values are counted outside the array, in some 150 MB; more of them are rounded.
const EXACT: usize = 1 << 22;

/// Binary digits of a value that is rounded: all that the array has, and 3 million values up to the largest of 64 bits.
const DIGITS: u32 = DENSE.ilog2();

/// The same for a histogram of which there are many: 2 MB, and 94,208 rounded values of either sign at most.
const FEW_EXACT: usize = 1 << 16;
const FEW_DIGITS: u32 = 12;

/// Hashes one integer by a multiplication and one fold.
///
/// `SipHash` would take 20 ns per value. A key that is drawn anew for each histogram is enough here: whoever makes a capture
/// cannot choose values that collide, and no result depends on the order in the map.
struct IntegerHasher(u64);

#[derive(Clone)]
struct IntegerHash(u64);

impl Default for IntegerHash {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0_u64))
    }
}

impl BuildHasher for IntegerHash {
    type Hasher = IntegerHasher;

    fn build_hasher(&self) -> IntegerHasher {
        IntegerHasher(self.0)
    }
}

impl Hasher for IntegerHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // The product is best mixed in its high half, hashbrown takes the bucket from the low
        // bits: the fold serves both. 2^64 / golden ratio spreads consecutive values evenly.
        let product = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value.cast_unsigned());
    }
}

/// Counts of integer values in nanoseconds, negative ones (clock error) included: exact up to 4 million different values
/// beyond 131,072, and then [rounded](Self::is_rounded); [`small`](Self::small) ones keep fewer.
///
/// Merging and recording commute: the result does not depend on the order of packets or shards.
/// An empty histogram allocates nothing; the first value in `0..131072` allocates 1 MB. Its serde
/// form is whether it is rounded, and the ascending list of `[value_ns, count]` pairs.
#[derive(Clone)]
pub struct Histogram {
    /// Counters of `start_ns..start_ns + DENSE`; empty until one of them is needed.
    dense: Vec<u64>,
    start_ns: i64,
    /// Counters of all other values, none of them zero.
    sparse: HashMap<i64, u64, IntegerHash>,
    count: u64,
    rounded: bool,
    /// Different values that `sparse` has before they are rounded, to so many binary digits.
    exact: usize,
    digits: u32,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            dense: Vec::new(),
            start_ns: 0,
            sparse: HashMap::default(),
            count: 0,
            rounded: false,
            exact: EXACT,
            digits: DIGITS,
        }
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty histogram that takes at most 8 MB: exact up to 65,536 different values beyond 131,072, and then rounded to
    /// 12 binary digits, within 0.025 % of what they are.
    #[must_use]
    pub fn small() -> Self {
        Self { exact: FEW_EXACT, digits: FEW_DIGITS, ..Self::default() }
    }

    /// An empty histogram that counts values around zero as fast as [`new`](Self::new) counts
    /// small positive ones. Equal to it in every other respect.
    #[must_use]
    pub fn around_zero() -> Self {
        Self { start_ns: -(DENSE as i64 / 2), ..Self::default() }
    }

    #[inline]
    fn dense_index(&self, value_ns: i64) -> Option<usize> {
        let index = value_ns.wrapping_sub(self.start_ns);
        usize::try_from(index).ok().filter(|index| *index < DENSE)
    }

    /// A histogram of `(value_ns, count)` pairs in any order; equal values add up.
    #[must_use]
    pub fn from_pairs(pairs: impl IntoIterator<Item = (i64, u64)>) -> Self {
        let mut histogram = Self::new();
        for (value_ns, n) in pairs {
            histogram.record_n(value_ns, n);
        }
        histogram
    }

    /// Counts one value in nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: i64) {
        let index = value_ns.wrapping_sub(self.start_ns).cast_unsigned() as usize;
        if let Some(slot) = self.dense.get_mut(index) {
            *slot += 1;
            self.count += 1;
        } else {
            self.record_rare(value_ns);
        }
    }

    /// Counts values in nanoseconds.
    #[inline]
    pub fn record_all(&mut self, values_ns: impl Iterator<Item = i64>) {
        let mut counted = 0;
        for value_ns in values_ns {
            let index = value_ns.wrapping_sub(self.start_ns).cast_unsigned() as usize;
            if let Some(slot) = self.dense.get_mut(index) {
                *slot += 1;
                counted += 1;
            } else {
                self.record_rare(value_ns);
            }
        }
        self.count += counted;
    }

    #[cold]
    #[inline(never)]
    fn record_rare(&mut self, value_ns: i64) {
        self.record_n(value_ns, 1);
    }

    /// Counts `n` equal values in nanoseconds. Counts saturate at `u64::MAX`, which no trace
    /// reaches but a damaged file of pairs may ask for.
    pub fn record_n(&mut self, value_ns: i64, n: u64) {
        if n == 0 {
            return;
        }
        let slot = match self.dense_index(value_ns) {
            Some(index) => {
                if self.dense.is_empty() {
                    self.dense = vec![0; DENSE];
                }
                &mut self.dense[index]
            }
            None => self.sparse.entry(self.kept(value_ns)).or_insert(0),
        };
        *slot = slot.saturating_add(n);
        self.count = self.count.saturating_add(n);
        if self.sparse.len() > self.exact && !self.rounded {
            self.round();
        }
    }

    /// Whether values were too many to be exact: those beyond 131,072 ns are rounded to 17 binary digits, within
    /// 0.0008 % of what they are, or as a [small](Self::small) one says. That depends on the values alone, not on their order.
    #[must_use]
    pub fn is_rounded(&self) -> bool {
        self.rounded
    }

    fn round(&mut self) {
        self.rounded = true;
        for (value_ns, n) in std::mem::take(&mut self.sparse) {
            *self.sparse.entry(self.kept(value_ns)).or_insert(0) += n;
        }
        self.sparse.shrink_to_fit();
    }

    /// The value under which one is counted that the array does not have.
    fn kept(&self, value_ns: i64) -> i64 {
        if self.rounded { rounded(value_ns, self.digits) } else { value_ns }
    }

    /// Takes one value back, for a pair of packets that turns out not to be one. Returns whether
    /// the value was there; if not, nothing changes.
    pub fn remove(&mut self, value_ns: i64) -> bool {
        let slot = match self.dense_index(value_ns) {
            Some(index) => self.dense.get_mut(index),
            None => self.sparse.get_mut(&self.kept(value_ns)),
        };
        let Some(slot) = slot.filter(|slot| **slot > 0) else {
            return false;
        };
        *slot -= 1;
        if *slot == 0 && self.dense_index(value_ns).is_none() {
            self.sparse.remove(&self.kept(value_ns));
        }
        self.count -= 1;
        true
    }

    /// Number of recorded values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether no value was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of different recorded values. Scans the counters (some 50 µs).
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.dense_pairs().count() + self.sparse.len()
    }

    /// The smallest value in nanoseconds, if there is one. Scans the counters.
    #[must_use]
    pub fn min(&self) -> Option<i64> {
        let dense = self.dense_pairs().next().map(|(value_ns, _)| value_ns);
        self.sparse.keys().copied().chain(dense).min()
    }

    /// The largest value in nanoseconds, if there is one. Scans the counters.
    #[must_use]
    pub fn max(&self) -> Option<i64> {
        let dense = self.dense_pairs().next_back().map(|(value_ns, _)| value_ns);
        self.sparse.keys().copied().chain(dense).max()
    }

    /// All `(value_ns, count)` pairs with a count above zero, ascending by value.
    #[must_use]
    pub fn sorted(&self) -> Vec<(i64, u64)> {
        let sparse = self.sparse.iter().map(|(&value_ns, &n)| (value_ns, n));
        let mut pairs: Vec<(i64, u64)> = self.dense_pairs().chain(sparse).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.rounded && !self.rounded {
            self.round();
        }
        for (value_ns, n) in other.dense_pairs() {
            self.record_n(value_ns, n);
        }
        for (&value_ns, &n) in &other.sparse {
            self.record_n(value_ns, n);
        }
    }

    /// Adds all counts of `other`, which is empty then. The memory of its array is there for further counts, of it or of this
    /// one.
    pub fn take_all(&mut self, other: &mut Self) {
        if other.rounded && !self.rounded {
            self.round();
        }
        if self.dense.is_empty() && self.start_ns == other.start_ns {
            std::mem::swap(&mut self.dense, &mut other.dense);
            self.count = self.dense.iter().fold(self.count, |sum, &n| sum.saturating_add(n));
        }
        let (mut moved, alike) = (0_u64, self.start_ns == other.start_ns);
        // Most of the array is empty.
        for (place, counts) in other.dense.chunks_mut(AT_ONCE).enumerate() {
            if counts.iter().fold(0, |any, n| any | n) == 0 {
                continue;
            }
            let from = place * AT_ONCE;
            if alike {
                for (sum, n) in self.dense[from..].iter_mut().zip(counts) {
                    *sum = sum.saturating_add(*n);
                    moved = moved.saturating_add(std::mem::take(n));
                }
            } else {
                for (value_ns, n) in (other.start_ns + from as i64..).zip(counts) {
                    self.record_n(value_ns, std::mem::take(n));
                }
            }
        }
        self.count = self.count.saturating_add(moved);
        for (value_ns, n) in other.sparse.drain() {
            self.record_n(value_ns, n);
        }
        (other.count, other.rounded) = (0, false);
    }

    fn dense_pairs(&self) -> impl DoubleEndedIterator<Item = (i64, u64)> + '_ {
        let slots = self.dense.iter().enumerate();
        slots.filter(|(_, n)| **n > 0).map(|(index, &n)| (self.start_ns + index as i64, n))
    }
}

/// The middle of the values that have the same first binary digits.
fn rounded(value_ns: i64, digits: u32) -> i64 {
    let magnitude = value_ns.unsigned_abs().min(i64::MAX.unsigned_abs());
    let dropped = (u64::BITS - magnitude.leading_zeros()).saturating_sub(digits);
    if dropped == 0 {
        return value_ns;
    }
    let middle = (magnitude >> dropped << dropped | 1 << (dropped - 1)).cast_signed();
    if value_ns < 0 { -middle } else { middle }
}

impl PartialEq for Histogram {
    /// Equal counts of equal values, however they came to be stored.
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.sorted() == other.sorted()
    }
}

impl Eq for Histogram {}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.sorted()).finish()
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.rounded, self.sorted()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (rounded, pairs) = <(bool, Vec<(i64, u64)>)>::deserialize(deserializer)?;
        let mut histogram = Self { rounded, ..Self::default() };
        pairs.into_iter().for_each(|(value_ns, n)| histogram.record_n(value_ns, n));
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests;
