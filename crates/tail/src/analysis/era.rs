//! Stamps that are none: zero, or far from those of the other packets.
//!
//! A tap that has no stamp for a packet may write zero, and a clock that is set, or a driver's race, leaves a packet of
//! another decade among its neighbours. Such a packet did not pass at that time, and is not lost either: it has no stamp.

use crate::capture::{NEXT_STAMPS, Record};
use crate::matching::DISORDER_NS;

/// So far from the middle one of the first stamps a stamp may be: a year. No capture is that long, and clocks that were
/// not set are further away.
const FAR_NS: i64 = 366 * 86_400 * 1_000_000_000;

/// So many stamps have a middle one that a single odd one does not move.
const FEW: usize = 3;

/// The time in which the stamps of a capture lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Era {
    from_ns: i64,
    to_ns: i64,
}

impl Era {
    /// That of the first records of a capture.
    pub(super) fn of(first: &[Record]) -> Self {
        let stamped = first.iter().filter(|record| record.stamped);
        let mut stamps: Vec<i64> = stamped.map(|record| record.stamp_ns).collect();
        let all = stamps.len();
        // Zero is a time only where the clock begins there.
        stamps.retain(|&stamp_ns| stamp_ns != 0);
        let always = Self { from_ns: i64::MIN, to_ns: i64::MAX };
        if stamps.len() < FEW {
            let zeros_are_none = match stamps.iter().min() {
                Some(&least_ns) => least_ns > FAR_NS,
                None => all > 1,
            };
            return Self { from_ns: if zeros_are_none { 1 } else { i64::MIN }, ..always };
        }
        let at = (stamps.len() - 1) / 2;
        let (_, &mut middle_ns, _) = stamps.select_nth_unstable(at);
        Self { from_ns: middle_ns.saturating_sub(FAR_NS), to_ns: middle_ns.saturating_add(FAR_NS) }
    }

    /// The same of records around this time: a tap may record for years.
    pub(super) fn around(self, stamp_ns: i64) -> Self {
        if self.to_ns == i64::MAX {
            return self;
        }
        Self { from_ns: stamp_ns.saturating_sub(FAR_NS), to_ns: stamp_ns.saturating_add(FAR_NS) }
    }

    /// Whether a stamp is a time.
    fn holds(self, stamp_ns: i64) -> bool {
        (self.from_ns..=self.to_ns).contains(&stamp_ns)
    }

    /// Takes the stamps from records of a batch that have none of this time, or one far from those of their neighbours.
    /// `last_ns` is the largest stamp before, `behind` gives those after the batch. `left_out` is told each of them: its
    /// number among the stamped records, and in the batch, and its stamp.
    pub(super) fn leave_out(
        self,
        batch: &mut [Record],
        mut last_ns: Option<i64>,
        mut behind: impl FnMut() -> Vec<i64>,
        mut left_out: impl FnMut(usize, usize, i64),
    ) {
        let mut stamped = 0;
        for at in 0..batch.len() {
            let Record { stamp_ns, stamped: true, .. } = batch[at] else { continue };
            let is_none = !self.holds(stamp_ns)
                || (is_jump(last_ns, stamp_ns) && {
                    let mut next: Vec<i64> =
                        self.stamps(&batch[at + 1..]).take(NEXT_STAMPS).collect();
                    if next.len() < NEXT_STAMPS {
                        next.extend(behind().into_iter().filter(|&stamp_ns| self.holds(stamp_ns)));
                        next.truncate(NEXT_STAMPS);
                    }
                    is_glitch(last_ns, stamp_ns, &next)
                });
            if is_none {
                batch[at].stamped = false;
                left_out(stamped, at, stamp_ns);
            } else {
                last_ns = last_ns.max(Some(stamp_ns));
            }
            stamped += 1;
        }
    }

    /// The stamps of these records that are times.
    pub(super) fn stamps(self, records: &[Record]) -> impl Iterator<Item = i64> + '_ {
        let stamped = records.iter().filter(|record| record.stamped);
        stamped.map(|record| record.stamp_ns).filter(move |&stamp_ns| self.holds(stamp_ns))
    }
}

/// Whether a stamp is so far from the largest one before it that it might be none.
fn is_jump(last_ns: Option<i64>, stamp_ns: i64) -> bool {
    last_ns.is_none_or(|last_ns| stamp_ns.abs_diff(last_ns) >= DISORDER_NS.unsigned_abs())
}

/// Whether a stamp after such a jump is none: most of the `next` ones are in order with those before, and not with it. So up
/// to three in a row may be odd. Stamps that ascend never are.
fn is_glitch(last_ns: Option<i64>, stamp_ns: i64, next: &[i64]) -> bool {
    let before = |ns: i64, other_ns: i64| ns <= other_ns.saturating_sub(DISORDER_NS);
    // Near the end of a capture too few are left to tell a run of odd stamps from a clock that was set.
    let next = if next.len() < NEXT_STAMPS { &next[..next.len().min(2)] } else { next };
    let goes_on = |ns: i64| last_ns.is_none_or(|last_ns| !before(ns, last_ns));
    if !goes_on(stamp_ns) {
        return next.iter().filter(|ns| goes_on(**ns)).count() * 2 >= next.len();
    }
    let without = next.iter().filter(|ns| goes_on(**ns) && before(**ns, stamp_ns)).count();
    without * 2 > next.len() && (last_ns.is_some() || without > 1)
}
