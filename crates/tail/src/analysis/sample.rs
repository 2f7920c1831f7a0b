//! Samples, and who takes them.

use super::outcomes::{Outcome, Tally};
use crate::matching::Pair;
use crate::signature::Signature;
use serde::{Deserialize, Serialize};

/// A matched packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When it entered the device under test, in ns of the ingress capture's clock.
    pub ingress_ns: i64,
    /// When it left, in ns of the egress capture's clock.
    pub egress_ns: i64,
    /// Signature of the packet.
    pub signature: Signature,
}

impl Sample {
    pub(super) fn of(pair: &Pair) -> Self {
        let &Pair { ingress_ns, egress_ns, signature, tag: _ } = pair;
        Self { ingress_ns, egress_ns, signature }
    }

    /// Time spent in the device under test; negative when the taps' clocks disagree.
    #[must_use]
    pub fn latency_ns(&self) -> i64 {
        self.egress_ns - self.ingress_ns
    }
}

/// Frames at a tap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// All.
    pub packets: u64,
    /// Packets without a stamp: they can have no other outcome.
    pub unstamped: u64,
    /// Copies of a mirror port, of which only the first counts.
    pub copies: u64,
}

/// Takes the samples one by one, in the order in which they left the device under test.
pub trait Sink {
    /// Called for every sample that is not trimmed. An error ends the analysis.
    ///
    /// # Errors
    /// What keeps the sink from taking it.
    fn sample(&mut self, sample: &Sample) -> std::io::Result<()>;

    /// Called now and then with the time of which all packets are known, in ns of the captures, and with what became of
    /// those in no pair. The time is `i64::MIN` before the first packets and `i64::MAX` at the end. Lost packets that are
    /// still remembered are not among them: `overdue` counts these, which takes some 20 µs.
    fn decided(&mut self, _now_ns: i64, _: &Tally, _overdue: &dyn Fn() -> u64) {}

    /// Called for packets in no pair that are not trimmed, once their outcome is decided: so many that were stamped then.
    fn unpaired(&mut self, _: Outcome, _stamp_ns: i64, _packets: u64) {}

    /// Called before [`decided`](Self::decided), and at the end, with the frames so far, of ingress and egress.
    fn passed(&mut self, _: [Passed; 2]) {}

    /// Forgets all samples, since they are found again. Returns `false` if it cannot.
    ///
    /// # Errors
    /// The error of the sink.
    fn start_again(&mut self) -> std::io::Result<bool> {
        Ok(false)
    }

    /// Whether it has to be told in order what was decided between two samples: then all is matched in one piece, on the
    /// thread that has the sink.
    fn follows(&self) -> bool {
        false
    }

    /// Whether it does anything with samples: if not, nothing need be done to hand them over.
    fn takes_samples(&self) -> bool {
        true
    }
}

/// Takes nothing.
impl Sink for () {
    #[inline]
    fn sample(&mut self, _: &Sample) -> std::io::Result<()> {
        Ok(())
    }

    fn start_again(&mut self) -> std::io::Result<bool> {
        Ok(true)
    }

    fn takes_samples(&self) -> bool {
        false
    }
}
