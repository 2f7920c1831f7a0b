//! The far host's own numbers: they show in which direction probes were lost, and when replies really left.
//!
//! A reflector with state numbers its replies from 0 on (RFC 8762 section 4.3.1, RFC 5357 section 4.2.1). A missing
//! number below the highest belongs to a reply that was lost on its way; a lost probe without a missing number never
//! got a reply. A reflector without state copies the probe's number, which looks the same as long as nothing is lost on
//! the way there: until a number differs, or telemetry comes, it is unknown which kind of reflector it is.

use super::super::outcome::LostWays;
use std::collections::VecDeque;

/// A far host whose first number is this much larger than the probe's has counted before this session.
const BEGINNING: u64 = 64;
/// Number of last replies among which telemetry can find its reply.
const RECENT: usize = 1_024;
/// Number of last second replies that are known when they come once more.
const DOUBLED: usize = 64;

/// Numbers of the replies, and counts that follow from them.
#[derive(Debug)]
pub(super) struct Numbering {
    /// Number of replies that came, each number once.
    came: u64,
    highest: Option<u64>,
    lowest: Option<u64>,
    /// The far host counted before this session: its first number is the lowest, else 0.
    counted_before: bool,
    /// The far host counts itself.
    own: bool,
    /// The last probe with a reply, and how many were lost before it and before the first number.
    last: Option<u64>,
    lost: u64,
    lost_first: u64,
    /// Numbers of the last replies to probes that had one.
    doubled: VecDeque<u64>,
    /// Probes were given up: from then on the numbers show nothing.
    closed: bool,
    /// Probes by the numbers of their replies; none without telemetry.
    recent: Vec<Option<(u64, u64)>>,
    told_to: Option<u64>,
}

impl Numbering {
    /// `telemetry`: it is asked for.
    pub(super) fn new(telemetry: bool) -> Self {
        Self {
            came: 0,
            highest: None,
            lowest: None,
            counted_before: false,
            own: false,
            last: None,
            lost: 0,
            lost_first: 0,
            doubled: VecDeque::new(),
            closed: false,
            recent: if telemetry { vec![None; RECENT] } else { Vec::new() },
            told_to: None,
        }
    }

    /// The number with these low bits that is nearest to those that came.
    pub(super) fn unfold(&self, low: u32) -> u64 {
        let near = self.highest.unwrap_or(0);
        let ahead = i64::from(low.wrapping_sub(near as u32).cast_signed());
        near.checked_add_signed(ahead).unwrap_or(low.into())
    }

    /// Enters the number of a reply that came in time for a probe that is still to be decided.
    pub(super) fn enter(&mut self, number: u64, far: u64) {
        if let Some(place) = self.recent.get_mut(far as usize % RECENT) {
            *place = Some((far, number));
        }
    }

    /// The probe whose reply telemetry is about. No telemetry comes for earlier ones after that.
    pub(super) fn told(&mut self, far: u64) -> Option<u64> {
        self.own = true;
        self.told_to = self.told_to.max(Some(far));
        let &(entered, number) = self.recent.get(far as usize % RECENT)?.as_ref()?;
        (entered == far).then_some(number)
    }

    /// Whether telemetry about this reply may still come.
    pub(super) fn may_be_told(&self, far: u64) -> bool {
        self.told_to < Some(far)
    }

    /// Notes that a probe was decided and has a reply; `lost` probes were lost before it.
    pub(super) fn replied(&mut self, number: u64, far: u64, lost: u64) {
        if self.closed {
            return;
        }
        if self.last.is_none() && far > number + BEGINNING {
            (self.counted_before, self.lost_first) = (true, lost);
        }
        (self.last, self.lost) = (Some(number), lost);
        self.count(number, far);
    }

    /// Enters a reply for a probe that was decided as lost. `after` probes after it were lost, and `lost` in all by
    /// now.
    pub(super) fn replied_late(
        &mut self,
        number: u64,
        far: u64,
        after: impl Fn() -> u64,
        lost: u64,
    ) {
        match self.last {
            _ if self.closed => {}
            Some(last) if number < last => {
                self.lost = self.lost.saturating_sub(1);
                self.count(number, far);
            }
            _ => self.replied(number, far, lost.saturating_sub(after())),
        }
    }

    /// Notes that a probe was duplicated on the way there: its second reply has a number of its own.
    pub(super) fn doubled(&mut self, number: u64, far: u64) {
        if self.closed || self.doubled.contains(&far) {
            return;
        }
        if self.doubled.len() == DOUBLED {
            self.doubled.pop_front();
        }
        self.doubled.push_back(far);
        self.count(number, far);
    }

    fn count(&mut self, number: u64, far: u64) {
        self.own |= far as u32 != number as u32;
        self.came += 1;
        self.highest = self.highest.max(Some(far));
        self.lowest = Some(self.lowest.map_or(far, |lowest| lowest.min(far)));
    }

    /// Gives up the probes in flight: whether their replies left is unknown.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Directions of so many lost probes. Losses after the last reply are unknown, and all are where the numbers do not
    /// fit the losses.
    pub(super) fn ways(&self, lost: u64) -> LostWays {
        let unknown = LostWays { there: 0, back: 0, unknown: lost };
        let Some(highest) = self.highest.filter(|_| self.own) else { return unknown };
        let known = self.lost.min(lost).saturating_sub(self.lost_first);
        let first = self.lowest.filter(|_| self.counted_before).unwrap_or(0);
        let missing = (highest + 1).saturating_sub(first).checked_sub(self.came);
        let Some(back) = missing.filter(|missing| *missing <= known) else { return unknown };
        LostWays { there: known - back, back, unknown: lost - known }
    }
}
