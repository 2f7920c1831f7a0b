//! What a matcher holds between two packets, to tell whether another one would go on alike.

use super::pending::{LowerHalf, Pending};
use super::ring::Entry;
use super::window::State;
use super::{Late, Matcher};
use crate::signature::Signature;
use std::collections::HashSet;
use std::hash::BuildHasherDefault;

/// The packets that a matcher holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The last ingress packets, the earliest first.
    recent: Vec<Recent>,
    late: Vec<(Signature, i64, Late)>,
    early: Vec<(Signature, i64)>,
}

/// A remembered ingress packet.
#[derive(Debug, PartialEq, Eq)]
struct Recent {
    signature: Signature,
    stamp_ns: i64,
    tag: u16,
    state: State,
}

/// Packets that one matcher holds and another one does not, which saw fewer packets before.
#[derive(Debug)]
pub(crate) struct Older {
    late: Vec<(Signature, i64, Late)>,
    early: Vec<(Signature, i64)>,
    signatures: HashSet<Signature, BuildHasherDefault<LowerHalf>>,
}

impl<const N: usize> Matcher<N> {
    /// What this matcher holds.
    pub(crate) fn held(&self) -> Held {
        let recent = |entry: &Entry| {
            let &Entry { signature, stamp_ns, tag, state, .. } = entry;
            Recent { signature, stamp_ns, tag, state }
        };
        Held {
            recent: self.ring.entries().map(recent).collect(),
            late: self
                .late
                .iter()
                .map(|(signature, at_ns, late)| (signature, at_ns, *late))
                .collect(),
            early: self.early.iter().map(|(signature, at_ns, ())| (signature, at_ns)).collect(),
        }
    }

    /// Forgets the egress packets that wait for an ingress packet: those whose ingress packets came before the first one
    /// that this matcher was given are among them.
    pub(crate) fn forget_early(&mut self) {
        self.early = Pending::default();
    }

    /// What this matcher holds beside `held`: packets that wait longer than the last ones are remembered. `None` where
    /// the two differ in another way.
    pub(crate) fn beside(&self, held: &Held) -> Option<Older> {
        let Held { recent, late, early } = self.held();
        let older = Older {
            late: without(late, &held.late)?,
            early: without(early, &held.early)?,
            signatures: HashSet::default(),
        };
        let signatures = older.late.iter().map(|(signature, ..)| *signature);
        let signatures = signatures.chain(older.early.iter().map(|(signature, _)| *signature));
        let signatures = signatures.collect();
        (recent == held.recent).then_some(Older { signatures, ..older })
    }

    /// Whether this holds a packet of a signature that one of `older` has.
    pub(crate) fn holds_any(&self, older: &Older) -> bool {
        !older.is_empty()
            && (self.ring.entries().any(|entry| older.has(entry.signature))
                || self.late.iter().any(|(signature, ..)| older.has(signature))
                || self.early.iter().any(|(signature, ..)| older.has(signature)))
    }

    /// Holds these, too, which came before all that it holds.
    pub(crate) fn hold(&mut self, older: Older) {
        self.late.precede(older.late.into_iter());
        self.early
            .precede(older.early.into_iter().map(|(signature, at_ns)| (signature, at_ns, ())));
    }
}

impl Older {
    pub(crate) fn is_empty(&self) -> bool {
        self.signatures.is_empty()
    }

    /// Whether one of these packets has this signature.
    #[inline]
    pub(crate) fn has(&self, signature: Signature) -> bool {
        self.signatures.contains(&signature)
    }
}

/// Those of `all` that are not in `some`, in their order; `None` unless `all` has all of `some`, in the same order.
fn without<T: PartialEq>(all: Vec<T>, some: &[T]) -> Option<Vec<T>> {
    let mut some = some.iter().peekable();
    let rest =
        all.into_iter().filter(|item| some.next_if(|next| *next == item).is_none()).collect();
    some.next().is_none().then_some(rest)
}
