//! Snapshots of a matcher between two packets, to tell whether another matcher would go on alike.

use super::pending::{LowerHalf, Pending};
use super::ring::Entry;
use super::window::State;
use super::{Decided, Fate, Late, MEMORY, Matcher, Window};
use crate::signature::Signature;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;

/// The packets that a matcher holds.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MatcherSnapshot {
    /// The last ingress packets, the earliest first.
    recent: Vec<Recent>,
    late: Vec<(Signature, i64, Late)>,
    early: Vec<(Signature, i64)>,
}

/// A remembered ingress packet.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Recent {
    signature: Signature,
    stamp_ns: i64,
    tag: u16,
    state: State,
}

impl Recent {
    /// Placeholder for a packet before any came.
    const NONE: Self = Self {
        signature: Signature { high: 0, low: 0 },
        stamp_ns: 0,
        tag: 0,
        state: State::Matched,
    };
}

/// Packets that one matcher holds and another one does not, which saw fewer packets before.
#[derive(Debug)]
pub(crate) struct EarlierPackets {
    late: Vec<(Signature, i64, Late)>,
    early: Vec<(Signature, i64)>,
    /// When the first later packet of each signature passed its tap, [`i64::MAX`] without any.
    seen_ns: HashMap<Signature, i64, BuildHasherDefault<LowerHalf>>,
    /// Tells of most other signatures that they are not among these.
    filter: Vec<u64>,
}

/// Bits of the filter, a power of two: 64 KB stay in the second-level cache.
const FILTER: u64 = 1 << 19;

impl<const N: usize> Matcher<N> {
    /// Packets stamped after `after_ns` that have not left when nothing stamped before `now_ns` is to come, and so never
    /// will, but whose fate is not decided as long as they are remembered.
    pub(crate) fn overdue(&self, now_ns: i64, after_ns: i64) -> u64 {
        let [_, _, outside_ns] = self.window.bounds_ns();
        self.waiting(&(after_ns.saturating_add(1)..now_ns.saturating_sub(outside_ns)))
    }

    /// Packets that entered at these times and are in no pair so far.
    pub(crate) fn waiting(&self, times_ns: &Range<i64>) -> u64 {
        let open = self.ring.open().filter(|(_, stamp_ns)| times_ns.contains(stamp_ns)).count();
        let late =
            |(_, stamp_ns, late): &(_, i64, &Late)| !late.ambiguous && times_ns.contains(stamp_ns);
        (open + self.late.iter().filter(late).count()) as u64
    }

    /// Snapshot of the packets that this matcher holds.
    pub(crate) fn held(&self) -> MatcherSnapshot {
        let recent = |entry: &Entry| {
            let &Entry { signature, stamp_ns, tag, state, .. } = entry;
            Recent { signature, stamp_ns, tag, state }
        };
        MatcherSnapshot {
            recent: self.ring.entries().map(recent).collect(),
            late: self
                .late
                .iter()
                .map(|(signature, at_ns, late)| (signature, at_ns, *late))
                .collect(),
            early: self.early.iter().map(|(signature, at_ns, ())| (signature, at_ns)).collect(),
        }
    }

    /// A matcher that holds these packets.
    pub(crate) fn holding(
        window: Window,
        held: MatcherSnapshot,
        (fates, now_ns): (Vec<Decided>, i64),
    ) -> Self {
        let mut matcher = Self { fates, now_ns, ..Self::with_memory(window, MEMORY) };
        // Placeholders at the beginning stand for packets that never entered.
        let entered = held.recent.into_iter().skip_while(|recent| *recent == Recent::NONE);
        for Recent { signature, stamp_ns, tag, state } in entered {
            matcher.ring.push(signature, stamp_ns, tag, state);
        }
        matcher.late.precede(held.late.into_iter());
        matcher
            .early
            .precede(held.early.into_iter().map(|(signature, at_ns)| (signature, at_ns, ())));
        matcher
    }

    /// Forgets the egress packets that wait for an ingress packet: those whose ingress packets came before the first one
    /// that this matcher was given are among them.
    pub(crate) fn forget_early(&mut self) {
        self.early = Pending::default();
    }

    /// Packets that this matcher holds beside those of `held`, since they wait longer than the last ones are
    /// remembered. `None` where the two differ in another way.
    pub(crate) fn beside(&self, held: &MatcherSnapshot) -> Option<EarlierPackets> {
        let MatcherSnapshot { recent, late, early } = self.held();
        let (late, early) = (without(late, &held.late)?, without(early, &held.early)?);
        (recent == held.recent).then(|| EarlierPackets::new(late, early))
    }

    /// Holds what came before all that it holds, or decides what comes of it. `older` has [seen](EarlierPackets::see) the
    /// packets that this matcher was given and decided on; its pairs have other signatures. Returns `false`, and changes
    /// nothing, where one of these packets has to do with one of those.
    pub(crate) fn hold(&mut self, mut older: EarlierPackets) -> bool {
        if older.is_empty() {
            return true;
        }
        self.ring.entries().for_each(|entry| older.see(entry.signature, entry.stamp_ns));
        self.late.iter().for_each(|(signature, at_ns, _)| older.see(signature, at_ns));
        self.early.iter().for_each(|(signature, at_ns, ())| older.see(signature, at_ns));
        let Window { early_ns, .. } = self.window;
        let [_, _, outside_ns] = self.window.bounds_ns();
        let EarlierPackets { late, early, seen_ns, .. } = older;
        let seen_ns = |signature| seen_ns.get(&signature).copied().unwrap_or(i64::MAX);
        // So much later it is another packet, whatever else becomes of it.
        let late_apart =
            |&(signature, at_ns, _): &_| seen_ns(signature).saturating_sub(outside_ns) >= at_ns;
        let early_apart =
            |&(signature, at_ns): &_| seen_ns(signature).saturating_sub(early_ns) >= at_ns;
        if !late.iter().all(late_apart) || !early.iter().all(early_apart) {
            return false;
        }
        let waits = |signature| seen_ns(signature) == i64::MAX;
        let (late, lost): (Vec<_>, Vec<_>) = late.into_iter().partition(|packet| waits(packet.0));
        for (signature, stamp_ns, _) in lost.into_iter().filter(|(_, _, late)| !late.ambiguous) {
            self.decide(Fate::Lost, stamp_ns, signature);
        }
        let (early, unmatched): (Vec<_>, Vec<_>) =
            early.into_iter().partition(|packet| waits(packet.0));
        for (signature, stamp_ns) in unmatched {
            self.decide(Fate::Unmatched, stamp_ns, signature);
        }
        self.late.precede(late.into_iter());
        self.early.precede(early.into_iter().map(|(signature, at_ns)| (signature, at_ns, ())));
        true
    }
}

impl EarlierPackets {
    fn new(late: Vec<(Signature, i64, Late)>, early: Vec<(Signature, i64)>) -> Self {
        let signatures = late.iter().map(|packet| packet.0);
        let signatures = signatures.chain(early.iter().map(|packet| packet.0));
        let seen_ns = signatures.map(|signature| (signature, i64::MAX)).collect();
        let mut older = Self { late, early, seen_ns, filter: Vec::new() };
        if !older.is_empty() {
            older.filter = vec![0; (FILTER / 64) as usize];
            for &signature in older.seen_ns.keys() {
                let (word, bit) = slot(signature.low);
                older.filter[word] |= bit;
            }
        }
        older
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seen_ns.is_empty()
    }

    /// Their signatures.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = Signature> {
        self.seen_ns.keys().copied()
    }

    /// Whether a signature with this lower half may be among them.
    #[inline]
    pub(crate) fn may_hold(&self, low: i64) -> bool {
        let (word, bit) = slot(low);
        self.filter.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// A later packet passed its tap.
    #[inline]
    pub(crate) fn see(&mut self, signature: Signature, stamp_ns: i64) {
        if self.may_hold(signature.low)
            && let Some(seen_ns) = self.seen_ns.get_mut(&signature)
        {
            *seen_ns = stamp_ns.min(*seen_ns);
        }
    }
}

/// Place of a signature with this lower half in the filter: a word and its bit.
#[inline]
fn slot(low: i64) -> (usize, u64) {
    let place = low.cast_unsigned() % FILTER;
    ((place / 64) as usize, 1 << (place % 64))
}

/// Those of `all` that are not in `some`, in their order; `None` unless `all` has all of `some`, in the same order.
fn without<T: PartialEq>(all: Vec<T>, some: &[T]) -> Option<Vec<T>> {
    let mut some = some.iter().peekable();
    let rest =
        all.into_iter().filter(|item| some.next_if(|next| *next == item).is_none()).collect();
    some.next().is_none().then_some(rest)
}
