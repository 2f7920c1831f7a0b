//! Some packets of both captures, paired whatever the time between their stamps.
//!
//! Matching takes a window, so it finds nothing of packets whose clocks are further apart. Packets that are chosen by their
//! signatures are the same on both sides, and few enough to be kept until both captures are read. Of copies of a mirror port the
//! first counts; other packets whose signature comes again are left out.

use crate::analysis::{SHARE, Source, may_be_copies};
use crate::capture::{CaptureError, Record};
use crate::directions::Direction;
use crate::matching::DISORDER_NS;
use crate::signature::{Signature, Signer};
use std::collections::{HashMap, HashSet};

/// Bytes of the packets of a side that are kept at most.
const MOST: usize = 1 << 24;

/// A packet that is kept.
#[derive(Debug, Clone, Copy)]
struct Kept<M> {
    signature: Signature,
    packet: u64,
    stamp_ns: i64,
    mark: M,
}

/// A clock that was set back: stamps go on from an earlier time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetBack {
    /// The first packet after it, from 1, and its stamp.
    pub(crate) packet: u64,
    pub(crate) stamp_ns: i64,
    /// To be added to its stamp and all behind it, so that they ascend.
    pub(crate) add_ns: i64,
}

/// Some packets of a capture, each with a mark: its direction from this side to the other one, or what tells of it.
#[derive(Debug)]
pub struct SampledSide<M = Direction> {
    /// Added to each stamp.
    shift_ns: i64,
    /// Of 2^bits packets one is kept.
    bits: u32,
    kept: Vec<Kept<M>>,
    pub(crate) set_back: Vec<SetBack>,
    /// The largest stamp so far, as if the clock had never been set back, and how far it is behind the one before.
    largest_ns: i64,
    gap_ns: i64,
}

/// A packet on both sides, each with its number from 1 and its stamp as if the clocks had never been set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joined<M = Direction> {
    pub(crate) entered: (u64, i64),
    pub(crate) left: (u64, i64),
    /// At ingress and at egress.
    pub(crate) marks: [M; 2],
}

impl<M> Joined<M> {
    /// Time between the stamps.
    pub(crate) fn apart_ns(&self) -> i64 {
        self.left.1.saturating_sub(self.entered.1)
    }
}

impl SampledSide {
    /// Reads a source of one direction to its end. `shift_ns` is added to each stamp.
    ///
    /// # Errors
    /// Those of [`Source::read`].
    pub fn read(
        source: &mut impl Source,
        signer: &Signer,
        shift_ns: i64,
    ) -> Result<Self, CaptureError> {
        let mut side = Self::new(shift_ns);
        let (mut batch, mut packet) = (Vec::new(), 0);
        while source.read(signer, &mut batch)? {
            for record in &batch {
                packet += 1;
                if record.stamped {
                    side.add(record, packet, || Direction::Forward);
                }
            }
        }
        Ok(side)
    }
}

impl<M: Copy> SampledSide<M> {
    /// One without packets. `shift_ns` is added to each stamp.
    #[must_use]
    pub fn new(shift_ns: i64) -> Self {
        let (kept, set_back) = (Vec::new(), Vec::new());
        Self { shift_ns, bits: 0, kept, set_back, largest_ns: i64::MIN, gap_ns: 0 }
    }

    /// Adds the next stamped packet, with its number from 1.
    pub fn add(&mut self, record: &Record, packet: u64, mark: impl FnOnce() -> M) {
        let shifted_ns = record.stamp_ns.saturating_add(self.shift_ns);
        let added_ns = self.set_back.last().map_or(0, |back| back.add_ns);
        let mut stamp_ns = shifted_ns.saturating_add(added_ns);
        if self.largest_ns.saturating_sub(stamp_ns) >= DISORDER_NS {
            // As far behind the packet before as that was behind the one before it.
            let add_ns = self.largest_ns.saturating_add(self.gap_ns).saturating_sub(shifted_ns);
            stamp_ns = shifted_ns.saturating_add(add_ns);
            self.set_back.push(SetBack { packet, stamp_ns: record.stamp_ns, add_ns });
        } else if self.largest_ns != i64::MIN {
            self.gap_ns = stamp_ns.saturating_sub(self.largest_ns).max(0);
        }
        self.largest_ns = self.largest_ns.max(stamp_ns);
        if is_chosen(record.signature, self.bits) {
            let signature = record.signature;
            self.kept.push(Kept { signature, packet, stamp_ns, mark: mark() });
            let most = MOST / size_of::<Kept<M>>();
            while self.kept.len() > most && self.bits < MOST_BITS {
                self.bits += 1;
                let bits = self.bits;
                self.kept.retain(|kept| is_chosen(kept.signature, bits));
            }
            self.kept.truncate(most);
        }
    }

    /// The marks of those that are kept.
    pub(crate) fn marks(&self) -> impl Iterator<Item = M> {
        self.kept.iter().map(|kept| kept.mark)
    }

    /// First and last stamp of those that are kept.
    pub(crate) fn ends_ns(&self) -> Option<(i64, i64)> {
        let stamps = || self.kept.iter().map(|kept| kept.stamp_ns);
        stamps().min().zip(stamps().max())
    }

    /// Stamps and marks of those that are kept, and whether the other side has them, too.
    pub(crate) fn passed(&self, other: &Self) -> impl Iterator<Item = (i64, M, bool)> {
        let bits = self.bits.max(other.bits);
        let left: HashSet<Signature> = other.kept.iter().map(|kept| kept.signature).collect();
        let kept = self.kept.iter().filter(move |kept| is_chosen(kept.signature, bits));
        kept.map(move |kept| (kept.stamp_ns, kept.mark, left.contains(&kept.signature)))
    }

    /// Packets of each signature, in their order.
    fn of_each(&self, bits: u32) -> HashMap<Signature, Vec<(i64, M)>> {
        let mut found: HashMap<Signature, Vec<(i64, M)>> = HashMap::new();
        for kept in self.kept.iter().filter(|kept| is_chosen(kept.signature, bits)) {
            found.entry(kept.signature).or_default().push((kept.stamp_ns, kept.mark));
        }
        found
    }

    /// Packets whose signature no other one has (false), and the first of packets that may be copies of each other (true).
    fn first_of_each(&self, bits: u32) -> impl Iterator<Item = (Kept<M>, bool)> {
        let least_ns = self.kept.iter().map(|kept| kept.stamp_ns).min().unwrap_or(0);
        let span_ns = self.largest_ns.saturating_sub(least_ns);
        let mut kept = self.kept.clone();
        kept.retain(|kept| is_chosen(kept.signature, bits));
        kept.sort_unstable_by_key(|kept| (kept.signature, kept.packet));
        let runs = kept.chunk_by(|one, other| one.signature == other.signature);
        let first_of = |run: &[Kept<M>]| {
            let reach_ns = run[run.len() - 1].stamp_ns.saturating_sub(run[0].stamp_ns);
            let once = run.len() == 1;
            (once || may_be_copies(run.len(), reach_ns, span_ns)).then_some((run[0], !once))
        };
        runs.filter_map(first_of).collect::<Vec<_>>().into_iter()
    }
}

/// Whether a packet is among one of 2^bits.
fn is_chosen(signature: Signature, bits: u32) -> bool {
    // Identifiers may be 0, and those of all packets alike: they would be chosen whatever the bits.
    bits == 0 || signature.low != 0 && signature.low & ((1_i64 << bits) - 1) == 0
}

/// Low bits of signatures that are looked at.
const MOST_BITS: u32 = 62;

/// Stamps and marks of the packets of one signature, at ingress and at egress.
pub(crate) type All<M> = [Vec<(i64, M)>; 2];

/// All packets of each signature that both sides have, in the order in which the first of them entered.
pub(crate) fn join_all<M: Copy>(ingress: &SampledSide<M>, egress: &SampledSide<M>) -> Vec<All<M>> {
    let bits = ingress.bits.max(egress.bits);
    let mut left = egress.of_each(bits);
    let both = ingress.of_each(bits).into_iter();
    let both = both
        .filter_map(|(signature, entered)| Some((left.remove(&signature)?, signature, entered)));
    let mut both: Vec<_> = both.collect();
    both.sort_unstable_by_key(|(_, signature, entered)| (entered[0].0, *signature));
    both.into_iter().map(|(left, _, entered)| [entered, left]).collect()
}

/// Packets on both sides, in the order of the egress capture, and how many packets each stands for.
pub(crate) fn join<M: Copy>(
    ingress: &SampledSide<M>,
    egress: &SampledSide<M>,
) -> (Vec<Joined<M>>, u64) {
    let bits = ingress.bits.max(egress.bits);
    let mut left = egress.first_of_each(bits).peekable();
    let mut joined = Vec::new();
    // Packets that no capture has again, the ingress capture, the egress capture, and both.
    let mut counts = [0; 4];
    for (entered, entered_again) in ingress.first_of_each(bits) {
        while left.next_if(|(left, _)| left.signature < entered.signature).is_some() {}
        if let Some((left, left_again)) =
            left.next_if(|(left, _)| left.signature == entered.signature)
        {
            let marks = [entered.mark, left.mark];
            let (entered, left) =
                ((entered.packet, entered.stamp_ns), (left.packet, left.stamp_ns));
            let again = usize::from(entered_again) + 2 * usize::from(left_again);
            counts[again] += 1;
            joined.push((again, Joined { entered, left, marks }));
        }
    }
    // If few come again, they are packets that are sent again, of which a tap may lack the first.
    let all = joined.len();
    joined.retain(|(again, _)| *again == 0 || counts[*again] * SHARE >= all);
    let mut joined: Vec<Joined<M>> = joined.into_iter().map(|(_, packet)| packet).collect();
    joined.sort_unstable_by_key(|packet| packet.left);
    (joined, 1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: among more packets of the identifier 0 than have room, the loop that chooses had no end.
    #[test]
    fn packets_of_the_identifier_0_leave_room_for_others() {
        let mut side = SampledSide::new(0);
        let record = |identifier| Record {
            stamp_ns: 1,
            signature: Signature::of_identifier(identifier),
            length: 60,
            signable: 60,
            cut: false,
            stamped: true,
        };
        let most = MOST / size_of::<Kept<()>>();
        for packet in 1..=most as u64 + 2 {
            side.add(&record(0), packet, || ());
        }
        (1..=4).for_each(|identifier| side.add(&record(identifier), 1, || ()));
        assert_eq!((side.bits, side.kept.len()), (1, 2));
    }
}
