//! The far host's own numbers: on which way probes were lost, and when its replies really left.
//!
//! A reflector with state numbers its replies from 0 on (RFC 8762 section 4.3.1, RFC 5357 section 4.2.1). A number
//! that is missing below the highest is that of a reply which was lost on its way; a lost probe without one never got
//! a reply. A reflector without state copies the probe's number, which looks the same as long as nothing is lost on
//! the way there: until a number differs, or its telemetry speaks, nobody knows which of the two it is.

use super::super::outcome::LostWays;

/// A far host that begins this many numbers later than the probes is one that counted before this session.
const BEGINNING: u64 = 64;
/// Replies among which the one is looked for that telemetry is about.
const RECENT: usize = 1_024;

/// What the numbers of the replies say.
#[derive(Debug)]
pub(super) struct Numbering {
    /// Replies that came, each number once.
    came: u64,
    highest: Option<u64>,
    /// From where on is counted: 0, unless the far host counted before.
    first: u64,
    /// The far host counts itself.
    own: bool,
    /// The last probe of which a reply came, and how many were lost before it and before the first number.
    last: Option<u64>,
    lost: u64,
    lost_first: u64,
    /// Probes that nobody waited for: from then on numbers say nothing.
    closed: bool,
    /// Probes by the numbers of their replies.
    recent: Vec<Option<(u64, u64)>>,
    told_to: Option<u64>,
}

impl Numbering {
    pub(super) fn new() -> Self {
        Self {
            came: 0,
            highest: None,
            first: 0,
            own: false,
            last: None,
            lost: 0,
            lost_first: 0,
            closed: false,
            recent: vec![None; RECENT],
            told_to: None,
        }
    }

    /// The number with these low bits that is nearest to those that came.
    pub(super) fn unfold(&self, low: u32) -> u64 {
        let near = self.highest.unwrap_or(0);
        let ahead = i64::from(low.wrapping_sub(near as u32).cast_signed());
        near.checked_add_signed(ahead).unwrap_or(low.into())
    }

    /// A reply of this number came in time for a probe that is still to be decided.
    pub(super) fn enter(&mut self, number: u64, far: u64) {
        self.recent[far as usize % RECENT] = Some((far, number));
    }

    /// The probe whose reply had the number that telemetry is about. Of those before it nothing will be told.
    pub(super) fn told(&mut self, far: u64) -> Option<u64> {
        self.own = true;
        self.told_to = self.told_to.max(Some(far));
        let (entered, number) = self.recent[far as usize % RECENT]?;
        (entered == far).then_some(number)
    }

    /// Whether telemetry about this reply may still come.
    pub(super) fn may_be_told(&self, far: u64) -> bool {
        self.told_to < Some(far)
    }

    /// A probe was decided and has a reply; `lost` probes were lost before it.
    pub(super) fn replied(&mut self, number: u64, far: u64, lost: u64) {
        if self.closed {
            return;
        }
        if self.last.is_none() && far > number + BEGINNING {
            (self.first, self.lost_first) = (far, lost);
        }
        (self.last, self.lost) = (Some(number), lost);
        self.count(number, far);
    }

    /// A reply came for a probe that was decided as lost; `after` ones after it were lost, `lost` now in all.
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

    /// A probe was doubled on the way there: its second reply has a number of its own.
    pub(super) fn doubled(&mut self, number: u64, far: u64) {
        if self.last.is_some() && !self.closed {
            self.count(number, far);
        }
    }

    fn count(&mut self, number: u64, far: u64) {
        self.own |= far as u32 != number as u32;
        self.came += 1;
        self.highest = self.highest.max(Some(far));
    }

    /// Probes in flight are given up: whether their replies left is not known.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// On which way as many probes were lost as there are. What came after the last reply is not known, and
    /// nothing is where the numbers do not fit the losses.
    pub(super) fn ways(&self, lost: u64) -> LostWays {
        let unknown = LostWays { there: 0, back: 0, unknown: lost };
        let Some(highest) = self.highest.filter(|_| self.own) else { return unknown };
        let known = self.lost.min(lost).saturating_sub(self.lost_first);
        let missing = (highest + 1).saturating_sub(self.first).checked_sub(self.came);
        let Some(back) = missing.filter(|missing| *missing <= known) else { return unknown };
        LostWays { there: known - back, back, unknown: lost - known }
    }
}
