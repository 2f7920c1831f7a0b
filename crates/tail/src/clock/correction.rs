//! Corrections of the clocks of two taps.

use serde::Serialize;

/// Parts that slopes are counted in: 10⁻¹².
const TRILLION: i128 = 1_000_000_000_000;

/// Correction of a clock from one packet on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CorrectionPiece {
    /// The first packet in its capture, from 1.
    pub packet: u64,
    /// Its stamp as captured.
    pub from_ns: i64,
    /// Taken off that stamp.
    pub offset_ns: i64,
    /// Taken off more for each second since then, in 10⁻¹² s.
    pub rate_ppt: i64,
}

impl CorrectionPiece {
    fn corrected(&self, stamp_ns: i64) -> i64 {
        let since_ns = i128::from(stamp_ns) - i128::from(self.from_ns);
        let drifted_ns = (since_ns * i128::from(self.rate_ppt)).div_euclid(TRILLION);
        let corrected_ns = i128::from(stamp_ns) - i128::from(self.offset_ns) - drifted_ns;
        i64::try_from(corrected_ns).unwrap_or(stamp_ns)
    }
}

/// Corrections of the clocks of both taps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClockFit {
    /// Pieces of the ingress clock, in order; as captured before the first of them.
    pub ingress: Vec<CorrectionPiece>,
    /// Pieces of the egress clock.
    pub egress: Vec<CorrectionPiece>,
    /// Latencies may be wrong by so much against that of the fastest packets.
    pub bound_ns: i64,
    /// Whether the fastest packets keep the latency that they have at first; otherwise they have none, or that of
    /// [both directions](Self::fastest_ns).
    pub level_kept: bool,
    /// Latency that the fastest packets of both directions are taken to have where they cannot have what they have at
    /// first: half of what they take together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastest_ns: Option<i64>,
}

impl ClockFit {
    /// Whether it changes any stamp.
    #[must_use]
    pub fn corrects(&self) -> bool {
        !self.ingress.is_empty() || !self.egress.is_empty()
    }
}

/// The stamp of a packet, corrected.
#[must_use]
pub fn corrected(pieces: &[CorrectionPiece], packet: u64, stamp_ns: i64) -> i64 {
    let begun = pieces.partition_point(|piece| piece.packet <= packet);
    let piece = begun.checked_sub(1).and_then(|last| pieces.get(last));
    piece.map_or(stamp_ns, |piece| piece.corrected(stamp_ns))
}
