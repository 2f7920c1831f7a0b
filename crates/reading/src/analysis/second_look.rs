//! A second look at two captures of which packets are in no pair: their frames say why.

use super::clocks::lack_packets;
use super::twice::Apart;
use crate::source::{self, CaptureInput, Reading};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, Terms, copies_within_ns};
use tailtrim_tail::capture::{CaptureError, Choice, Link, Record};
use tailtrim_tail::clock::{ClockFit, SampledSide, corrected};
use tailtrim_tail::directions::{Direction, Directions, HEADERS, Keys, has_replies};
use tailtrim_tail::lost::{self, LostFrame};
use tailtrim_tail::matching::DISORDER_NS;
use tailtrim_tail::missing;
use tailtrim_tail::signature::Signer;
use tailtrim_tail::summary::Summary;
use tailtrim_tail::unmatched::{self, Frame, HEAD, Kept};

/// Packets at the beginning of each capture that tell of two directions where nothing else makes them likely.
const LIKELY: u64 = 1 << 13;

/// Fewest duplicates that may be copies of a mirror port.
const COPIES: u64 = 32;

/// Frames that are kept at most.
const MOST: usize = 100_000;

/// Frames at the beginning of each capture that are kept whatever became of them, and how much of each: as far as
/// `--signature` reaches.
const FIRST: usize = 4_096;
const WHOLE: usize = 2_048;

/// Two captures that can be opened again.
#[derive(Clone)]
pub(crate) struct SecondLook {
    sides: [(PathBuf, Reading); 2],
    /// The direction whose packets count, if not all do.
    going: Option<(Direction, Arc<Directions>)>,
    /// Tells packets apart that are there twice, if some are.
    pub(super) apart: Option<Apart>,
}

impl SecondLook {
    /// `None` where one is a pipe.
    pub(crate) fn at(ingress: &CaptureInput, egress: &CaptureInput) -> Option<Self> {
        let (ingress, egress) = ingress.again.clone().zip(egress.again.clone())?;
        Some(Self { sides: [ingress, egress], going: None, apart: None })
    }

    /// The captures with the packets that count: of the direction that is asked for, if one is, those of the other way round
    /// with the sides exchanged.
    ///
    /// # Errors
    /// They cannot be read, or have one direction only.
    pub(crate) fn asked(mut self, options: &Options) -> Result<Self, AnalysisError> {
        let Some(direction) = options.direction else { return Ok(self) };
        let directions = self.directions(options, u64::MAX)?.ok_or(AnalysisError::OneDirection)?;
        self.going = Some((direction, Arc::new(directions)));
        if direction == Direction::Reverse {
            self.sides.reverse();
        }
        Ok(self)
    }

    /// The directions of the first packets, where there are two.
    fn directions(
        &self,
        options: &Options,
        first: u64,
    ) -> Result<Option<Directions>, CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let keys = |link, head: &[u8], length| Keys::of(link, head, length);
        let ingress = marked(ingress, 0, &terms, first, &keys)?;
        if !has_replies(&ingress) {
            return Ok(None);
        }
        let egress = marked(egress, terms.shift_ns(), &terms, first, &keys)?;
        Ok(Directions::of(&ingress, &egress))
    }

    /// Adds to the warnings what explains packets in no pair, and negative latencies: one explanation ends the search.
    /// Captures without any are not read again.
    pub(super) fn explain(&self, analysis: &mut Analysis, options: &Options, jobs: NonZeroUsize) {
        // They were read a moment ago. If another process has changed or removed one since, nothing more can be said.
        if self.going.is_none()
            && let Ok(Some(directions)) = self.unasked_directions(analysis, options)
        {
            unmatched::tell_directions(&directions, &mut analysis.summary);
            return;
        }
        self.tell_batches(analysis, options);
        if let Ok(true) = self.tell_clocks(analysis, options, jobs) {
            return;
        }
        if let Some((direction, directions)) = &self.going
            && !options.fit_clocks
        {
            unmatched::tell_clocks_of(*direction, directions, &mut analysis.summary);
        }
        unmatched::tell_late_begin(&analysis.leftovers, &mut analysis.summary);
        if self.tell_hidden(&mut analysis.summary, options) {
            return;
        }
        if unmatched::is_worth_a_look(&analysis.leftovers, &analysis.summary)
            && let Ok((kept, terms)) = self.kept(analysis, options)
        {
            let summary = &mut analysis.summary;
            let late = missing::of_window(&kept, terms.signer(), options.window, summary);
            let explained = late.as_ref().is_some_and(|late| late.count * 2 > summary.ingress.lost);
            summary.warnings.extend(late);
            unmatched::explain(kept, &terms, options, summary);
            if explained {
                return;
            }
        }
        self.tell_missing(analysis, options);
    }

    /// The directions, if the first packets have two, or all where the result makes them likely.
    fn unasked_directions(
        &self,
        analysis: &Analysis,
        options: &Options,
    ) -> Result<Option<Directions>, CaptureError> {
        let found = self.directions(options, LIKELY)?;
        let likely = unmatched::may_go_both_ways(&analysis.leftovers, &analysis.summary)
            || lack_packets(&analysis.summary)
            || options.fit_clocks;
        if found.is_some() || !likely { Ok(found) } else { self.directions(options, u64::MAX) }
    }

    /// The first packets of both captures, or some of all, each with a mark.
    pub(super) fn marked<M: Copy>(
        &self,
        options: &Options,
        first: [u64; 2],
        mark: impl Fn(Link, &[u8], u32) -> M,
    ) -> Result<[SampledSide<M>; 2], CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let entered = marked(ingress, 0, &terms, first[0], &mark)?;
        Ok([entered, marked(egress, terms.shift_ns(), &terms, first[1], &mark)?])
    }

    fn kept(&self, analysis: &Analysis, options: &Options) -> Result<(Kept, Terms), CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let leftovers = &analysis.leftovers;
        let lost = leftovers.lost.iter().map(|packet| packet.ingress_ns).collect();
        let unmatched = leftovers.unmatched.iter().copied().collect();
        let ClockFit { ingress: entered, egress: left, .. } = &options.clock_fit;
        let shift_ns = terms.shift_ns();
        let stamp_ns = |packet, stamp_ns| corrected(entered, packet, stamp_ns);
        let (lost, entered) = read(ingress, &lost, stamp_ns, &terms)?;
        let stamp_ns =
            |packet, stamp_ns| corrected(left, packet, stamp_ns).saturating_add(shift_ns);
        let (unmatched, left) = read(egress, &unmatched, stamp_ns, &terms)?;
        Ok((Kept { lost, unmatched, first: [entered, left] }, terms))
    }

    /// Time within which ingress frames of one signature are copies of a mirror port that begins to write packets down
    /// several times behind the first ones, if there are duplicates that may be some.
    pub(super) fn later_copies(
        &self,
        summary: &Summary,
        options: &Options,
    ) -> Result<Option<i64>, CaptureError> {
        let may_be = summary.ingress.copy == 0 && summary.ingress.duplicate >= COPIES;
        if may_be && !options.in_order { self.copies_within_ns(options) } else { Ok(None) }
    }

    /// The same, wherever there are copies.
    pub(crate) fn copies_within_ns(&self, options: &Options) -> Result<Option<i64>, CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        copies_within_ns(&mut ingress.capture, &mut egress.capture, &terms)
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
        let input = source::open(path, reading.clone())?;
        Ok(match &self.apart {
            Some(apart) => apart.told(input, side),
            None => input,
        })
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

    /// Some packets of a side, also of those that come back if one direction counts: their clocks are the same. Numbers are
    /// those of packets that count, or of the next one.
    pub(super) fn sampled(
        &self,
        side: usize,
        signer: &Signer,
        shift_ns: i64,
    ) -> Result<SampledSide, CaptureError> {
        let mut whole = self.whole(side)?;
        if self.going.is_none() {
            return SampledSide::read(&mut whole.capture, signer, shift_ns);
        }
        let (taken, mut sampled, mut left) = (self.taken(side), SampledSide::new(shift_ns), 0);
        each(whole, HEADERS, signer, |packet, record, link, head| {
            let counts = taken(link, head);
            let direction = if counts { Direction::Forward } else { Direction::Reverse };
            sampled.add(record, packet - left, || direction);
            left += u64::from(!counts);
            true
        })?;
        Ok(sampled)
    }
}

/// The first packets of a capture, or some of all, with a mark that their frame and its length give them.
fn marked<M: Copy>(
    source: CaptureInput,
    shift_ns: i64,
    terms: &Terms,
    first: u64,
    mark: &impl Fn(Link, &[u8], u32) -> M,
) -> Result<SampledSide<M>, CaptureError> {
    let mut side = SampledSide::new(shift_ns);
    each(source, HEADERS, terms.signer(), |packet, record, link, head| {
        side.add(record, packet, || mark(link, head, record.length));
        packet < first
    })?;
    Ok(side)
}

/// The frames with these stamps, and the first ones. `stamp_ns`: the stamp that counts, by a packet's number and stamp.
fn read(
    source: CaptureInput,
    wanted: &HashSet<i64>,
    stamp_ns: impl Fn(u64, i64) -> i64,
    terms: &Terms,
) -> Result<(Vec<Frame>, Vec<Frame>), CaptureError> {
    let last_ns =
        wanted.iter().max().map_or(i64::MIN, |last_ns| last_ns.saturating_add(DISORDER_NS));
    let (mut found, mut first, mut read_ns) = (Vec::new(), Vec::new(), i64::MIN);
    each(source, WHOLE, terms.signer(), |packet, record, link, bytes| {
        let (stamp_ns, length) = (stamp_ns(packet, record.stamp_ns), record.length);
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

/// Shows the stamped packets of a capture, each with its number from 1 and the first bytes of its frame, to the end of a batch
/// for which `show` says that it is enough.
pub(super) fn each(
    source: CaptureInput,
    most_bytes: usize,
    signer: &Signer,
    mut show: impl FnMut(u64, &Record, Link, &[u8]) -> bool,
) -> Result<(), CaptureError> {
    let (mut capture, mut batch) = (source.capture, Vec::new());
    let (mut bytes, mut ends, mut goes_on) = (Vec::new(), Vec::new(), true);
    let mut packets = 0;
    while goes_on {
        bytes.clear();
        ends.clear();
        goes_on = capture.read_frames(signer, &mut batch, |link, frame| {
            bytes.extend_from_slice(&frame[..frame.len().min(most_bytes)]);
            ends.push((link, bytes.len()));
        })?;
        let mut begin = 0;
        let stamped = (packets + 1..).zip(&batch).filter(|(_, record)| record.stamped);
        for ((packet, record), &(link, end)) in stamped.zip(&ends) {
            goes_on &= show(packet, record, link, &bytes[begin..end]);
            begin = end;
        }
        packets += batch.len() as u64;
    }
    Ok(())
}
