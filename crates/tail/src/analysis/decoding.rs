//! A capture on its own, packet by packet: what an engine matches when no one machine holds both sides.
//!
//! Whatever depends on the order of the records in the file is decided here, where that order is known:
//! engines see sets. Two captures are merged by the running maxima of their stamps: of two sequences that
//! are merged by comparing their heads, an element comes before one of the other exactly when its running
//! maximum is smaller, also where the sequences do not ascend.

use super::Options;
use super::burst::{self, Position};
use super::era::Era;
use super::gaps::{Gaps, Recent};
use super::tap::Tap;
use super::terms::{common_bytes, signer};
use crate::capture::{CaptureError, CaptureReader, Encapsulations, Record};
use crate::signature::{Signature, Signer};
use crate::summary;
use serde::{Deserialize, Serialize};
use tailtrim_wire::label::Label;

/// A packet of a decoded capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Its place among the stamped packets of the capture, from 0.
    pub index: i64,
    /// When it passed the tap, ns of the capture's clock.
    pub stamp_ns: i64,
    /// The largest stamp so far: packets of two captures are merged in this order.
    pub order_ns: i64,
    /// By how much it came after the packet before it in the capture; 0 for the first.
    pub gap_ns: i64,
    /// Its signature.
    pub signature: Signature,
    /// Bytes on the wire, without FCS.
    pub length: u32,
    /// Its place in its burst, from 0; 0 where the traffic has no bursts.
    pub position: u16,
    /// Too far out of order for its gaps to be counted.
    pub misplaced: bool,
    /// Its label: flow and sequence number, where it carries them.
    pub label: Label,
}

/// Facts of a decoded capture besides its packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The tap's part of the summary.
    pub tap: summary::Tap,
    /// Packets in the capture.
    pub packets: u64,
    /// Those without a stamp, which are not decoded.
    pub unstamped: u64,
    /// Those with encapsulations, by which; a packet can have several.
    #[serde(default, skip_serializing_if = "Encapsulations::is_empty")]
    pub encapsulations: Encapsulations,
    /// The first stamp in the file.
    pub origin_ns: Option<i64>,
    /// The largest gap within a burst, where the traffic has bursts.
    pub burst_gap_ns: Option<i64>,
    /// The stamps wrap every 2^32 ns.
    pub wraps: bool,
}

/// Where a decoding stands between two files of one capture, so that it can go on with the next one, in
/// another process too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Facts of the files so far.
    facts: Facts,
    places: Recent,
    position: Option<Position>,
    last_ns: Option<i64>,
    index: i64,
    /// Bytes after the L2 header that are signed.
    signed: usize,
}

/// The first packet of a file, which tells it from other files of a capture, whatever they are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct First {
    /// Its stamp, ns of the capture's clock.
    pub stamp_ns: i64,
    /// Bytes on the wire, without FCS.
    pub length: u32,
    /// The signature of all bytes that can be signed.
    pub signature: Signature,
}

impl First {
    fn of(record: &Record) -> Self {
        let Record { stamp_ns, length, signature, .. } = *record;
        Self { stamp_ns, length, signature }
    }
}

/// A capture being decoded.
pub struct Decoding {
    /// Facts of the files before this one.
    before: Option<Facts>,
    tap: Tap<Box<CaptureReader>>,
    signer: Signer,
    signable: usize,
    first: Option<First>,
    /// Tells which frames are misplaced.
    places: Gaps,
    position: Option<Position>,
    order_ns: i64,
    /// The stamp of the packet before; `None` before the first.
    last_ns: Option<i64>,
    index: i64,
    origin_ns: Option<i64>,
    burst_gap_ns: Option<i64>,
    wraps: bool,
}

impl Decoding {
    /// Looks at the first records. Of `options` only what makes the signature counts.
    ///
    /// # Errors
    /// [`CaptureError`] of a source that gives nothing.
    pub fn new(mut capture: Box<CaptureReader>, options: &Options) -> Result<Self, CaptureError> {
        let signer = signer(options);
        capture.take_labels();
        let first = capture.peek(&signer)?;
        let era = Era::of(&first);
        let stamps: Vec<i64> = era.stamps(&first).collect();
        let burst_gap_ns = burst::threshold_ns(&stamps);
        let wraps = capture.wraps();
        Ok(Self {
            before: None,
            tap: Tap::new(capture, 0, 0, era),
            signer,
            signable: common_bytes(&first),
            first: first.first().map(First::of),
            places: Gaps::new(),
            position: burst_gap_ns.map(Position::new),
            order_ns: i64::MIN,
            last_ns: None,
            index: 0,
            origin_ns: stamps.first().copied(),
            burst_gap_ns,
            wraps,
        })
    }

    /// Goes on with the next file of a capture that was written to several.
    ///
    /// # Errors
    /// [`CaptureError`] of a source that gives nothing.
    pub fn resume(
        capture: Box<CaptureReader>,
        options: &Options,
        checkpoint: Checkpoint,
    ) -> Result<Self, CaptureError> {
        let Checkpoint { facts, places, position, last_ns, index, signed } = checkpoint;
        let mut next = Self::new(capture, options)?.limit_to(signed);
        // Burst or not was settled when the first packets were seen.
        if index > 0 {
            (next.origin_ns, next.burst_gap_ns) = (facts.origin_ns, facts.burst_gap_ns);
            (next.position, next.wraps) = (position, facts.wraps);
        }
        if let Some(largest_ns) = facts.tap.last_ns {
            next.tap.last_ns = largest_ns;
            next.order_ns = largest_ns;
        }
        (next.places, next.last_ns, next.index) = (Gaps::resume(&places), last_ns, index);
        next.before = Some(facts);
        Ok(next)
    }

    /// Where this stands, at the end of a file.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            facts: self.facts(),
            places: self.places.recent(),
            position: self.position.clone(),
            last_ns: self.last_ns,
            index: self.index,
            signed: self.signable,
        }
    }

    /// The first packet of this file.
    #[must_use]
    pub fn first(&self) -> Option<First> {
        self.first
    }

    /// Bytes after the L2 header that the frames have. Captures that are to match must all be
    /// [limited](Self::limit_to) to what the shortest of them has.
    #[must_use]
    pub fn signable(&self) -> usize {
        self.signable
    }

    /// Signs at most so many bytes after the L2 header. To be called before the first packet is read.
    #[must_use]
    pub fn limit_to(self, bytes: usize) -> Self {
        Self { signer: self.signer.limited_to(bytes), signable: bytes, ..self }
    }

    /// Adds the next packets to `packets`; `false` at the end of the capture.
    ///
    /// # Errors
    /// [`CaptureError`] at the first damage of a capture that is not salvaged.
    pub fn read(&mut self, packets: &mut Vec<Packet>) -> Result<bool, CaptureError> {
        self.tap.refill(&self.signer, i64::MIN)?;
        let (records, left_out) = (self.tap.ahead(), self.tap.left_out());
        let labels = self.tap.source.labels();
        debug_assert_eq!(
            records.len() + left_out.len(),
            labels.len(),
            "every stamped record has a label"
        );
        let kept = labels.iter().enumerate().filter(|(at, _)| left_out.binary_search(at).is_err());
        for (record, (_, &label)) in records.iter().zip(kept) {
            let before = self.places.misplaced();
            self.places.record(record.stamp_ns, i64::MIN);
            self.order_ns = self.order_ns.max(record.stamp_ns);
            let &Record { stamp_ns, signature, length, .. } = record;
            packets.push(Packet {
                index: self.index,
                stamp_ns,
                order_ns: self.order_ns,
                gap_ns: self.last_ns.map_or(0, |last_ns| stamp_ns.saturating_sub(last_ns)),
                signature,
                length,
                position: self.position.as_mut().map_or(0, |position| position.next(stamp_ns)),
                misplaced: self.places.misplaced() > before,
                label,
            });
            self.last_ns = Some(stamp_ns);
            self.index += 1;
        }
        self.tap.next += records.len();
        Ok(!self.tap.is_ended())
    }

    /// Bytes of the (decompressed) capture that are done with.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.tap.source.offset()
    }

    /// Facts of the capture besides its packets, complete at its end.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let file = Facts {
            tap: summary::Tap { misplaced: self.places.misplaced(), ..self.tap.facts() },
            packets: self.tap.packets,
            unstamped: self.tap.unstamped,
            encapsulations: self.tap.source.encapsulations(),
            origin_ns: self.origin_ns,
            burst_gap_ns: self.burst_gap_ns,
            wraps: self.wraps,
        };
        match &self.before {
            Some(before) => before.and(file),
            None => file,
        }
    }
}

impl Facts {
    /// Joins the facts of two successive files of one capture.
    fn and(&self, next: Self) -> Self {
        let mut encapsulations = self.encapsulations.clone();
        for (encapsulation, packets) in next.encapsulations {
            *encapsulations.entry(encapsulation).or_default() += packets;
        }
        let (before, after) = (&self.tap, next.tap);
        let tap = summary::Tap {
            first_ns: before.first_ns.into_iter().chain(after.first_ns).min(),
            last_ns: before.last_ns.max(after.last_ns),
            bytes: before.bytes + after.bytes,
            cut_frames: before.cut_frames + after.cut_frames,
            short_signatures: before.short_signatures + after.short_signatures,
            out_of_order: before.out_of_order + after.out_of_order,
            tap_drops: before
                .tap_drops
                .zip(after.tap_drops)
                .map(|(before, after)| before + after)
                .or(before.tap_drops)
                .or(after.tap_drops),
            damage: after.damage.or_else(|| before.damage.clone()),
            odd_stamp: before.odd_stamp.or(after.odd_stamp.map(|odd| odd.behind(self.packets))),
            unread: before.unread.iter().cloned().chain(after.unread).collect(),
            ..after
        };
        Self {
            tap,
            packets: self.packets + next.packets,
            unstamped: self.unstamped + next.unstamped,
            encapsulations,
            ..next
        }
    }
}
