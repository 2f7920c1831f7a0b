//! Some packets of both captures, paired whatever the time between their stamps.
//!
//! Matching takes a window, so it finds nothing of packets whose clocks are further apart. Packets that are chosen by their
//! signatures are the same on both sides, and few enough to be kept until both captures are read.

use crate::analysis::Source;
use crate::capture::CaptureError;
use crate::matching::DISORDER_NS;
use crate::signature::{Signature, Signer};

/// Packets of a side that are kept at most: 16 MB.
const MOST: usize = 1 << 19;

/// A packet that is kept.
#[derive(Debug, Clone, Copy)]
struct Kept {
    signature: Signature,
    packet: u64,
    stamp_ns: i64,
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

/// Some packets of a capture.
#[derive(Debug)]
pub struct SampledSide {
    /// Of 2^bits packets one is kept.
    bits: u32,
    kept: Vec<Kept>,
    pub(crate) set_back: Vec<SetBack>,
}

/// A packet on both sides, each with its number from 1 and its stamp as if the clocks had never been set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joined {
    pub(crate) entered: (u64, i64),
    pub(crate) left: (u64, i64),
}

impl Joined {
    /// Time between the stamps.
    pub(crate) fn apart_ns(&self) -> i64 {
        self.left.1.saturating_sub(self.entered.1)
    }
}

impl SampledSide {
    /// Reads a source to its end. `shift_ns` is added to each stamp.
    ///
    /// # Errors
    /// The errors of [`Source::read`].
    pub fn read(
        source: &mut impl Source,
        signer: &Signer,
        shift_ns: i64,
    ) -> Result<Self, CaptureError> {
        let mut side = Self { bits: 0, kept: Vec::new(), set_back: Vec::new() };
        let (mut batch, mut packet) = (Vec::new(), 0);
        let (mut largest_ns, mut gap_ns, mut add_ns) = (i64::MIN, 0, 0);
        while source.read(signer, &mut batch)? {
            for record in &batch {
                packet += 1;
                if !record.stamped {
                    continue;
                }
                let shifted_ns = record.stamp_ns.saturating_add(shift_ns);
                let mut stamp_ns = shifted_ns.saturating_add(add_ns);
                if largest_ns.saturating_sub(stamp_ns) >= DISORDER_NS {
                    // As far behind the packet before as that was behind the one before it.
                    add_ns = largest_ns.saturating_add(gap_ns).saturating_sub(shifted_ns);
                    stamp_ns = shifted_ns.saturating_add(add_ns);
                    side.set_back.push(SetBack { packet, stamp_ns: record.stamp_ns, add_ns });
                } else if largest_ns != i64::MIN {
                    gap_ns = stamp_ns.saturating_sub(largest_ns).max(0);
                }
                largest_ns = largest_ns.max(stamp_ns);
                side.keep(Kept { signature: record.signature, packet, stamp_ns });
            }
        }
        Ok(side)
    }

    fn keep(&mut self, kept: Kept) {
        if is_chosen(kept.signature, self.bits) {
            self.kept.push(kept);
            while self.kept.len() > MOST {
                self.bits += 1;
                let bits = self.bits;
                self.kept.retain(|kept| is_chosen(kept.signature, bits));
            }
        }
    }

    /// Those whose signature no other one has.
    fn unique(&self, bits: u32) -> Vec<Kept> {
        let mut kept = self.kept.clone();
        kept.retain(|kept| is_chosen(kept.signature, bits));
        kept.sort_unstable_by_key(|kept| (kept.signature, kept.packet));
        let runs = kept.chunk_by(|one, other| one.signature == other.signature);
        runs.filter(|run| run.len() == 1).map(|run| run[0]).collect()
    }
}

/// Whether a packet is among one of 2^bits.
fn is_chosen(signature: Signature, bits: u32) -> bool {
    signature.low & ((1_i64 << bits) - 1) == 0
}

/// Packets on both sides, in the order of the egress capture, and how many packets each stands for.
pub(crate) fn join(ingress: &SampledSide, egress: &SampledSide) -> (Vec<Joined>, u64) {
    let bits = ingress.bits.max(egress.bits);
    let (entered, left) = (ingress.unique(bits), egress.unique(bits));
    let mut left = left.into_iter().peekable();
    let mut joined = Vec::new();
    for entered in entered {
        while left.next_if(|left| left.signature < entered.signature).is_some() {}
        if let Some(left) = left.next_if(|left| left.signature == entered.signature) {
            let (entered, left) =
                ((entered.packet, entered.stamp_ns), (left.packet, left.stamp_ns));
            joined.push(Joined { entered, left });
        }
    }
    joined.sort_unstable_by_key(|packet| packet.left.0);
    (joined, 1 << bits)
}
