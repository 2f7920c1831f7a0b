//! One captured frame, reduced to what matching needs.

use crate::signature::Signature;

/// A frame of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When the frame passed the tap, in nanoseconds of the capture's clock. `i64` spans 292 years
    /// around the epoch. Meaningless when not [`stamped`](Self::stamped).
    pub stamp_ns: i64,
    /// Signature of the frame, the same on both sides.
    pub signature: Signature,
    /// Bytes on the wire from the L2 header on, without FCS, whatever the snap length cut.
    pub length: u32,
    /// Bytes after the L2 header that were there to be signed.
    pub signable: u16,
    /// The capture holds fewer bytes of the frame than the wire carried.
    pub cut: bool,
    /// The frame has a stamp.
    pub stamped: bool,
}

impl Record {
    /// No record yet.
    pub(super) const BLANK: Self = Self {
        stamp_ns: 0,
        signature: Signature { high: 0, low: 0 },
        length: 0,
        signable: 0,
        cut: false,
        stamped: false,
    };
}
