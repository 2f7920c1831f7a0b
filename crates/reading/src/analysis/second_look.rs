//! A second look at two captures of which packets are in no pair: their frames say why.

use crate::source::{self, CaptureInput, Reading};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use tailtrim_tail::analysis::{Analysis, AnalysisError, Options, Terms};
use tailtrim_tail::capture::{CaptureError, CaptureReader, Choice, Link, Record};
use tailtrim_tail::directions::{Direction, Directions, FirstPackets, Keys, LOOKED_AT};
use tailtrim_tail::matching::DISORDER_NS;
use tailtrim_tail::signature::Signer;
use tailtrim_tail::unmatched::{self, Frame, HEAD, Kept};

/// Frames that are kept at most.
const MOST: usize = 100_000;

/// Frames at the beginning of each capture that are kept whatever became of them, and how much of each: as far as
/// `--signature` reaches.
const FIRST: usize = 4_096;
const WHOLE: usize = 2_048;

/// Two captures that can be opened again.
pub(super) struct SecondLook {
    sides: [(PathBuf, Reading); 2],
    /// The direction whose packets count, if not all do.
    going: Option<(Direction, Arc<Directions>)>,
}

impl SecondLook {
    /// `None` where one is a pipe.
    pub(super) fn at(ingress: &CaptureInput, egress: &CaptureInput) -> Option<Self> {
        let (ingress, egress) = ingress.again.clone().zip(egress.again.clone())?;
        Some(Self { sides: [ingress, egress], going: None })
    }

    /// The captures as if they had only packets of one direction, those of the other way round with the sides exchanged.
    ///
    /// # Errors
    /// They cannot be read, or have one direction only.
    pub(super) fn in_direction(
        mut self,
        direction: Direction,
        options: &Options,
    ) -> Result<(Self, [CaptureInput; 2]), AnalysisError> {
        let directions = self.directions(options)?.ok_or(AnalysisError::OneDirection)?;
        self.going = Some((direction, Arc::new(directions)));
        if direction == Direction::Reverse {
            self.sides.reverse();
        }
        let sides = [self.open(0)?, self.open(1)?];
        Ok((self, sides))
    }

    /// The directions of the first packets, where there are two.
    fn directions(&self, options: &Options) -> Result<Option<Directions>, CaptureError> {
        let [mut ingress, mut egress] = [self.open(0)?, self.open(1)?];
        let terms = Terms::of(&mut ingress.capture, &mut egress.capture, options)?;
        let mut packets = FirstPackets::default();
        each(ingress, LOOKED_AT, terms.signer(), |record, link, head| {
            packets.enters(record.signature, record.stamp_ns, Keys::of(link, head));
        })?;
        each(egress, 2 * LOOKED_AT, terms.signer(), |record, link, head| {
            let stamp_ns = record.stamp_ns.saturating_add(terms.shift_ns());
            packets.leaves(record.signature, stamp_ns, Keys::of(link, head), options.window);
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

    pub(super) fn open(&self, side: usize) -> Result<CaptureInput, CaptureError> {
        let (path, reading) = &self.sides[side];
        let input = source::open(path, reading.clone())?;
        let Some((direction, directions)) = self.going.clone() else { return Ok(input) };
        // Those of the other way round have their sides exchanged.
        let tap = if direction == Direction::Reverse { 1 - side } else { side };
        let choose = move |frame: Option<(Link, &[u8])>| match frame {
            Some((link, frame)) if !directions.has(direction, tap, link, frame) => Choice::Leave,
            _ => Choice::Take,
        };
        Ok(CaptureInput { capture: input.capture.choosing(choose), ..input })
    }
}

/// The frames with these stamps, and the first ones. The stamps of the capture are `shift_ns` smaller.
fn read(
    source: CaptureInput,
    wanted: &HashSet<i64>,
    shift_ns: i64,
    terms: &Terms,
) -> Result<(Vec<Frame>, Vec<Frame>), CaptureError> {
    let (mut capture, mut heads) = (source.capture, Heads::new(WHOLE));
    let last_ns =
        wanted.iter().max().map_or(i64::MIN, |last_ns| last_ns.saturating_add(DISORDER_NS));
    let (mut found, mut first, mut batch) = (Vec::new(), Vec::new(), Vec::new());
    let mut read_ns = i64::MIN;
    while (read_ns <= last_ns || first.len() < FIRST)
        && heads.read(&mut capture, terms.signer(), &mut batch)?
    {
        let stamped = batch.iter().filter(|record| record.stamped);
        for (Record { stamp_ns, length, .. }, (link, bytes)) in stamped.zip(heads.iter()) {
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

/// First bytes of the stamped frames that were read last, and the link of each.
struct Heads {
    /// Most bytes of each frame.
    most: usize,
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<(Link, usize)>,
}

impl Heads {
    fn new(most: usize) -> Self {
        Self { most, bytes: Vec::new(), ends: Vec::new() }
    }

    fn read(
        &mut self,
        capture: &mut CaptureReader,
        signer: &Signer,
        batch: &mut Vec<Record>,
    ) -> Result<bool, CaptureError> {
        let Self { most, bytes, ends } = self;
        bytes.clear();
        ends.clear();
        capture.read_frames(signer, batch, |link, frame| {
            bytes.extend_from_slice(&frame[..frame.len().min(*most)]);
            ends.push((link, bytes.len()));
        })
    }

    /// The heads, in the order of their frames.
    fn iter(&self) -> impl Iterator<Item = (Link, &[u8])> {
        let begins = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        begins.zip(&self.ends).map(|(begin, &(link, end))| (link, &self.bytes[begin..end]))
    }
}

/// Shows the first stamped packets of a capture with the first bytes of their frames.
fn each(
    source: CaptureInput,
    count: usize,
    signer: &Signer,
    mut show: impl FnMut(&Record, Link, &[u8]),
) -> Result<(), CaptureError> {
    let (mut capture, mut heads) = (source.capture, Heads::new(HEAD));
    let (mut shown, mut batch) = (0, Vec::new());
    while shown < count && heads.read(&mut capture, signer, &mut batch)? {
        let stamped = batch.iter().filter(|record| record.stamped);
        for (record, (link, head)) in stamped.zip(heads.iter()) {
            show(record, link, head);
            shown += 1;
        }
    }
    Ok(())
}
