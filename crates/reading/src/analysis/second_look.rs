//! A second look at two captures of which packets are in no pair: their frames say why.

use crate::source::{self, CaptureInput, Reading};
use std::collections::HashSet;
use std::path::PathBuf;
use tailtrim_tail::analysis::{Analysis, Options, Terms};
use tailtrim_tail::capture::{CaptureError, Record};
use tailtrim_tail::matching::DISORDER_NS;
use tailtrim_tail::unmatched::{self, Frame, Kept};

/// Bytes of a frame in no pair that are kept: the headers of a tunnel, those of the packet in it, and some of its payload.
const HEAD: usize = 256;

/// Frames that are kept at most.
const MOST: usize = 200_000;

/// Frames at the beginning of each capture that are kept whatever became of them, and how much of each: as far as
/// `--signature` reaches.
const FIRST: usize = 4_096;
const WHOLE: usize = 2_048;

/// Two captures that can be opened again.
pub(super) struct SecondLook([(PathBuf, Reading); 2]);

impl SecondLook {
    /// `None` where one is a pipe.
    pub(super) fn at(ingress: &CaptureInput, egress: &CaptureInput) -> Option<Self> {
        ingress
            .again
            .clone()
            .zip(egress.again.clone())
            .map(|(ingress, egress)| Self([ingress, egress]))
    }

    /// Adds to the warnings what explains packets in no pair. Captures without any are not read again.
    pub(super) fn explain(&self, analysis: &mut Analysis, options: &Options) {
        if !unmatched::is_worth_a_look(&analysis.leftovers, &analysis.summary) {
            return;
        }
        // They were read a moment ago. If another process has changed or removed one since, nothing more can be said.
        if let Ok((kept, terms)) = self.kept(analysis, options) {
            unmatched::explain(kept, &terms, options, &mut analysis.summary);
        }
    }

    fn kept(&self, analysis: &Analysis, options: &Options) -> Result<(Kept, Terms), CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let leftovers = &analysis.leftovers;
        let (lost, entered) = read(ingress, &leftovers.lost, 0, &terms)?;
        let (unmatched, left) = read(egress, &leftovers.unmatched, terms.shift_ns(), &terms)?;
        Ok((Kept { lost, unmatched, first: [entered, left] }, terms))
    }

    fn open(&self, side: usize) -> Result<CaptureInput, CaptureError> {
        let (path, reading) = &self.0[side];
        source::open(path, *reading)
    }
}

/// The frames with these stamps, and the first ones. The stamps of the capture are `shift_ns` smaller.
fn read(
    source: CaptureInput,
    stamps_ns: &[i64],
    shift_ns: i64,
    terms: &Terms,
) -> Result<(Vec<Frame>, Vec<Frame>), CaptureError> {
    let mut capture = source.capture;
    capture.keep_heads(WHOLE);
    let wanted: HashSet<i64> = stamps_ns.iter().copied().collect();
    let last_ns =
        wanted.iter().max().map_or(i64::MIN, |last_ns| last_ns.saturating_add(DISORDER_NS));
    let (mut found, mut first, mut batch) = (Vec::new(), Vec::new(), Vec::new());
    let mut read_ns = i64::MIN;
    while (read_ns <= last_ns || first.len() < FIRST) && capture.read(terms.signer(), &mut batch)? {
        let stamped = batch.iter().filter(|record| record.stamped);
        for (Record { stamp_ns, length, .. }, (link, bytes)) in stamped.zip(capture.heads()) {
            let stamp_ns = stamp_ns.saturating_add(shift_ns);
            read_ns = read_ns.max(stamp_ns);
            let frame = |most: usize| {
                let head = bytes[..bytes.len().min(most)].into();
                Frame { stamp_ns, length: *length, link, head }
            };
            if first.len() < FIRST {
                first.push(frame(WHOLE));
            }
            // Others may have the same stamps.
            if found.len() < MOST && wanted.contains(&stamp_ns) {
                found.push(frame(HEAD));
            }
        }
    }
    Ok((found, first))
}
