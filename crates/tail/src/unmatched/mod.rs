//! Packets in no pair: what lost and unmatched ones have in common, when both captures are read a second time.
//!
//! A device that rewrites more than is masked makes one packet look like two, a lost one and an unmatched one. Each
//! [masking](maskings) is tried on these alone; what would match them is told, with the option to type. A capturing host
//! that merges segments, or a device that fragments, makes other packets of them: that is told, too.

mod agreeing;
mod content;
mod fragments;
mod maskings;
mod offload;
mod pairing;
mod repeated;
mod trailers;

use crate::analysis::{LostPacket, Options, Terms, may_be_copies};
use crate::clock::of_directions;
use crate::directions::{Direction, Directions};
use crate::matching::{Decided, Fate, Window};
use crate::signature::{Signature, Signer};
use crate::summary::{Summary, Taps, Warning, counted, grouped};
use maskings::{Candidate, in_order};
use pairing::signatures;
use std::collections::{HashMap, HashSet};
use tailtrim_wire::frame::{self, Layers, Link, Walk};

/// Bytes of a frame in no pair that are kept: the headers of a tunnel, those of the packet in it, and some of its payload.
pub const HEAD: usize = 256;

/// Leftovers of each side that are looked at.
const MOST: usize = 100_000;

/// Fewer packets are lost before the first one leaves while a device asks for addresses.
const FIRST_LOST: u64 = 32;

/// Fewer packets than this explain nothing by their number.
const FEWEST: usize = 3;

/// The first packets that were lost and unmatched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Ingress packets that did not leave, whether or not they count as lost.
    pub lost: Vec<LostPacket>,
    /// Stamps of egress packets that did not enter, in ns of the ingress capture's clock.
    pub unmatched: Vec<i64>,
    /// Among the first packets some left before they entered.
    pub early: bool,
    /// The first packets have signatures that come again and again.
    pub repeated: bool,
    /// Stamps of one capture go back by so much that its clock may have been set back.
    pub set_back: bool,
}

impl Leftovers {
    /// Notes a packet, of the lost ones at least so many.
    #[inline]
    pub(crate) fn note(&mut self, decided: &Decided, lost: usize) {
        let &Decided { fate, stamp_ns, signature } = decided;
        match fate {
            Fate::Lost if self.lost.len() < lost.max(MOST) => {
                self.lost.push(LostPacket { ingress_ns: stamp_ns, signature });
            }
            Fate::Unmatched if self.unmatched.len() < MOST => self.unmatched.push(stamp_ns),
            _ => {}
        }
    }
}

/// The first bytes of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// When it passed the tap, ns on the clock of the ingress capture.
    pub stamp_ns: i64,
    /// Bytes on the wire.
    pub length: u32,
    /// The header that it starts with.
    pub link: Link,
    /// Its first bytes.
    pub head: Box<[u8]>,
}

impl Frame {
    /// Offset of the packet in the frame.
    fn start(&self) -> Option<usize> {
        self.link.payload(&self.head).map(|(_, start)| start)
    }

    /// The same, and its layers where it is an IP packet.
    fn packet(&self) -> Option<(usize, Layers)> {
        let (ethertype, start) = self.link.payload(&self.head)?;
        Some((start, frame::layers(ethertype, self.head.get(start..)?)?))
    }

    /// Offsets of the start and the end of the innermost packet, and its layers, where it is IP.
    fn innermost(&self) -> Option<(usize, usize, Layers)> {
        let place = Walk::new(self.link, &self.head).last()?;
        Some((place.start, place.end, place.layers?))
    }
}

/// Frames that a second look has kept.
#[derive(Debug, Default)]
pub struct Kept {
    /// Frames of [`Leftovers::lost`].
    pub lost: Vec<Frame>,
    /// Frames of [`Leftovers::unmatched`].
    pub unmatched: Vec<Frame>,
    /// The first of each capture, ingress and egress, whatever became of them.
    pub first: [Vec<Frame>; 2],
}

/// Whether a second look at the captures could explain anything. Packets at their ends, which are in no pair because one
/// capture began or ended before the other, are worth none.
#[must_use]
pub fn is_worth_a_look(leftovers: &Leftovers, summary: &Summary) -> bool {
    let both = !leftovers.lost.is_empty() && !leftovers.unmatched.is_empty();
    // Within the trim it is not counted what became of packets.
    let trimmed =
        summary.samples == 0 || summary.warnings.iter().any(|one| one.code == "trimmed_lost");
    let apart = trimmed || (summary.ingress.lost > 0 && summary.egress.unmatched > 0);
    (both && apart) || leftovers.repeated || summary.ingress.duplicate > 0
}

/// Whether some packets may have gone the other way.
#[must_use]
pub fn may_go_both_ways(leftovers: &Leftovers, summary: &Summary) -> bool {
    leftovers.early || summary.warnings.iter().any(|warning| warning.code == "not_positive")
}

/// Adds to the warnings of a summary that its captures have two directions.
pub fn tell_directions(directions: &Directions, summary: &mut Summary) {
    let [forward, reverse] = directions.counts.map(grouped);
    let text = format!(
        "both captures have packets of two directions (of those looked at, {forward} from ingress to egress and {reverse} back), \
         which must be analysed one by one: --direction forward or --direction reverse"
    );
    // Latencies of both at once tell nothing of the clocks.
    summary
        .warnings
        .retain(|warning| warning.code != "not_positive" && !warning.code.starts_with("clock_"));
    summary.warnings.push(warning("two_directions", directions.counts[1] as usize, text));
}

/// Adds to the warnings of the summary of a direction that the clocks are apart, if they are by what both take.
pub fn tell_clocks_of(direction: Direction, directions: &Directions, summary: &mut Summary) {
    let [forward_ns, reverse_ns] = directions.fastest_ns;
    let fastest_ns = match direction {
        Direction::Forward => [forward_ns, reverse_ns],
        Direction::Reverse => [reverse_ns, forward_ns],
    };
    if let Some(warning) = of_directions(fastest_ns, summary.samples) {
        summary.warnings.retain(|warning| warning.code != "not_positive");
        summary.warnings.insert(0, warning);
    }
}

/// Adds to the warnings of a summary that most of its lost packets entered before the first egress packet left, if they did.
pub fn tell_late_begin(leftovers: &Leftovers, summary: &mut Summary) {
    let Taps { ingress, egress } = &summary.taps;
    let Some((entered_ns, left_ns)) = ingress.first_ns.zip(egress.first_ns) else { return };
    let early = leftovers.lost.iter().filter(|packet| packet.ingress_ns < left_ns).count();
    let early = (early as u64).min(summary.ingress.lost);
    if summary.samples == 0 || early < FIRST_LOST || early * 2 < summary.ingress.lost {
        return;
    }
    let text = format!(
        "{} of {} lost packets entered in the {:.3} s before the first egress packet left: they were lost only if the egress tap \
         recorded from the beginning",
        grouped(early),
        grouped(summary.ingress.lost),
        left_ns.saturating_sub(entered_ns) as f64 / 1e9,
    );
    summary.warnings.push(Warning {
        code: "egress_began_late",
        count: early,
        text,
        invalidates: false,
    });
}

/// Adds to the warnings of a summary what explains its packets in no pair.
pub fn explain(mut kept: Kept, terms: &Terms, options: &Options, summary: &mut Summary) {
    let signer = terms.signer();
    kept.leave_out_common(signer);
    kept.leave_out_copies(signer);
    let looked_at = Sides { lost: &kept.lost, unmatched: &kept.unmatched };
    let tried = looked_at.is_whole();
    let first = &kept.first;
    let apart = || looked_at.apart(first, signer, options).filter(|_| summary.samples == 0);
    let mut explained = looked_at.explained(first, signer, options);
    if explained.is_empty() {
        explained.extend(apart());
    }
    let repeated = repeated::warning(first, signer, options, summary);
    let mut found: Vec<Warning> = repeated.into_iter().chain(explained).collect();
    // Packets of another kind than those that this signature matches: with one for them, those are lost.
    let others = options.selection.is_some() && summary.samples > 0;
    for masked in found.iter_mut().filter(|one| others && one.code == "masked") {
        masked.text +=
            ", but not those that are matched now: each kind takes an analysis of its own";
    }
    let none = summary.samples == 0;
    let alike = (none && tried && found.is_empty()).then(|| in_order(looked_at, options));
    let alike = alike.flatten();
    found.extend(looked_at.repeating(alike.as_ref()));
    if !found.is_empty() {
        // They say why.
        let repeated = found.iter().any(|found| matches!(found.code, "identical" | "unsigned"));
        summary.warnings.retain(|warning| match warning.code {
            "no_samples" => false,
            "in_order" => !none,
            "duplicate" => !repeated,
            _ => true,
        });
    } else if tried
        && let Some(warning) = summary.warnings.iter_mut().find(|one| one.code == "no_samples")
    {
        warning.text += &looked_at.undecided(alike.is_some());
    }
    summary.warnings.extend(found);
}

impl Kept {
    /// Leaves out packets that are on both sides: they only share a stamp with a leftover, or are in no pair for another
    /// reason than how they look.
    fn leave_out_common(&mut self, signer: &Signer) {
        let of = |frames: &[Frame]| signatures(frames, signer).collect::<HashSet<_>>();
        let (lost, unmatched) = (of(&self.lost), of(&self.unmatched));
        let common: HashSet<_> = lost.intersection(&unmatched).collect();
        let sign = |frame: &Frame| signer.sign(frame.link, &frame.head).signature;
        self.lost.retain(|frame| !common.contains(&sign(frame)));
        self.unmatched.retain(|frame| !common.contains(&sign(frame)));
    }

    /// Leaves out copies of a mirror port: the first of each packet counts.
    fn leave_out_copies(&mut self, signer: &Signer) {
        for (frames, first) in [&mut self.lost, &mut self.unmatched].into_iter().zip(&self.first) {
            let stamps = || frames.iter().chain(first).map(|frame| frame.stamp_ns);
            let ends_ns = stamps().min().zip(stamps().max());
            let span_ns = ends_ns.map_or(0, |(begin_ns, end_ns)| end_ns.saturating_sub(begin_ns));
            let signatures: Vec<Signature> = signatures(frames, signer).collect();
            let mut places: HashMap<Signature, Vec<usize>> = HashMap::new();
            for (place, signature) in signatures.iter().enumerate() {
                places.entry(*signature).or_default().push(place);
            }
            let reach_ns = |places: &[usize]| {
                let stamp_ns = |place: Option<&usize>| place.map_or(0, |at| frames[*at].stamp_ns);
                stamp_ns(places.last()).saturating_sub(stamp_ns(places.first()))
            };
            let copies = places
                .values()
                .filter(|places| may_be_copies(places.len(), reach_ns(places), span_ns))
                .flat_map(|places| &places[1..]);
            let copies: HashSet<usize> = copies.copied().collect();
            let mut place = 0..;
            frames.retain(|_| place.next().is_none_or(|place| !copies.contains(&place)));
        }
    }
}

/// Lost and unmatched packets.
#[derive(Debug, Clone, Copy)]
struct Sides<'a> {
    lost: &'a [Frame],
    unmatched: &'a [Frame],
}

impl Sides<'_> {
    fn is_whole(&self) -> bool {
        !self.lost.is_empty() && !self.unmatched.is_empty()
    }

    /// Says what is known of packets that nothing matches.
    fn undecided(&self, some_alike: bool) -> String {
        if let Some(name) = self.closed() {
            return format!(
                " Those of one side are in {name}, where no bytes identify them: capture both sides where they are not"
            );
        }
        format!(
            " No other masking (nat, tos, tunnel) matches {}, nor do bytes that tell them apart stand at the same place of the \
             frames on both sides{}",
            if some_alike { "most of them" } else { "them" },
            self.translated(),
        )
    }

    /// Says which masking makes both sides alike where packets repeat or carry little, so that none can match them for certain.
    fn repeating(&self, alike: Option<&(usize, Candidate)>) -> Option<Warning> {
        let fewer = self.lost.len().min(self.unmatched.len());
        let &(count, Candidate { ref agreement, ref typed, .. }) =
            alike.filter(|(count, _)| count * 2 >= fewer)?;
        let text = format!(
            "{} lost and {} {agreement}, but carry nothing that tells which is which: {}",
            grouped(count as u64),
            counted(count as u64, "unmatched packet"),
            by_order(typed),
        );
        Some(warning("masked", count, text))
    }

    /// The encapsulation that nearly all packets of one side are in, where they cannot be seen in it.
    fn closed(&self) -> Option<&'static str> {
        [self.lost, self.unmatched].into_iter().find_map(|frames| {
            let names = frames.iter().filter_map(|frame| {
                let places = Walk::new(frame.link, &frame.head);
                places.filter_map(|place| place.encapsulation?.closed()).last()
            });
            let names: Vec<&str> = names.collect();
            let first = names.first().copied()?;
            (names.len() * 10 >= frames.len() * 9).then_some(first)
        })
    }

    /// Says that a device translates between versions of IP, which moves all bytes.
    fn translated(&self) -> &'static str {
        let is_v6 = |frame: &Frame| frame.packet().map(|(_, layers)| layers.v6);
        let all = |frames: &[Frame], v6| frames.iter().all(|frame| is_v6(frame) == Some(v6));
        let from_to = |v6| all(self.lost, v6) && all(self.unmatched, !v6);
        if from_to(true) || from_to(false) {
            ": those of one side are IPv6, those of the other IPv4 (NAT64), whose bytes are elsewhere"
        } else {
            ""
        }
    }

    /// The masking that would match them if their clocks were not further apart than the window.
    fn apart(
        &self,
        first: &[Vec<Frame>; 2],
        signer: &Signer,
        options: &Options,
    ) -> Option<Warning> {
        let window = Window { window_ns: i64::MAX / 4, early_ns: i64::MAX / 4 };
        let options = Options { window, ..options.clone() };
        let found = maskings::warning(*self, first, signer, &options, true);
        // Of a few packets, no clock is known.
        let mut found = found.filter(|found| found.count >= FEWEST as u64)?;
        found.text +=
            " with --clock-fit, since the clocks of the taps are further apart than the window";
        Some(found)
    }

    /// Explains most of them: by a masking, or by other packets that they became.
    fn explained(
        &self,
        first: &[Vec<Frame>; 2],
        signer: &Signer,
        options: &Options,
    ) -> Vec<Warning> {
        if !self.is_whole() {
            return Vec::new();
        }
        let became = fragments::warning(*self, options)
            .or_else(|| offload::warning(*self, options))
            .or_else(|| trailers::warning(*self, options.window));
        let most = became.as_ref().map_or(0, |became| became.count);
        let masked = maskings::warning(*self, first, signer, options, became.is_none());
        masked.filter(|masked| masked.count > most).into_iter().chain(became).collect()
    }
}

/// Says how these options match packets that repeat.
fn by_order(typed: &str) -> String {
    format!(
        "{typed} matches those that leave before the next one enters, {typed} --in-order the n-th that leaves with the n-th that \
         entered, which sees neither a loss nor a change of the order"
    )
}

/// A warning that no percentile is the device's.
fn warning(code: &'static str, count: usize, text: String) -> Warning {
    Warning { code, count: count as u64, text, invalidates: true }
}
