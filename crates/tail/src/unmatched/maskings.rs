//! Which masking would match lost with unmatched packets.

use super::agreeing::{self, Agreeing};
use super::pairing::distinct;
use super::{Frame, HEAD, Sides};
use crate::analysis::Options;
use crate::signature::{Rewrites, Signed, Signer};
use crate::summary::{Warning, counted, grouped};

/// A masking with more options must match this many times as many packets.
const WORTH_AN_OPTION: f64 = 1.05;

/// Packets that the present signature tells apart, of which another one must keep this part.
const KEPT_APART: f64 = 0.99;

/// Bytes of an IPv6 header without extensions.
const IPV6_HEADER: usize = 40;

/// Packets of each side that tell what they all are like.
const LOOKED_AT: usize = 5_000;

/// Another way to sign.
pub(super) struct Candidate {
    /// Count of options.
    options: usize,
    /// Fields in which packets differ, or bytes in which they agree, in words.
    pub(super) agreement: String,
    /// Options to type.
    pub(super) typed: String,
    pub(super) signer: Signer,
    /// Fields in which even a few packets that carry the same may differ.
    rewrites: Option<Rewrites>,
    /// It signs so little that only numbers tell it from chance.
    small: bool,
}

/// The masking that matches most packets with the fewest options, where one does. Parts of packets may agree with the whole in
/// `bytes`.
pub(super) fn warning(
    sides: Sides<'_>,
    first: &[Vec<Frame>; 2],
    signer: &Signer,
    options: &Options,
    bytes: bool,
) -> Option<Warning> {
    let mut best: Option<(usize, Candidate)> = None;
    let apart = distinct(&first[0], signer) as f64 * KEPT_APART;
    let mut consider = |candidate: Candidate| {
        let found = sides.pairs(&candidate.signer, options.window);
        let count = found.pairs.len();
        let small = candidate.small;
        let more = best.as_ref().is_none_or(|(fewer, before)| {
            let worth = candidate.options > before.options || small;
            count as f64 > *fewer as f64 * if worth { WORTH_AN_OPTION } else { 1.0 }
        });
        let key = |frame: &Frame| candidate.signer.sign(frame.link, &frame.head).signature;
        let certain = sides.are_no_chance(&found)
            || (!small && sides.are_all(&found))
            || candidate.rewrites.is_some_and(|masked| sides.are_same(&found, key, masked, first));
        if more && certain && distinct(&first[0], &candidate.signer) as f64 >= apart {
            best = Some((count, candidate));
        }
    };
    rewrites(sides, options).into_iter().for_each(&mut consider);
    let agreeing = || agreeing::bytes(sides, options.window, first);
    if let Some(Agreeing { selection, few }) = bytes.then(agreeing).flatten() {
        consider(Candidate {
            options: 1,
            agreement: format!("agree in the bytes {selection}"),
            typed: format!("--signature {selection}"),
            signer: Signer::of_selection(selection),
            rewrites: few.then(|| Rewrites { nat: true, ..Rewrites::default() }),
            small: true,
        });
    }
    let (count, Candidate { agreement, typed, .. }) = best?;
    let (lost, packets) = (grouped(count as u64), counted(count as u64, "unmatched packet"));
    let text = format!("{lost} lost and {packets} {agreement}: {typed} matches them");
    Some(super::warning("masked", count, text))
}

/// The masking that makes most packets alike that are not alike as they are signed now, but repeat, so that only their order says
/// which is which: how many, and the masking.
pub(super) fn in_order(sides: Sides<'_>, options: &Options) -> Option<(usize, Candidate)> {
    let first = sides.first(LOOKED_AT);
    let candidates = rewrites(first, options).into_iter();
    let counts = candidates.map(|candidate| (first.common(&candidate.signer), candidate));
    let most = |best: Option<(usize, Candidate)>, next: (usize, Candidate)| match best {
        Some(best) if next.0 as f64 <= best.0 as f64 * WORTH_AN_OPTION => Some(best),
        _ => Some(next).filter(|(count, _)| *count > 0),
    };
    let (_, candidate) = counts.fold(None, most)?;
    Some((sides.common(&candidate.signer), candidate))
}

/// All sets of rewritten fields that contain the present ones, fewest first.
pub(super) fn rewrites(sides: Sides<'_>, options: &Options) -> Vec<Candidate> {
    let Rewrites { nat, tos, tunnel } = options.rewrites;
    let now = [nat, tos, tunnel];
    let selected = options.selection.is_some();
    let fields = sides.first(LOOKED_AT).fields();
    let mut candidates: Vec<Candidate> = (0..8_u8)
        .map(|set| [0, 1, 2].map(|bit| set >> bit & 1 == 1))
        .filter(|set| set.iter().zip(now).all(|(&then, now)| then || !now))
        .filter(|set| selected || *set != now)
        .map(|set| {
            let [nat, tos, tunnel] = set;
            let masks = chosen(["--mask nat", "--mask tos", "--mask tunnel"], set);
            let added = chosen(fields, [0, 1, 2].map(|bit| set[bit] && !now[bit]));
            let typed = match (masks.is_empty(), selected) {
                (true, _) => "without --signature tailtrim".to_owned(),
                (false, true) => format!("{} without --signature", masks.join(" ")),
                (false, false) => masks.join(" "),
            };
            let agreement = if added.is_empty() {
                "have the same default signature".to_owned()
            } else {
                format!("agree in all but {}", added.join(" and "))
            };
            let rewrites = Rewrites { nat, tos, tunnel };
            let signer = sides.limited(rewrites);
            let count = set.iter().filter(|is| **is).count();
            let rewrites = Some(rewrites);
            Candidate { options: count, agreement, typed, signer, rewrites, small: false }
        })
        .collect();
    candidates.sort_by_key(|candidate| candidate.options);
    candidates
}

fn chosen(texts: [&'static str; 3], of: [bool; 3]) -> Vec<&'static str> {
    texts.into_iter().zip(of).filter(|(_, is)| *is).map(|(text, _)| text).collect()
}

impl Sides<'_> {
    /// So many packets of each side.
    fn first(&self, most: usize) -> Self {
        let [lost, unmatched] =
            [self.lost, self.unmatched].map(|side| &side[..side.len().min(most)]);
        Sides { lost, unmatched }
    }

    /// The fields that each mask leaves out, in words.
    fn fields(&self) -> [&'static str; 3] {
        let is_extended = |frame: &&Frame| {
            let innermost = frame.innermost().map(|(_, _, layers)| layers);
            innermost.is_some_and(|one| one.v6 && !one.fragment && one.payload > IPV6_HEADER)
        };
        let sides = [self.lost, self.unmatched].into_iter();
        let extended = sides
            .filter(|frames| frames.iter().filter(is_extended).count() * 2 > frames.len())
            .count();
        let around =
            if extended > 0 { "extension headers of IPv6" } else { "a tunnel around them" };
        ["addresses and ports", "ToS (DSCP and ECN)", around]
    }

    /// A signer of what the snap length has left of all frames, as [`Terms`](crate::analysis::Terms) would limit it.
    fn limited(&self, rewrites: Rewrites) -> Signer {
        let signer = Signer::new(rewrites);
        let frames = self.lost.iter().chain(self.unmatched);
        let bytes = |frame: &Frame| {
            let (there, length) = (frame.head.len(), frame.length as usize);
            let cut = there < length.min(HEAD);
            // Only what is in a tunnel is truncated in frames that are whole.
            if !cut && !rewrites.tunnel {
                return None;
            }
            let Signed { signable, truncated, .. } = signer.sign(frame.link, &frame.head);
            (cut || (truncated && there >= length)).then_some(usize::from(signable))
        };
        let least = frames.filter_map(bytes).min();
        match least {
            Some(bytes) => signer.limited_to(bytes),
            None => signer,
        }
    }
}
