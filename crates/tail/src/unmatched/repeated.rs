//! Ingress packets of one signature: identical frames, or frames that differ in bytes that are not signed.

use super::pairing::{distinct, signatures};
use super::{FEWEST, Frame};
use crate::signature::{Selection, Signature, Signer};
use crate::summary::{Summary, Warning, grouped};
use std::collections::{BTreeSet, HashMap};

/// Places at which frames may differ: more are no number that identifies them, but a payload of which some do.
const MOST_BYTES: usize = 16;

/// Says why frames are duplicates, or may become some.
pub(super) fn warning(
    first: &[Vec<Frame>; 2],
    signer: &Signer,
    summary: &Summary,
) -> Option<Warning> {
    let duplicates = summary.ingress.duplicate;
    let entered = &first[0];
    let mut groups: HashMap<Signature, Vec<&Frame>> = HashMap::new();
    for (frame, signature) in entered.iter().zip(signatures(entered, signer)) {
        groups.entry(signature).or_default().push(frame);
    }
    let repeated: Vec<&Vec<&Frame>> = groups.values().filter(|group| group.len() > 1).collect();
    // A few that repeat are an accident of the traffic.
    if groups.len() * 2 > entered.len() || summary.signature.in_order {
        return None;
    }
    let places: BTreeSet<usize> = repeated.iter().flat_map(|group| differing(group)).collect();
    if places.is_empty() && duplicates < FEWEST as u64 {
        let text = format!(
            "frames are identical to others ({} of the first {} differ), so that no bytes can identify them: each that left counts \
             as the last one that entered; --in-order matches the n-th that leaves with the n-th that entered, which sees \
             neither a loss nor a change of the order",
            grouped(groups.len() as u64),
            grouped(entered.len() as u64),
        );
        let invalidates = false;
        return Some(Warning { code: "identical", count: entered.len() as u64, text, invalidates });
    }
    if places.is_empty() {
        let text = format!(
            "{} ingress packets are identical to others in flight, so that no bytes can identify them; --in-order matches the \
             n-th that leaves with the n-th that entered, which sees neither a loss nor a change of the order",
            grouped(duplicates),
        );
        return Some(super::warning("identical", duplicates as usize, text));
    }
    let places: Vec<usize> = places.into_iter().take(MOST_BYTES).collect();
    let selection =
        Selection::of(std::iter::once(places[0]..places[places.len() - 1] + 1).collect());
    let chosen = Signer::of_selection(selection.clone());
    let [unlike, left] = [&first[0], &first[1]].map(|frames| distinct(frames, &chosen));
    let known: std::collections::HashSet<_> = signatures(entered, &chosen).collect();
    let common =
        signatures(&first[1], &chosen).filter(|signature| known.contains(signature)).count();
    // They tell nearly all frames apart, and are the same on both sides.
    let tells = unlike * 100 >= entered.len() * 99 && left > 0 && common * 10 >= first[1].len() * 9;
    tells.then(|| {
        let text = format!(
            "{} ingress packets differ only in bytes that are not signed: --signature {selection} tells them apart",
            grouped(duplicates),
        );
        super::warning("unsigned", duplicates as usize, text)
    })
}

/// Places behind the L2 header at which frames of one signature differ, but for what routers rewrite.
fn differing(group: &[&Frame]) -> Vec<usize> {
    let Some(&one) = group.first() else { return Vec::new() };
    let (start, layers) = one.packet().map_or((0, None), |(start, layers)| (start, Some(layers)));
    let end = layers.map_or(usize::MAX, |layers| layers.end.saturating_add(start));
    let from = start + crate::signature::SIGNED_BYTES;
    (from..one.head.len().min(end))
        .filter(|&at| group.iter().any(|frame| frame.head.get(at) != one.head.get(at)))
        .collect()
}
