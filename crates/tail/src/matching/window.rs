//! The rules of matching: what two packets of one signature are to each other. Every matcher asks here.

use super::Fate;
use serde::{Deserialize, Serialize};

/// The largest distance between the two stamps of a packet, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// A packet matches when it leaves less than this after it entered.
    pub window_ns: i64,
    /// A packet matches when its egress stamp is less than this before its ingress stamp; not negative.
    pub early_ns: i64,
}

impl Default for Window {
    /// 5 s as in the papers, and 1 s of clock disagreement.
    fn default() -> Self {
        Self { window_ns: 5_000_000_000, early_ns: 1_000_000_000 }
    }
}

/// Relation of an ingress and an egress packet of one signature, given by the latency between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It left too long before: they are different packets.
    TooEarly,
    /// They are one packet.
    Matched,
    /// They are one packet that took longer than the window, but less than twice as long.
    Beyond,
    /// It left too long after: they are different packets.
    Outside,
}

/// State of an ingress packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    /// In flight.
    Open,
    /// Left within the window.
    Matched,
    /// Not to be told from another one of its signature.
    Ambiguous,
    /// Left after the window, or given up.
    Beyond,
}

impl State {
    /// Whether an egress packet, or another ingress packet of its signature, may still decide its fate.
    #[inline]
    pub(super) fn is_undecided(self) -> bool {
        matches!(self, Self::Open | Self::Ambiguous)
    }
}

/// Consequences of a signature that enters again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entering {
    /// State of the earlier packet from now on.
    pub(super) earlier: State,
    /// The fate of the earlier packet, if this decides it.
    pub(super) decided: Option<Fate>,
    /// The later packet is a duplicate.
    pub(super) ambiguous: bool,
}

/// Consequences of a packet that leaves and whose signature has entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The ingress packet has left.
    Pair,
    /// The ingress packet left after the window; the egress packet is unmatched.
    Beyond,
    /// The egress packet's fate is decided, the ingress packet stays what it was.
    Decided(Fate),
    /// The ingress packet does not explain the egress packet.
    Unexplained,
}

impl Window {
    /// The latencies, in ns, from which on the relation is [`Matched`](Relation::Matched),
    /// [`Beyond`](Relation::Beyond) and [`Outside`](Relation::Outside).
    #[inline]
    #[must_use]
    pub fn bounds_ns(self) -> [i64; 3] {
        [1 - self.early_ns, self.window_ns, self.window_ns.saturating_mul(2)]
    }

    /// The relation of two packets of one signature of which one left `latency_ns` after the other entered.
    #[inline]
    #[must_use]
    pub fn relation(self, latency_ns: i64) -> Relation {
        let [matched_ns, beyond_ns, outside_ns] = self.bounds_ns();
        if self.matches(latency_ns) {
            Relation::Matched
        } else if latency_ns < matched_ns {
            Relation::TooEarly
        } else if beyond_ns <= latency_ns && latency_ns < outside_ns {
            Relation::Beyond
        } else {
            Relation::Outside
        }
    }

    /// Whether the relation is [`Matched`](Relation::Matched), for the path of nearly all packets.
    #[inline]
    #[must_use]
    pub(crate) fn matches(self, latency_ns: i64) -> bool {
        let [matched_ns, beyond_ns, _] = self.bounds_ns();
        matched_ns <= latency_ns && latency_ns < beyond_ns
    }

    /// A signature enters again, `gap_ns` after the last packet that carried it.
    pub(super) fn entering(self, earlier: State, gap_ns: i64) -> Entering {
        let was_open = earlier == State::Open;
        if !earlier.is_undecided() {
            Entering { earlier, decided: None, ambiguous: false }
        } else if gap_ns < self.window_ns {
            let decided = was_open.then_some(Fate::Duplicate);
            Entering { earlier: State::Ambiguous, decided, ambiguous: true }
        } else {
            let decided = was_open.then_some(Fate::Lost);
            Entering { earlier: State::Beyond, decided, ambiguous: false }
        }
    }

    /// A packet leaves `latency_ns` after the last one of its signature entered. `is_remembered` tells
    /// whether that one still counts as the original of copies.
    pub(super) fn leaving(
        self,
        entered: State,
        latency_ns: i64,
        is_remembered: impl Fn() -> bool,
    ) -> Leaving {
        match (entered, self.relation(latency_ns)) {
            (State::Open, Relation::Matched) => Leaving::Pair,
            (State::Open, Relation::Beyond) => Leaving::Beyond,
            (State::Matched, Relation::TooEarly | Relation::Matched) if is_remembered() => {
                Leaving::Decided(if latency_ns >= 0 { Fate::Copy } else { Fate::Unmatched })
            }
            (State::Ambiguous, Relation::TooEarly | Relation::Matched) => {
                Leaving::Decided(Fate::Unmatched)
            }
            _ => Leaving::Unexplained,
        }
    }

    /// Whether an egress packet that nothing explains keeps waiting when another one of its signature
    /// leaves `gap_ns` later. If not, what enters from then on is too far behind it.
    pub(super) fn keeps_waiting(self, gap_ns: i64) -> bool {
        gap_ns < self.early_ns
    }
}
