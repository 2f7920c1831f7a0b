//! Settings that the first records of two captures determine for all that follow.

use super::copies::{self, Copies};
use super::era::Era;
use super::outcomes::lost_from_ns;
use super::{Options, Source, burst};
use crate::capture::{CaptureError, Record, WRAP_NS};
use crate::clock::{ClockFit, CorrectionPiece, corrected};
use crate::signature::{SIGNED_BYTES, Signer};
use std::collections::HashMap;

/// Settings from the first records: the signer, the origin of time, and the shift between the captures.
#[derive(Debug, Clone)]
pub struct Terms {
    pub(super) signer: Signer,
    /// Time from which seconds are counted.
    pub(super) origin_ns: i64,
    /// Added to each egress stamp.
    pub(super) shift_ns: i64,
    /// The largest gap within a burst, where the traffic has bursts.
    pub(super) burst_gap_ns: Option<i64>,
    /// Time of the stamps of ingress and egress.
    pub(super) eras: [Era; 2],
    /// Time within which an ingress frame of the same signature is a copy of a mirror port.
    pub(super) copies_within_ns: Option<i64>,
    /// Frames are matched in their order.
    pub(super) in_order: bool,
    /// Packets that entered before this may have left before the egress capture began.
    pub(super) lost_from_ns: i64,
    /// Some of the first packets left before they entered.
    pub(super) early: bool,
    /// Signatures of the first packets come again and again.
    pub(super) repeated: bool,
}

impl Terms {
    /// Looks at the first records.
    ///
    /// # Errors
    /// [`CaptureError`] of a source that gives nothing.
    pub fn of<P: Source + ?Sized>(
        ingress: &mut P,
        egress: &mut P,
        options: &Options,
    ) -> Result<Self, CaptureError> {
        let signer = signer(options);
        let ClockFit { ingress: entered, egress: left, .. } = &options.clock_fit;
        let first = correct(ingress.peek(&signer)?, entered);
        let second = correct(egress.peek(&signer)?, left);
        let signer = signer.limited_to(common_bytes(&first).min(common_bytes(&second)));
        let eras = [Era::of(&first), Era::of(&second)];
        let copies_within_ns = options
            .copies_within_ns
            .or_else(|| copies::within_ns(&first, &second, || ingress.peek_forms()));
        let mut stamped: Vec<Record> =
            first.iter().filter(|record| record.stamped).copied().collect();
        if let Some(within_ns) = copies_within_ns {
            Copies::new(within_ns).leave_out(&mut stamped);
        }
        let stamps: Vec<i64> = eras[0].stamps(&stamped).collect();
        let first_egress = eras[1].stamps(&second).next();
        let origin_ns = stamps.first().copied().or(first_egress).unwrap_or(0);
        let shift_ns = if ingress.wraps() && egress.wraps() {
            unwrap_shift(origin_ns, first_egress.unwrap_or(origin_ns))
        } else {
            0
        };
        let shift_ns = shift_ns.saturating_sub(options.correction_ns);
        let begun_ns = first_egress.map(|stamp_ns| stamp_ns.saturating_add(shift_ns));
        let lost_from_ns = lost_from_ns(options, origin_ns, begun_ns);
        let burst_gap_ns = burst::threshold_ns(&stamps);
        let in_order = options.in_order;
        let (early, repeated) = early_and_repeated(&stamped, &second, shift_ns);
        Ok(Self {
            signer,
            origin_ns,
            shift_ns,
            burst_gap_ns,
            eras,
            copies_within_ns,
            in_order,
            lost_from_ns,
            early,
            repeated,
        })
    }

    /// Signs the packets of both sides.
    #[must_use]
    pub fn signer(&self) -> &Signer {
        &self.signer
    }

    /// When the first packet entered.
    #[must_use]
    pub fn origin_ns(&self) -> i64 {
        self.origin_ns
    }

    /// Whether any stretch of the captures can be matched on its own.
    #[must_use]
    pub fn allow_stretches(&self) -> bool {
        self.copies_within_ns.is_none() && !self.in_order
    }

    /// To be added to the egress stamps.
    #[must_use]
    pub fn shift_ns(&self) -> i64 {
        self.shift_ns
    }
}

/// The first records of a capture, with stamps of a clock that is corrected.
fn correct(mut records: Vec<Record>, clock: &[CorrectionPiece]) -> Vec<Record> {
    for (record, packet) in records.iter_mut().zip(1..) {
        record.stamp_ns = corrected(clock, packet, record.stamp_ns);
    }
    records
}

/// Whether some of these packets left before they entered, and whether most come again.
fn early_and_repeated(first: &[Record], second: &[Record], shift_ns: i64) -> (bool, bool) {
    let entered: HashMap<_, _> =
        first.iter().map(|record| (record.signature, record.stamp_ns)).collect();
    let early = second.iter().filter(|record| record.stamped).any(|record| {
        let left_ns = record.stamp_ns.saturating_add(shift_ns);
        entered.get(&record.signature).is_some_and(|entered_ns| left_ns < *entered_ns)
    });
    (early, entered.len() * 2 < first.len())
}

/// Signer of the options, before any capture is read.
pub(crate) fn signer(options: &Options) -> Signer {
    match &options.selection {
        Some(selection) => Signer::of_selection(selection.clone()),
        None => Signer::new(options.rewrites),
    }
}

/// Bytes after the L2 header that every one of these frames has, as far as the snap length cut any.
pub(super) fn common_bytes(records: &[Record]) -> usize {
    records
        .iter()
        .filter(|record| record.cut)
        .map(|record| usize::from(record.signable))
        .min()
        .unwrap_or(SIGNED_BYTES)
}

/// Multiples of [`WRAP_NS`] that bring the first egress stamp next to the first ingress stamp.
pub(super) fn unwrap_shift(ingress_ns: i64, egress_ns: i64) -> i64 {
    let apart = ingress_ns.saturating_sub(egress_ns);
    apart.saturating_add(WRAP_NS / 2).div_euclid(WRAP_NS).saturating_mul(WRAP_NS)
}
