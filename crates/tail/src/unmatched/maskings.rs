//! Which masking would match lost with unmatched packets.

use super::pairing::distinct;
use super::{Frame, HEAD, Sides, agreeing};
use crate::analysis::Options;
use crate::signature::{Rewrites, Signed, Signer};
use crate::summary::{Warning, grouped};

/// A masking with more options must match this many times as many packets.
const WORTH_AN_OPTION: f64 = 1.05;

/// Packets that the present signature tells apart, of which another one must keep this part.
const KEPT_APART: f64 = 0.99;

/// Another way to sign.
struct Candidate {
    /// Count of options.
    options: usize,
    /// Fields in which packets differ, or bytes in which they agree, in words.
    agreement: String,
    /// Options to type.
    typed: String,
    signer: Signer,
    /// It signs so little that only numbers tell it from chance.
    small: bool,
}

/// The masking that matches most packets with the fewest options, where one does.
pub(super) fn warning(
    sides: Sides<'_>,
    first: &[Frame],
    signer: &Signer,
    options: &Options,
) -> Option<Warning> {
    let mut best: Option<(usize, Candidate)> = None;
    let apart = distinct(first, signer) as f64 * KEPT_APART;
    let mut consider = |candidate: Candidate| {
        let found = sides.pairs(&candidate.signer, options.window);
        let count = found.pairs.len();
        let more = best.as_ref().is_none_or(|(fewer, before)| {
            let worth = candidate.options > before.options || candidate.small;
            count as f64 > *fewer as f64 * if worth { WORTH_AN_OPTION } else { 1.0 }
        });
        let certain = sides.are_no_chance(&found) || (!candidate.small && sides.are_all(&found));
        if more && certain && distinct(first, &candidate.signer) as f64 >= apart {
            best = Some((count, candidate));
        }
    };
    rewrites(sides, options).into_iter().for_each(&mut consider);
    if let Some(selection) = agreeing::selection(sides, options.window) {
        consider(Candidate {
            options: 1,
            agreement: format!("agree in the bytes {selection}"),
            typed: format!("--signature {selection}"),
            signer: Signer::of_selection(selection),
            small: true,
        });
    }
    let (count, Candidate { agreement, typed, .. }) = best?;
    let packets = grouped(count as u64);
    let text =
        format!("{packets} lost and {packets} unmatched packets {agreement}: {typed} matches them");
    Some(super::warning("masked", count, text))
}

/// All sets of rewritten fields that contain the present ones, fewest first.
fn rewrites(sides: Sides<'_>, options: &Options) -> Vec<Candidate> {
    let Rewrites { nat, tos, tunnel } = options.rewrites;
    let now = [nat, tos, tunnel];
    let names = ["nat", "tos", "tunnel"];
    let fields = ["addresses and ports", "ToS (DSCP and ECN)", "a tunnel around them"];
    let mut candidates: Vec<Candidate> = (0..8_u8)
        .map(|set| [0, 1, 2].map(|bit| set >> bit & 1 == 1))
        .filter(|set| set.iter().zip(now).all(|(&then, now)| then || !now))
        .filter(|set| options.selection.is_some() || *set != now)
        .map(|set| {
            let chosen = |texts: [&'static str; 3], of: [bool; 3]| {
                texts
                    .into_iter()
                    .zip(of)
                    .filter(|(_, is)| *is)
                    .map(|(text, _)| text)
                    .collect::<Vec<_>>()
            };
            let added = [0, 1, 2].map(|bit| set[bit] && !now[bit]);
            let [nat, tos, tunnel] = set;
            let masks = chosen(names, set);
            let (agreement, typed) = if masks.is_empty() {
                (
                    "have the same default signature".to_owned(),
                    "without --signature tailtrim".to_owned(),
                )
            } else {
                let masks: Vec<String> =
                    masks.iter().map(|mask| format!("--mask {mask}")).collect();
                (
                    format!("agree in all but {}", chosen(fields, added).join(" and ")),
                    masks.join(" "),
                )
            };
            let signer = sides.limited(Signer::new(Rewrites { nat, tos, tunnel }));
            let count = set.iter().filter(|is| **is).count();
            Candidate { options: count, agreement, typed, signer, small: false }
        })
        .collect();
    candidates.sort_by_key(|candidate| candidate.options);
    candidates
}

impl Sides<'_> {
    /// A signer of what the snap length has left of all frames, as [`Terms`](crate::analysis::Terms) would limit it.
    fn limited(&self, signer: Signer) -> Signer {
        let frames = self.lost.iter().chain(self.unmatched);
        let bytes = |frame: &Frame| {
            let Signed { signable, truncated, .. } = signer.sign(frame.link, &frame.head);
            let (there, length) = (frame.head.len(), frame.length as usize);
            let short = there < length.min(HEAD) || (truncated && there >= length);
            short.then_some(usize::from(signable))
        };
        let least = frames.filter_map(bytes).min();
        match least {
            Some(bytes) => signer.limited_to(bytes),
            None => signer,
        }
    }
}
