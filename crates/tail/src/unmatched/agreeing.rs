//! Bytes in which lost and unmatched packets agree although they differ in others: the device rewrites what no mask names,
//! changes lengths, or adds to the payload.

use super::pairing::Pairs;
use super::{Frame, Sides};
use crate::matching::Window;
use crate::signature::Selection;
use std::ops::Range;
use tailtrim_wire::frame::Transport;

/// Packets of each side that are compared.
const COMPARED: usize = 5_000;

/// Bytes of which packets are first found to be the same, and how far apart such places are.
const SEED: usize = 4;
const STEP: usize = 2;

/// Fewest bytes of a range: a packet is identified by a number or a payload.
const SHORTEST: usize = 2;

/// Fewest bytes of a selection: the identification of IP comes again every 65,536 packets.
const FEWEST_BYTES: usize = 8;

/// Most ranges and bytes of a selection: what can be typed.
const RANGES: usize = 3;
const BYTES: usize = 64;

/// Bytes to be signed instead.
pub(super) struct Agreeing {
    pub(super) selection: Selection,
    /// So few packets agree that not the bytes tell them, but all that they carry.
    pub(super) few: bool,
}

/// Bytes to be signed instead, where some make pairs that are none of chance.
pub(super) fn bytes(sides: Sides<'_>, window: Window, first: &[Vec<Frame>; 2]) -> Option<Agreeing> {
    // A selection counts from the start of the frame: only frames of one shape on both sides have the same bytes there.
    let lost = alike(sides.lost);
    let unmatched = alike(sides.unmatched);
    let start = lost.first()?.start()?;
    if unmatched.first()?.start()? != start {
        return None;
    }
    let sides = Sides { lost: &lost, unmatched: &unmatched };
    let length = lost.iter().chain(&unmatched).map(|frame| frame.head.len()).min()?;
    let seed = (start..length.saturating_sub(SEED - 1))
        .step_by(STEP)
        .map(|at| sides.pairs_of(chunks(&lost, at), chunks(&unmatched, at), window))
        .filter(|found| sides.are_no_chance(found))
        .max_by_key(|found| found.pairs.len());
    let few = seed.is_none();
    let seed = seed.or_else(|| sides.carrying(window, first))?;
    let agree: Vec<bool> = (0..length).map(|at| at >= start && sides.agree_at(&seed, at)).collect();
    let mut ranges = runs(&agree, &rewritten(&lost[0]));
    // Those in which packets differ from each other identify them, the more the better.
    let others = if few { alike(&first[0]) } else { lost };
    ranges.retain(|range| range.len() >= SHORTEST && varies(&others, range.clone()));
    ranges.sort_by_key(|range| std::cmp::Reverse(range.len()));
    ranges.truncate(RANGES);
    ranges.iter_mut().for_each(|range| range.end = range.end.min(range.start + BYTES));
    ranges.sort_by_key(|range| range.start);
    let bytes: usize = ranges.iter().map(Range::len).sum();
    (bytes >= FEWEST_BYTES).then(|| Agreeing { selection: Selection::of(ranges), few })
}

/// The first frames that have the headers of most of them.
fn alike(frames: &[Frame]) -> Vec<Frame> {
    let shape = |frame: &Frame| {
        let packet = frame.packet();
        let packet = packet.map(|(_, layers)| (layers.v6, layers.payload, layers.protocol));
        Some((frame.start()?, packet))
    };
    let mut shapes: Vec<_> = frames.iter().take(COMPARED).filter_map(shape).collect();
    shapes.sort_unstable();
    let most = shapes.chunk_by(|a, b| a == b).max_by_key(|run| run.len()).map(|run| run[0]);
    frames.iter().filter(|frame| shape(frame) == most).take(COMPARED).cloned().collect()
}

fn chunks(frames: &[Frame], at: usize) -> impl Iterator<Item = [u8; SEED]> {
    frames.iter().filter_map(move |frame| frame.head.get(at..)?.first_chunk().copied())
}

/// Bytes that any forwarder may rewrite.
fn rewritten(frame: &Frame) -> Vec<Range<usize>> {
    let Some((start, layers)) = frame.packet() else { return Vec::new() };
    let mut ranges = Vec::from(if layers.v6 { [7..8, 7..8] } else { [8..9, 10..12] });
    match layers.transport {
        Some(Transport::Udp) => ranges.push(layers.payload + 6..layers.payload + 8),
        Some(Transport::Tcp) => ranges.push(layers.payload + 16..layers.payload + 18),
        None => {}
    }
    ranges.into_iter().map(|range| start + range.start..start + range.end).collect()
}

/// Ranges of bytes that agree and are not rewritten.
fn runs(agree: &[bool], rewritten: &[Range<usize>]) -> Vec<Range<usize>> {
    let usable = |at: usize| agree[at] && !rewritten.iter().any(|range| range.contains(&at));
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..agree.len()).filter(|at| usable(*at)) {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

fn varies(frames: &[Frame], range: Range<usize>) -> bool {
    let mut bytes = frames.iter().filter_map(|frame| frame.head.get(range.clone()));
    let first = bytes.next();
    bytes.any(|bytes| Some(bytes) != first)
}

impl Sides<'_> {
    /// Whether the packets of nearly all pairs have the same byte there.
    fn agree_at(&self, found: &Pairs, at: usize) -> bool {
        let byte = |frame: &Frame| frame.head.get(at).copied();
        let same = found.pairs.iter().filter(|(lost, unmatched)| {
            byte(&self.lost[*lost]) == byte(&self.unmatched[*unmatched])
        });
        same.count() * 100 >= found.pairs.len() * 99
    }
}
