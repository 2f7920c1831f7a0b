//! One side of the device under test: what its capture says apart from any matching.

use super::gaps::Gaps;
use crate::capture::{Capture, CaptureError, Record};
use crate::matching::DISORDER_NS;
use crate::signature::Signer;
use std::collections::BTreeMap;

/// Nanoseconds of a second.
pub(super) const SECOND_NS: i64 = 1_000_000_000;

/// Frames and bytes of one second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// The read side of a tap: batches, their order in time and what was odd about them.
pub(super) struct Tap<'a> {
    pub(super) capture: &'a mut Capture,
    batch: Vec<Record>,
    next: usize,
    ended: bool,
    /// Added to each stamp.
    shift_ns: i64,
    pub(super) packets: u64,
    pub(super) unstamped: u64,
    pub(super) cut_frames: u64,
    pub(super) short_signatures: u64,
    pub(super) out_of_order: u64,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    pub(super) gaps: Gaps,
    loads: BTreeMap<i64, Load>,
    /// The second being counted, and where it ends.
    load: Load,
    load_second: i64,
    load_end_ns: i64,
    origin_ns: i64,
}

impl<'a> Tap<'a> {
    pub(super) fn new(capture: &'a mut Capture, shift_ns: i64, origin_ns: i64) -> Self {
        Self {
            capture,
            batch: Vec::new(),
            next: 0,
            ended: false,
            shift_ns,
            packets: 0,
            unstamped: 0,
            cut_frames: 0,
            short_signatures: 0,
            out_of_order: 0,
            first_ns: i64::MAX,
            last_ns: i64::MIN,
            gaps: Gaps::new(),
            loads: BTreeMap::new(),
            load: Load::default(),
            load_second: i64::MIN,
            load_end_ns: i64::MIN,
            origin_ns,
        }
    }

    /// The next stamped frame, without taking it.
    #[inline]
    pub(super) fn peek(&self) -> Option<&Record> {
        self.batch.get(self.next)
    }

    /// Whether frames may follow that were not read yet.
    #[inline]
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Reads the next batch and puts its stamps into order of time and the run's clock.
    pub(super) fn refill(&mut self, signer: &Signer) -> Result<(), CaptureError> {
        self.next = 0;
        if !self.capture.read(signer, &mut self.batch)? {
            self.ended = true;
            return Ok(());
        }
        let read = self.batch.len();
        self.packets += read as u64;
        self.batch.retain(|record| record.stamped);
        self.unstamped += (read - self.batch.len()) as u64;
        if self.shift_ns != 0 {
            for record in &mut self.batch {
                record.stamp_ns = record.stamp_ns.saturating_add(self.shift_ns);
            }
        }
        Ok(())
    }

    /// Takes the next frame. Gaps count once they begin after `after_ns`.
    #[inline]
    pub(super) fn take(
        &mut self,
        signer: &Signer,
        after_ns: i64,
    ) -> Result<Option<Record>, CaptureError> {
        let Some(&record) = self.batch.get(self.next) else { return Ok(None) };
        self.next += 1;
        let stamp_ns = record.stamp_ns;
        if stamp_ns < self.last_ns {
            self.disorder(stamp_ns)?;
        } else {
            self.last_ns = stamp_ns;
        }
        self.first_ns = self.first_ns.min(stamp_ns);
        self.cut_frames += u64::from(record.cut);
        self.short_signatures += u64::from(signer.is_short(record.cut, record.signable));
        self.gaps.record(stamp_ns, after_ns);
        if stamp_ns >= self.load_end_ns || stamp_ns < self.load_end_ns - SECOND_NS {
            self.change_second(stamp_ns);
        }
        self.load.packets += 1;
        self.load.bytes += u64::from(record.length);
        Ok(Some(record))
    }

    #[cold]
    fn disorder(&mut self, stamp_ns: i64) -> Result<(), CaptureError> {
        self.out_of_order += 1;
        let back_ns = self.last_ns.saturating_sub(stamp_ns);
        if back_ns < DISORDER_NS {
            return Ok(());
        }
        Err(CaptureError::Disorder {
            path: self.capture.name().to_owned(),
            packet: self.packets - (self.batch.len() - self.next) as u64,
            back_ns,
        })
    }

    #[cold]
    fn change_second(&mut self, stamp_ns: i64) {
        self.flush();
        self.load_second = second(stamp_ns, self.origin_ns);
        self.load_end_ns =
            self.origin_ns.saturating_add((self.load_second + 1).saturating_mul(SECOND_NS));
    }

    fn flush(&mut self) {
        if self.load.packets > 0 {
            let load = self.loads.entry(self.load_second).or_default();
            load.packets += self.load.packets;
            load.bytes += self.load.bytes;
            self.load = Load::default();
        }
    }

    /// Bytes on the wire so far, without FCS.
    pub(super) fn bytes(&self) -> u64 {
        self.loads.values().map(|load| load.bytes).sum::<u64>() + self.load.bytes
    }

    /// Frames and bytes by second since the origin.
    pub(super) fn loads(&mut self) -> &BTreeMap<i64, Load> {
        self.flush();
        &self.loads
    }
}

/// The second since `origin_ns` that a stamp lies in.
pub(super) fn second(stamp_ns: i64, origin_ns: i64) -> i64 {
    stamp_ns.saturating_sub(origin_ns).div_euclid(SECOND_NS)
}
