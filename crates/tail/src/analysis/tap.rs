//! One side of the device under test: what its packets say apart from any matching.

use super::copies::Copies;
use super::era::Era;
use super::gaps::{self, Gaps, Recent};
use super::numbering::Numbering;
use super::seconds::{Load, SECOND_NS, second};
use super::{Passed, Source};
use crate::capture::{CaptureError, Record};
use crate::clock::{CorrectionPiece, corrected};
use crate::matching::DISORDER_NS;
use crate::signature::Signer;
use crate::summary::{self, OddStamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::DerefMut;
use tailtrim_stats::Histogram;

/// The read side of a tap: batches, their order in time and what was odd about them.
pub(super) struct Tap<C> {
    pub(super) source: C,
    batch: Vec<Record>,
    /// Bytes on the wire of the batch.
    batch_bytes: u64,
    /// The first record of the batch that is not merged yet.
    pub(super) next: usize,
    ended: bool,
    ordered: bool,
    /// Nothing that is to be read yet is stamped earlier, [as the source knows](Source::quiet_until_ns).
    quiet_until_ns: i64,
    /// Corrects each stamp before that.
    clock: Vec<CorrectionPiece>,
    /// Added to each stamp.
    shift_ns: i64,
    pub(super) packets: u64,
    pub(super) unstamped: u64,
    era: Era,
    odd_stamp: Option<OddStamp>,
    /// Numbers, among the stamped records of the batch, of those that are left out because of their stamps.
    left_out: Vec<usize>,
    pub(super) cut_frames: u64,
    pub(super) short_signatures: u64,
    pub(super) out_of_order: u64,
    /// The furthest that a stamp is before an earlier one.
    pub(super) furthest_back_ns: i64,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    pub(super) gaps: Gaps,
    /// Copies of a mirror port, where this is known to have some.
    copies: Option<Copies>,
    /// Numbers of frames that are matched in their order.
    numbering: Option<Numbering>,
    /// The unit of the stamps of sources before this one, in ps.
    unit_ps: u64,
    loads: BTreeMap<i64, Load>,
    /// The second being counted, and where it ends.
    load: Load,
    load_second: i64,
    load_end_ns: i64,
    origin_ns: i64,
    /// The source may have no end: gaps and loads are not counted.
    endless: bool,
}

/// Counts of a tap to the end of its source, as a value.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Counted {
    packets: u64,
    unstamped: u64,
    odd_stamp: Option<OddStamp>,
    cut_frames: u64,
    short_signatures: u64,
    out_of_order: u64,
    furthest_back_ns: i64,
    first_ns: i64,
    last_ns: i64,
    gaps: gaps::Counted,
    unit_ps: u64,
    loads: BTreeMap<i64, Load>,
}

impl<C: DerefMut<Target: Source>> Tap<C> {
    /// Closes the current second and copies the counts.
    pub(super) fn counted(&mut self) -> Counted {
        self.flush_load();
        Counted {
            packets: self.packets,
            unstamped: self.unstamped,
            odd_stamp: self.odd_stamp,
            cut_frames: self.cut_frames,
            short_signatures: self.short_signatures,
            out_of_order: self.out_of_order,
            furthest_back_ns: self.furthest_back_ns,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            gaps: self.gaps.counted(),
            unit_ps: self.unit_ps(),
            loads: self.loads.clone(),
        }
    }

    /// A tap at the end of a source, with what was counted elsewhere.
    pub(super) fn ended(
        source: C,
        shift_ns: i64,
        origin_ns: i64,
        era: Era,
        counted: Counted,
    ) -> Self {
        Self {
            ended: true,
            packets: counted.packets,
            unstamped: counted.unstamped,
            odd_stamp: counted.odd_stamp,
            cut_frames: counted.cut_frames,
            short_signatures: counted.short_signatures,
            out_of_order: counted.out_of_order,
            furthest_back_ns: counted.furthest_back_ns,
            first_ns: counted.first_ns,
            last_ns: counted.last_ns,
            gaps: Gaps::of(counted.gaps),
            unit_ps: counted.unit_ps,
            loads: counted.loads,
            ..Self::new(source, shift_ns, origin_ns, era)
        }
    }

    /// The same with a clock that is corrected, from the first packet of the source on.
    pub(super) fn corrected_by(self, clock: Vec<CorrectionPiece>) -> Self {
        Self { clock, ..self }
    }

    pub(super) fn new(source: C, shift_ns: i64, origin_ns: i64, era: Era) -> Self {
        Self {
            source,
            batch: Vec::new(),
            batch_bytes: 0,
            next: 0,
            ended: false,
            ordered: true,
            quiet_until_ns: i64::MIN,
            clock: Vec::new(),
            shift_ns,
            packets: 0,
            unstamped: 0,
            era,
            odd_stamp: None,
            left_out: Vec::new(),
            cut_frames: 0,
            short_signatures: 0,
            out_of_order: 0,
            furthest_back_ns: 0,
            first_ns: i64::MAX,
            last_ns: i64::MIN,
            gaps: Gaps::new(),
            copies: None,
            numbering: None,
            unit_ps: 0,
            loads: BTreeMap::new(),
            load: Load::default(),
            load_second: i64::MIN,
            load_end_ns: i64::MIN,
            origin_ns,
            endless: false,
        }
    }

    /// Leaves out copies of a mirror port that come within this time.
    pub(super) fn without_copies(self, within_ns: Option<i64>) -> Self {
        Self { copies: within_ns.map(Copies::new), ..self }
    }

    /// Numbers the frames of each signature.
    pub(super) fn in_order(self, in_order: bool) -> Self {
        Self { numbering: in_order.then(Numbering::default), ..self }
    }

    /// Counts nothing that grows with time.
    pub(super) fn endless(self, endless: bool) -> Self {
        Self { endless, ..self }
    }

    /// Frames so far.
    pub(super) fn passed(&self) -> Passed {
        Passed { packets: self.packets, unstamped: self.unstamped, copies: self.copies() }
    }

    /// Copies that were left out so far.
    pub(super) fn copies(&self) -> u64 {
        self.copies.as_ref().map_or(0, |copies| copies.count)
    }

    /// Frames that cannot be matched in their order, since there are too many different ones.
    pub(super) fn unnumbered(&self) -> u64 {
        self.numbering.as_ref().map_or(0, |numbering| numbering.unnumbered)
    }

    /// The stamped frames that were read and not merged yet; the caller moves `next` on.
    #[inline]
    pub(super) fn ahead(&self) -> &[Record] {
        self.batch.get(self.next..).unwrap_or_default()
    }

    /// No frame stamped before this is still to be merged, but for disorder.
    #[inline]
    pub(super) fn merged_until_ns(&self, window_ns: i64) -> i64 {
        match self.ahead().first() {
            Some(record) => record.stamp_ns,
            None if self.ended => i64::MAX,
            None => self.last_ns.max(self.quiet_until_ns.saturating_sub(window_ns)),
        }
    }

    /// The last stamp so far, or one that a tap is known to have watched to while nothing came for longer than the window:
    /// what a capture file of the same packets says, as long as no device is silent for so long.
    pub(super) fn watched_until_ns(&self, window_ns: i64) -> i64 {
        if self.last_ns == i64::MIN {
            return i64::MIN;
        }
        self.last_ns.max(self.quiet_until_ns.saturating_sub(window_ns))
    }

    /// No packet that is still to be read is stamped earlier, as the source knows.
    pub(super) fn quiet_until_ns(&self) -> i64 {
        self.quiet_until_ns
    }

    /// Whether the next packet of the other side, stamped then, comes before all that is still to be read here.
    #[inline]
    pub(super) fn lets_pass(&self, stamp_ns: i64) -> bool {
        self.ahead().is_empty() && (self.ended || stamp_ns < self.quiet_until_ns)
    }

    /// Whether no frames follow but those [`ahead`](Self::ahead).
    #[inline]
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Whether the stamps of the batch ascend.
    #[inline]
    pub(super) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// State that matters for the packets to come: the last gaps, uncounted, and the largest stamp.
    pub(super) fn checkpoint(&self) -> (Recent, i64) {
        (self.gaps.recent().uncounted(), self.last_ns)
    }

    /// Goes on with another source where this one ended.
    pub(super) fn go_on(&mut self, source: C) {
        self.source = source;
        self.ended = false;
    }

    /// Forgets what was counted, and goes on as if nothing had come before but what is
    /// [of importance](Self::checkpoint).
    /// Gaps are counted in `gaps`, which is empty.
    pub(super) fn start_anew(&mut self, source: C, gaps: Histogram) {
        let (recent, last_ns) = self.checkpoint();
        let new = Self::new(source, self.shift_ns, self.origin_ns, self.era);
        *self = Self { last_ns, gaps: Gaps::resume(&recent).counted_in(gaps), ..new };
    }

    /// Adds what was counted before, up to where this [started anew](Self::start_anew). Returns the memory of the gaps.
    pub(super) fn precede(&mut self, mut before: Self) -> Histogram {
        let odd_stamp = self.odd_stamp.map(|odd| odd.behind(before.packets));
        self.odd_stamp = before.odd_stamp.or(odd_stamp);
        self.packets += before.packets;
        self.unstamped += before.unstamped;
        self.cut_frames += before.cut_frames;
        self.short_signatures += before.short_signatures;
        self.out_of_order += before.out_of_order;
        self.furthest_back_ns = self.furthest_back_ns.max(before.furthest_back_ns);
        self.first_ns = self.first_ns.min(before.first_ns);
        self.unit_ps = self.unit_ps.max(before.unit_ps());
        before.flush_load();
        let gaps = self.gaps.precede(before.gaps);
        for (second, load) in before.loads {
            let sum = self.loads.entry(second).or_default();
            sum.packets += load.packets;
            sum.bytes += load.bytes;
        }
        gaps
    }

    /// Accounts for the batch, which must be merged, and reads the next one. Gaps count once they begin
    /// after `after_ns`.
    ///
    /// The account comes this late because matching the batch may tell where the trim ends.
    pub(super) fn refill(&mut self, signer: &Signer, after_ns: i64) -> Result<(), CaptureError> {
        self.account(after_ns);
        self.next = 0;
        self.left_out.clear();
        if !self.source.read(signer, &mut self.batch)? {
            self.ended = true;
            return Ok(());
        }
        self.quiet_until_ns = self.source.quiet_until_ns().saturating_add(self.shift_ns);
        self.packets += self.batch.len() as u64;
        let mut last_ns = self.last_ns;
        let mut odd = self.shift_ns != 0 || !self.clock.is_empty();
        self.batch_bytes = 0;
        for record in &self.batch {
            // Backwards, or far ahead: one comparison tells both.
            let step_ns = record.stamp_ns.wrapping_sub(last_ns).cast_unsigned();
            odd |= (step_ns >= DISORDER_NS.cast_unsigned()) | record.cut | !record.stamped;
            last_ns = record.stamp_ns;
            self.batch_bytes += u64::from(record.length);
        }
        let out_of_order = self.out_of_order;
        if odd {
            last_ns = self.sort_out(signer)?;
        } else if let Some(first) = self.batch.first() {
            self.first_ns = self.first_ns.min(first.stamp_ns);
        }
        if let Some(copies) = &mut self.copies {
            copies.leave_out(&mut self.batch);
            self.batch_bytes = self.batch.iter().map(|record| u64::from(record.length)).sum();
        }
        if let Some(numbering) = &mut self.numbering {
            numbering.number(&mut self.batch);
        }
        self.ordered = self.out_of_order == out_of_order;
        self.last_ns = last_ns;
        Ok(())
    }

    /// Counts what is odd about the batch, and keeps what can be matched.
    #[cold]
    fn sort_out(&mut self, signer: &Signer) -> Result<i64, CaptureError> {
        let before = self.packets - self.batch.len() as u64;
        for (record, packet) in self.batch.iter_mut().zip(before + 1..) {
            record.stamp_ns = corrected(&self.clock, packet, record.stamp_ns);
        }
        self.leave_out(signer);
        let mut last_ns = self.last_ns;
        for (record, packet) in self.batch.iter_mut().zip(before + 1..) {
            self.cut_frames += u64::from(record.cut);
            self.short_signatures += u64::from(signer.is_short(record.cut, record.signable));
            if !record.stamped {
                self.unstamped += 1;
                continue;
            }
            record.stamp_ns = record.stamp_ns.saturating_add(self.shift_ns);
            let back_ns = last_ns.saturating_sub(record.stamp_ns);
            if last_ns != i64::MIN && back_ns >= DISORDER_NS {
                let path = self.source.name().to_owned();
                return Err(CaptureError::Disorder { path, packet, back_ns });
            }
            self.out_of_order += u64::from(record.stamp_ns < last_ns);
            self.furthest_back_ns = self.furthest_back_ns.max(back_ns);
            last_ns = last_ns.max(record.stamp_ns);
            self.first_ns = self.first_ns.min(record.stamp_ns);
        }
        self.batch.retain(|record| record.stamped);
        self.batch_bytes = self.batch.iter().map(|record| u64::from(record.length)).sum();
        Ok(last_ns)
    }

    /// Takes the stamps from records that are far from their neighbours, or from all others.
    fn leave_out(&mut self, signer: &Signer) {
        let before = self.packets - self.batch.len() as u64;
        let read = self.last_ns != i64::MIN;
        let last_ns = read.then(|| self.last_ns.saturating_sub(self.shift_ns));
        let (source, clock, behind) = (&mut self.source, &self.clock, self.packets + 1..);
        self.era.leave_out(
            &mut self.batch,
            last_ns,
            || {
                let next = source.next_stamps(signer).into_iter().zip(behind.clone());
                next.map(|(stamp_ns, packet)| corrected(clock, packet, stamp_ns)).collect()
            },
            |stamped, at, stamp_ns| {
                self.left_out.push(stamped);
                let packet = before + at as u64 + 1;
                self.odd_stamp.get_or_insert(OddStamp { packet, stamp_ns });
            },
        );
    }

    /// Numbers, among the records that the source gave with a stamp, of those left out of [`ahead`](Self::ahead)
    /// since the last [`refill`](Self::refill).
    pub(super) fn left_out(&self) -> &[usize] {
        &self.left_out
    }

    fn account(&mut self, after_ns: i64) {
        if self.endless {
            if let Some(record) = self.batch.last() {
                self.era = self.era.around(record.stamp_ns);
            }
            self.batch.clear();
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        if self.ordered {
            self.gaps.record_ordered(&batch, after_ns);
        } else {
            for record in &batch {
                self.gaps.record(record.stamp_ns, after_ns);
            }
        }
        match (batch.first(), batch.last()) {
            (Some(first), Some(last))
                if self.ordered
                    && self.is_this_second(first.stamp_ns)
                    && self.is_this_second(last.stamp_ns) =>
            {
                self.load.packets += batch.len() as u64;
                self.load.bytes += self.batch_bytes;
            }
            _ => self.account_load(&batch),
        }
        self.batch = batch;
        self.batch.clear();
    }

    /// Counts frames that do not all lie in the second being counted.
    #[cold]
    fn account_load(&mut self, batch: &[Record]) {
        for record in batch {
            if !self.is_this_second(record.stamp_ns) {
                self.change_second(record.stamp_ns);
            }
            self.load.packets += 1;
            self.load.bytes += u64::from(record.length);
        }
    }

    #[inline]
    fn is_this_second(&self, stamp_ns: i64) -> bool {
        self.load_end_ns.saturating_sub(SECOND_NS) <= stamp_ns && stamp_ns < self.load_end_ns
    }

    #[cold]
    fn change_second(&mut self, stamp_ns: i64) {
        self.flush_load();
        self.load_second = second(stamp_ns, self.origin_ns);
        self.load_end_ns =
            self.origin_ns.saturating_add((self.load_second + 1).saturating_mul(SECOND_NS));
    }

    fn flush_load(&mut self) {
        if self.load.packets > 0 {
            let load = self.loads.entry(self.load_second).or_default();
            load.packets += self.load.packets;
            load.bytes += self.load.bytes;
            self.load = Load::default();
        }
    }

    /// Facts of the packets at this tap, apart from any matching.
    pub(super) fn facts(&self) -> summary::Tap {
        let stamped = self.first_ns <= self.last_ns;
        summary::Tap {
            capture: self.source.name().to_owned(),
            first_ns: stamped.then_some(self.first_ns),
            last_ns: stamped.then_some(self.last_ns),
            bytes: self.bytes(),
            cut_frames: self.cut_frames,
            short_signatures: self.short_signatures,
            out_of_order: self.out_of_order,
            misplaced: self.gaps.misplaced(),
            tap_drops: self.source.tap_drops(),
            odd_stamp: self.odd_stamp,
            unread: self.source.unread(),
            unit_ps: self.unit_ps(),
            damage: self.source.damage().map(ToString::to_string),
        }
    }

    fn unit_ps(&self) -> u64 {
        self.unit_ps.max(self.source.unit_ps())
    }

    /// Bytes on the wire so far, without FCS.
    fn bytes(&self) -> u64 {
        self.loads.values().map(|load| load.bytes).sum::<u64>() + self.load.bytes
    }

    /// Frames and bytes by second since the origin.
    pub(super) fn loads(&mut self) -> &BTreeMap<i64, Load> {
        self.flush_load();
        &self.loads
    }
}
