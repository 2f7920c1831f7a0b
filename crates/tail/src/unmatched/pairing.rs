//! Lost and unmatched packets that a signature makes one, and whether chance would.

use super::{FEWEST, Frame, Sides};
use crate::matching::Window;
use crate::signature::{Signature, Signer};
use std::collections::HashMap;

/// Pairs that chance makes at most one tenth of are none of chance.
const OVER_CHANCE: f64 = 10.0;

/// The coarsest stamps in use: latencies closer together than this say no more.
const COARSEST_NS: i64 = 1_000;

/// Lost and unmatched packets, by their places, of which no other has the same signature on its side.
pub(super) struct Pairs {
    pub(super) pairs: Vec<(usize, usize)>,
    /// Different signatures of the lost packets.
    distinct: usize,
}

pub(super) fn signatures(frames: &[Frame], signer: &Signer) -> impl Iterator<Item = Signature> {
    frames.iter().map(|frame| signer.sign(frame.link, &frame.head).signature)
}

/// Different signatures of these frames.
pub(super) fn distinct(frames: &[Frame], signer: &Signer) -> usize {
    signatures(frames, signer).collect::<std::collections::HashSet<_>>().len()
}

impl Sides<'_> {
    /// The pairs that a signature makes.
    pub(super) fn pairs(&self, signer: &Signer, window: Window) -> Pairs {
        let [lost, unmatched] =
            [self.lost, self.unmatched].map(|frames| signatures(frames, signer));
        self.pairs_of(lost, unmatched, window)
    }

    /// The same with any keys, one for each packet.
    pub(super) fn pairs_of<K: Eq + std::hash::Hash>(
        &self,
        lost: impl Iterator<Item = K>,
        unmatched: impl Iterator<Item = K>,
        window: Window,
    ) -> Pairs {
        let (entered, left) = (once(lost), once(unmatched));
        let mut pairs: Vec<(usize, usize)> = entered
            .iter()
            .filter_map(|(key, place)| Some(((*place)?, (*left.get(key)?)?)))
            .filter(|&(lost, unmatched)| window.matches(self.latency_ns((lost, unmatched))))
            .collect();
        pairs.sort_unstable();
        Pairs { pairs, distinct: entered.len() }
    }

    /// Packets that leave with the signature of one that entered, as far as each of these can be one of them.
    pub(super) fn common(&self, signer: &Signer) -> usize {
        let count = |frames: &[Frame]| {
            let mut counts: HashMap<Signature, usize> = HashMap::new();
            signatures(frames, signer).for_each(|one| *counts.entry(one).or_default() += 1);
            counts
        };
        let left = count(self.unmatched);
        let both = |(one, count): (Signature, usize)| left.get(&one).map_or(0, |of| count.min(*of));
        count(self.lost).into_iter().map(both).sum()
    }

    pub(super) fn latency_ns(&self, (lost, unmatched): (usize, usize)) -> i64 {
        self.unmatched[unmatched].stamp_ns.saturating_sub(self.lost[lost].stamp_ns)
    }

    /// Whether the pairs are more than chance makes of packets that have nothing to do with each other.
    ///
    /// Let their signatures be drawn from the D that entered. Two packets then agree with probability 1/D, and their
    /// latency lies anywhere within the time T that all of them span: of L lost and U unmatched packets, L U / D · w / T
    /// agree by chance within the width w of the latencies that were found. A counter of few bytes has few signatures,
    /// and constant bytes have one; where latencies are scattered over all of T, only their number counts.
    pub(super) fn are_no_chance(&self, found: &Pairs) -> bool {
        let count = found.pairs.len();
        if count < FEWEST {
            return false;
        }
        let mut latencies: Vec<i64> =
            found.pairs.iter().map(|pair| self.latency_ns(*pair)).collect();
        latencies.sort_unstable();
        // Without the outer tenth: a few that agree by chance are among those that do not.
        let edge = count / 20;
        let width_ns = (latencies[count - 1 - edge] - latencies[edge]).max(COARSEST_NS);
        let stamps = || self.lost.iter().chain(self.unmatched).map(|frame| frame.stamp_ns);
        let span_ns = stamps().max().zip(stamps().min()).map_or(1, |(max, min)| max - min + 1);
        let couples = self.lost.len() as f64 * self.unmatched.len() as f64;
        let share = (width_ns as f64 / span_ns as f64).min(1.0);
        count as f64 >= OVER_CHANCE * couples / found.distinct as f64 * share
    }

    /// Whether the pairs are nearly all packets of the smaller side.
    pub(super) fn are_all(&self, found: &Pairs) -> bool {
        let fewer = self.lost.len().min(self.unmatched.len());
        found.pairs.len() >= FEWEST && found.pairs.len() * 10 >= fewer * 9
    }
}

/// The place of each key; [`None`] of one that comes again.
fn once<K: Eq + std::hash::Hash>(keys: impl Iterator<Item = K>) -> HashMap<K, Option<usize>> {
    let mut places = HashMap::new();
    for (place, key) in keys.enumerate() {
        places.entry(key).and_modify(|place| *place = None).or_insert(Some(place));
    }
    places
}
