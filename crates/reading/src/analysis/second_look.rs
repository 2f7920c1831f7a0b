//! A second look at two captures of which packets are in no pair: their frames say why.

use crate::source::{self, CaptureInput, Reading};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, Terms};
use tailtrim_tail::capture::{CaptureError, Choice, Link, Record};
use tailtrim_tail::directions::{Direction, Directions, FirstPackets, Keys, LOOKED_AT};
use tailtrim_tail::lost::{self, LostFrame};
use tailtrim_tail::matching::DISORDER_NS;
use tailtrim_tail::signature::Signer;
use tailtrim_tail::unmatched::{self, Frame, Kept};

/// Bytes of a frame in no pair that are kept: the headers of a tunnel, those of the packet in it, and some of its payload.
const HEAD: usize = 256;

/// Frames that are kept at most.
const MOST: usize = 100_000;

/// Frames at the beginning of each capture that are kept whatever became of them, and how much of each: as far as
/// `--signature` reaches.
const FIRST: usize = 4_096;
const WHOLE: usize = 2_048;

/// Two captures that can be opened again.
pub(crate) struct SecondLook {
    sides: [(PathBuf, Reading); 2],
    /// The direction whose packets count, if not all do.
    going: Option<(Direction, Arc<Directions>)>,
}

impl SecondLook {
    /// `None` where one is a pipe.
    pub(crate) fn at(ingress: &CaptureInput, egress: &CaptureInput) -> Option<Self> {
        let (ingress, egress) = ingress.again.clone().zip(egress.again.clone())?;
        Some(Self { sides: [ingress, egress], going: None })
    }

    /// The captures with the packets that count: of the direction that is asked for, if one is, those of the other way round
    /// with the sides exchanged.
    ///
    /// # Errors
    /// They cannot be read, or have one direction only.
    pub(crate) fn asked(mut self, options: &Options) -> Result<Self, AnalysisError> {
        let Some(direction) = options.direction else { return Ok(self) };
        let directions = self.directions(options)?.ok_or(AnalysisError::OneDirection)?;
        self.going = Some((direction, Arc::new(directions)));
        if direction == Direction::Reverse {
            self.sides.reverse();
        }
        Ok(self)
    }

    /// The directions of the first packets, where there are two.
    fn directions(&self, options: &Options) -> Result<Option<Directions>, CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let mut packets = FirstPackets::default();
        let mut seen = 0;
        each(ingress, HEAD, terms.signer(), |record, link, head| {
            packets.enters(record.signature, record.stamp_ns, Keys::of(link, head));
            seen += 1;
            seen < LOOKED_AT
        })?;
        seen = 0;
        each(egress, HEAD, terms.signer(), |record, link, head| {
            let stamp_ns = record.stamp_ns.saturating_add(terms.shift_ns());
            packets.leaves(record.signature, stamp_ns, Keys::of(link, head), options.window);
            seen += 1;
            seen < 2 * LOOKED_AT
        })?;
        Ok(packets.directions())
    }

    /// Adds to the warnings what explains packets in no pair, and negative latencies: one explanation ends the search.
    /// Captures without any are not read again.
    pub(super) fn explain(&self, analysis: &mut Analysis, options: &Options, jobs: NonZeroUsize) {
        if self.going.is_none()
            && unmatched::may_go_both_ways(&analysis.leftovers, &analysis.summary)
            && let Ok(Some(directions)) = self.directions(options)
        {
            unmatched::tell_directions(&directions, &mut analysis.summary);
            return;
        }
        // They were read a moment ago. If another process has changed or removed one since, nothing more can be said.
        if let Ok(true) = self.tell_clocks(analysis, options, jobs) {
            return;
        }
        if unmatched::is_worth_a_look(&analysis.leftovers, &analysis.summary)
            && let Ok((kept, terms)) = self.kept(analysis, options)
        {
            unmatched::explain(kept, &terms, options, &mut analysis.summary);
        }
    }

    fn kept(&self, analysis: &Analysis, options: &Options) -> Result<(Kept, Terms), CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let leftovers = &analysis.leftovers;
        let lost = leftovers.lost.iter().map(|packet| packet.ingress_ns).collect();
        let unmatched = leftovers.unmatched.iter().copied().collect();
        let (lost, entered) = read(ingress, &lost, 0, &terms)?;
        let (unmatched, left) = read(egress, &unmatched, terms.shift_ns(), &terms)?;
        Ok((Kept { lost, unmatched, first: [entered, left] }, terms))
    }

    /// Finds the frames of lost packets.
    pub(super) fn lost(
        &self,
        analysis: &Analysis,
        options: &Options,
    ) -> Result<Vec<LostFrame>, CaptureError> {
        let signed = analysis.summary.signature.bytes;
        lost::find(&mut self.whole(0)?.capture, &analysis.lost, options, signed, self.taken(0))
    }

    /// A side with the packets that count.
    pub(crate) fn open(&self, side: usize) -> Result<CaptureInput, CaptureError> {
        let input = self.whole(side)?;
        if self.going.is_none() {
            return Ok(input);
        }
        let taken = self.taken(side);
        let choose = move |frame: Option<(Link, &[u8])>| match frame {
            Some((link, frame)) if !taken(link, frame) => Choice::Leave,
            _ => Choice::Take,
        };
        Ok(CaptureInput { capture: input.capture.choosing(choose), ..input })
    }

    fn whole(&self, side: usize) -> Result<CaptureInput, CaptureError> {
        let (path, reading) = &self.sides[side];
        source::open(path, reading.clone())
    }

    /// Whether a frame counts.
    fn taken(&self, side: usize) -> impl Fn(Link, &[u8]) -> bool + Clone + Send + 'static {
        let going = self.going.clone();
        move |link, frame| {
            going.as_ref().is_none_or(|(direction, directions)| {
                // In reverse, the sides are exchanged.
                let tap = if *direction == Direction::Reverse { 1 - side } else { side };
                directions.has(*direction, tap, link, frame)
            })
        }
    }
}

/// The frames with these stamps, and the first ones. The stamps of the capture are `shift_ns` smaller.
fn read(
    source: CaptureInput,
    wanted: &HashSet<i64>,
    shift_ns: i64,
    terms: &Terms,
) -> Result<(Vec<Frame>, Vec<Frame>), CaptureError> {
    let last_ns =
        wanted.iter().max().map_or(i64::MIN, |last_ns| last_ns.saturating_add(DISORDER_NS));
    let (mut found, mut first, mut read_ns) = (Vec::new(), Vec::new(), i64::MIN);
    each(source, WHOLE, terms.signer(), |record, link, bytes| {
        let (stamp_ns, length) = (record.stamp_ns.saturating_add(shift_ns), record.length);
        read_ns = read_ns.max(stamp_ns);
        let frame = |most: usize| {
            let head = bytes[..bytes.len().min(most)].into();
            Frame { stamp_ns, length, link, head }
        };
        if first.len() < FIRST {
            first.push(frame(WHOLE));
        }
        // Others may have the same stamps.
        if found.len() < MOST && wanted.contains(&stamp_ns) {
            found.push(frame(HEAD));
        }
        read_ns <= last_ns || first.len() < FIRST
    })?;
    Ok((found, first))
}

/// Shows the stamped packets of a capture with the first bytes of their frames, to the end of a batch for which `show` says
/// that it is enough.
fn each(
    source: CaptureInput,
    most_bytes: usize,
    signer: &Signer,
    mut show: impl FnMut(&Record, Link, &[u8]) -> bool,
) -> Result<(), CaptureError> {
    let (mut capture, mut batch) = (source.capture, Vec::new());
    let (mut bytes, mut ends, mut goes_on) = (Vec::new(), Vec::new(), true);
    while goes_on {
        bytes.clear();
        ends.clear();
        goes_on = capture.read_frames(signer, &mut batch, |link, frame| {
            bytes.extend_from_slice(&frame[..frame.len().min(most_bytes)]);
            ends.push((link, bytes.len()));
        })?;
        let mut begin = 0;
        for (record, &(link, end)) in batch.iter().filter(|one| one.stamped).zip(&ends) {
            goes_on &= show(record, link, &bytes[begin..end]);
            begin = end;
        }
    }
    Ok(())
}
