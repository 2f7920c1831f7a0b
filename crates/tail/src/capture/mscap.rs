//! `MoonSniff`'s `.mscap`: no header, twelve bytes a record (stamp in ns as u64, packet identifier as
//! u32, little endian).
//!
//! `MoonGen` computes `seconds * 1_000_000_000` in 32 bits, so its stamps wrap every 2^32 ns (4.29 s).
//! Taps do not reorder, so a step back of more than half of that is a wrap and is undone.

use super::keep::Keep;
use super::{BATCH, Progress, Record};
use crate::signature::Signature;

/// Bytes of a record.
pub(super) const RECORD_LEN: usize = 12;

/// Stamps of affected files are the true ones modulo this.
pub(crate) const WRAP_NS: i64 = 1 << 32;

#[derive(Debug, Clone, Default)]
pub(super) struct Decoder {
    /// Multiples of [`WRAP_NS`] added so far.
    base_ns: i64,
    last_raw: i64,
    /// A stamp of 2^32 or more was seen: this file was written by a fixed version.
    full_width: bool,
}

impl Decoder {
    pub(super) fn wraps(&self) -> bool {
        !self.full_width
    }

    /// Takes over what a decoder that ran ahead found out about the width of the stamps.
    pub(super) fn learn_width(&mut self, ahead: &Self) {
        self.full_width |= ahead.full_width;
    }

    pub(super) fn decode(
        &mut self,
        window: &[u8],
        records: &mut Vec<Record>,
        keep: &mut impl Keep,
    ) -> Progress {
        let mut consumed = 0;
        for record in window.chunks_exact(RECORD_LEN).take(BATCH) {
            let (stamp, identifier) = record.split_at(8);
            let raw = stamp.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
            let identifier =
                identifier.iter().rev().fold(0_u32, |value, &byte| value << 8 | u32::from(byte));
            let raw = raw.cast_signed();
            // A stamp beyond 2^63 ns is not a time: the trailer was missing and payload was logged.
            let stamped = raw >= 0;
            if stamped {
                keep.identifier(identifier);
            }
            records.push(Record {
                stamp_ns: self.unwrap(raw),
                signature: Signature::of_identifier(identifier.into()),
                length: 0,
                signable: u16::MAX,
                cut: false,
                stamped,
            });
            consumed += RECORD_LEN;
        }
        Progress { consumed, damage: None }
    }

    fn unwrap(&mut self, raw: i64) -> i64 {
        if raw >= WRAP_NS {
            self.full_width = true;
        }
        // A stamp that is not a time says nothing about the wraps.
        if self.full_width || raw < 0 {
            return raw;
        }
        if raw - self.last_raw < -WRAP_NS / 2 {
            self.base_ns += WRAP_NS;
        } else if raw - self.last_raw > WRAP_NS / 2 && self.base_ns > 0 {
            // A frame stamped just before the wrap but written after it.
            self.base_ns -= WRAP_NS;
        }
        self.last_raw = raw;
        self.base_ns + raw
    }
}
